/** The ordinary ingest: how any message of a client enters, exactly once, and is retained. */

import * as z from 'zod'
import { Refusal } from '../refusal.js'
import type { ConnectionRegistry } from './connections.js'
import type { Deduplicator } from './deduplicator.js'
import { AppendInput, type HistoryMessage, type MessageHistory, type Retained, StreamName } from './history.js'
import { named, Timestamp } from './ids.js'
import { parseInput } from './input.js'
import { checkParts, having, needed, type Shape } from './options.js'
import { isReservedStream, ownStream } from './streams.js'

/** Who sent a message the first time, and when it was retained. */
export const FirstTaken = z
  .object({ client_id: named('client_id'), at: Timestamp.describe('When it was retained.') })
  .describe('Who sent a message the first time.')
export type FirstTaken = z.infer<typeof FirstTaken>

/** What became of a message. A refused one throws, so `accepted` is always true: the history holds it, once. */
export interface IngestAnswer {
  accepted: boolean
  /** The message had been retained before; it is retained once. */
  duplicate: boolean
  /** Of a duplicate: the message that is retained. `null` where that is not known. */
  first?: FirstTaken | null
}

/** Takes in one message of an authenticated user. */
export type Ingest = (message: AppendInput) => Promise<IngestAnswer>

export interface IngestOptions {
  connections: Pick<ConnectionRegistry, 'isCurrentInstance'>
  deduplicator: Deduplicator
  history: MessageHistory
}

const PARTS: Shape<IngestOptions> = {
  connections: needed(having('isCurrentInstance')),
  deduplicator: needed(having('claim', 'release')),
  history: needed(having('append')),
}

/** What tells one message from another: a canonical stream begins with the name of its user. */
const identityOf = ({ stream, message_id }: AppendInput) => JSON.stringify([stream, message_id])

/** The message under its canonical stream. @throws Refusal `invalid_input`, `forbidden` */
function readMessage(given: AppendInput): AppendInput {
  const message = parseInput(AppendInput, given)
  const stream = parseInput(StreamName, ownStream(message.user_id, message.stream))
  if (isReservedStream(stream)) throw new Refusal('forbidden', 'the relay alone writes into this stream')
  return { ...message, stream }
}

/**
 * The ordinary ingest over whatever retains a message once. Of equal messages that are under way in this process the
 * first alone is tried, and its end is the end of all: none is a duplicate of what was never retained.
 */
export function createIngestOver(
  connections: IngestOptions['connections'],
  retain: (message: AppendInput) => Promise<Retained>,
): Ingest {
  const inFlight = new Map<string, Promise<Retained>>()

  /** Whether the message was retained before, and what is retained. */
  async function take(message: AppendInput): Promise<Retained> {
    const identity = identityOf(message)
    const first = inFlight.get(identity)
    if (first) return { ...(await first), isNew: false }
    const taking = retain(message)
    inFlight.set(identity, taking)
    try {
      return await taking
    } finally {
      inFlight.delete(identity)
    }
  }

  return async (given) => {
    const message = readMessage(given)
    if (!(await connections.isCurrentInstance(message))) throw new Refusal('stale_instance')
    const { message: retained, isNew } = await take(message)
    if (isNew) return { accepted: true, duplicate: false }
    return { accepted: true, duplicate: true, first: firstOf(retained) }
  }
}

/** What a history of the host's own answers need not be a message. */
function firstOf(retained: HistoryMessage | undefined): FirstTaken | null {
  const first = FirstTaken.safeParse({ client_id: retained?.client_id, at: retained?.recorded_at })
  return first.success ? first.data : null
}

/**
 * The ordinary ingest over three facilities: fence, claim, retain. A stream outside the user's own is nested below it.
 * What has been claimed is looked for in the history and appended if it is not there, so that a claim alone never
 * passes for a message; a failed append gives its claim back all the same.
 *
 * @returns a function that rejects with `Refusal` `stale_instance`, `invalid_input`, `forbidden` (a stream that the relay
 * alone writes), `payload_too_large`, `capacity_exceeded`, `unavailable`.
 */
export function createIngest(options: IngestOptions): Ingest {
  checkParts(options, PARTS)
  const { connections, deduplicator, history } = options
  const append = async (message: AppendInput, isNew: boolean): Promise<Retained> =>
    history.retain ? history.retain(message) : { message: await history.append(message), isNew }

  return createIngestOver(connections, async (message) => {
    const { user_id, stream, message_id } = message
    const claim = { user_id, stream, message_id }
    const isFirst = await deduplicator.claim(claim)
    try {
      return await append(message, isFirst)
    } catch (error) {
      // One that cannot be given back does no harm: whoever sends again is looked for in the history.
      if (isFirst) await Promise.resolve(deduplicator.release(claim)).catch(() => {})
      throw error
    }
  })
}
