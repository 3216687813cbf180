/** The ordinary ingest: how any message of a client enters, exactly once, and is retained. */
import { Refusal } from '../refusal.js'
import type { ConnectionRegistry } from './connections.js'
import type { Deduplicator } from './deduplicator.js'
import { AppendInput, type MessageHistory } from './history.js'
import { parseInput } from './input.js'
import { canonicalStream, userStream } from './streams.js'

/** What became of a message. A refused one throws, so `accepted` is always true. */
export interface IngestAnswer {
  accepted: boolean
  /** The message was seen before; it is retained once. */
  duplicate: boolean
}

/** Takes in one message of an authenticated user. */
export type Ingest = (message: AppendInput) => Promise<IngestAnswer>

export interface IngestOptions {
  connections: Pick<ConnectionRegistry, 'isCurrentInstance'>
  deduplicator: Deduplicator
  history: MessageHistory
}

/**
 * The ordinary ingest over three facilities: fence, claim, append. A stream outside the user's own is nested below it.
 * A failed append gives its claim back, so that a retry is no duplicate.
 *
 * @returns a function that rejects with `Refusal` `stale_instance`, `invalid_input`, `payload_too_large`, `unavailable`.
 */
export function createIngest({ connections, deduplicator, history }: IngestOptions): Ingest {
  return async (given) => {
    const message = parseInput(AppendInput, given)
    const own = message.stream.startsWith(`${userStream(message.user_id)}/`)
    const stream = own ? message.stream : canonicalStream(message.user_id, message.stream)
    if (!(await connections.isCurrentInstance(message))) throw new Refusal('stale_instance')
    if (!(await deduplicator.claim(message))) return { accepted: true, duplicate: true }
    try {
      await history.append({ ...message, stream })
    } catch (error) {
      await deduplicator.release(message)
      throw error
    }
    return { accepted: true, duplicate: false }
  }
}
