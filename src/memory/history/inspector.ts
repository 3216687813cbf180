/** Reads the message history of one process. */
import type { HistoryInspector, HistoryMessage, HistoryStream, SpillStore } from '../../internal/contract/history.js'
import { deepFreeze, type Json } from '../../internal/contract/json.js'
import { HISTORY_BYTES } from '../../internal/contract/limits.js'
import { scanLimit, withMetadata } from '../../internal/contract/page.js'
import { FairShare, type Place } from '../../internal/fair-share/fair-share.js'
import { hydrate } from '../../internal/spill/spilling.js'
import type { OrderedIndex } from '../table/ordered-index.js'
import type { createTable, Entry } from '../table/table.js'

// The last sequence numbers of streams without messages, so that their numbering continues.

interface Emptied {
  readonly stream: string
  readonly lastSequence: number
}

/** A bounded memory. It evicts the oldest entry of the largest share. */
export class EmptiedStreams {
  readonly #places = new Map<string, Place<Emptied>>()
  readonly #shares: FairShare<Emptied>

  constructor(bound: number) {
    this.#shares = new FairShare({ entries: bound })
  }

  has(stream: string): boolean {
    return this.#places.has(stream)
  }

  remember(user: string, stream: string, lastSequence: number): void {
    const place = this.#shares.add(user, { stream, lastSequence })
    this.#places.set(stream, place)
    for (let evicted = this.#shares.excess(place); evicted; evicted = this.#shares.excess(place))
      this.recall(evicted.stream)
  }

  /** Removes and returns the last sequence number of a stream; 0 if there is none. */
  recall(stream: string): number {
    const place = this.#places.get(stream)
    if (!place) return 0
    this.#places.delete(stream)
    this.#shares.remove(place)
    return place.entry.lastSequence
  }
}

// Format of a message in memory.

/** A retained message. Its payload is kept as text, because the parsed value can take forty times the memory. */
export interface Kept {
  readonly message: HistoryMessage
  readonly text: string
  readonly stream: Stream
  place?: Place<Kept>
  spilled?: Place<Kept>
}

/**
 * The state of a stream with messages. Its sequence numbers have no gaps: the oldest messages are always evicted first.
 */
export interface StreamState {
  readonly messages: OrderedIndex<number, Kept>
  lastSequence: number
  shown: HistoryStream | undefined
}

export type StreamName = Pick<HistoryStream, 'stream' | 'user_id'>
type Stream = Entry<StreamName, StreamState>

/** Returns a new copy of the message with its payload. */
export const toMessage = ({ message, text }: Kept): HistoryMessage =>
  deepFreeze({ ...message, payload: JSON.parse(text) as Json })

/** Returns the newest messages of a stream, oldest first: at most `limit`, within the size limit of a response. */
function newestOf({ messages, lastSequence }: StreamState, limit: number): HistoryMessage[] {
  const newest = [...messages.after(lastSequence - limit)]
  let first = newest.length
  for (let bytes = 0; first > 0; first--) {
    bytes += (newest[first - 1] as Kept).text.length
    if (bytes > HISTORY_BYTES && first < newest.length) break
  }
  return newest.slice(first).map(toMessage)
}

/** Returns the stream as of now; the same object until a message is added or evicted. */
function showStream({ record, state }: Stream): HistoryStream {
  state.shown ??= Object.freeze({
    ...record,
    message_count: state.messages.size,
    first_recorded_at: (state.messages.first() as Kept).message.recorded_at,
    last_recorded_at: (state.messages.last() as Kept).message.recorded_at,
  })
  return state.shown
}

export function createHistoryInspector(
  table: ReturnType<typeof createTable<StreamName, StreamState>>,
  emptied: EmptiedStreams,
  { spill, hydrationMs }: { spill: SpillStore | undefined; hydrationMs: number },
): HistoryInspector {
  return {
    // Changes of streams only: a payload that was lost in its store is noticed only when it is read.
    version: table.version,
    async readMessages({ stream: name, limit }, { signal }) {
      const stream = table.get(name)
      if (!stream) return { items: [], truncated: emptied.has(name) }
      const newest = newestOf(stream.state, limit)
      const items = spill ? await hydrate(newest, spill, { signal, withinMs: hydrationMs }) : newest
      return { items, truncated: items.length < stream.state.lastSequence }
    },
    listStreams: (filter, page, ctx) => table.list(filter, page, showStream, scanLimit(ctx)),
    listUserIds: (page, ctx) => table.users.userIds(page, ({ record }) => record, true, scanLimit(ctx)),
    observeUsers(userIds) {
      const parts = userIds
        .filter(table.users.knowsUser)
        .map((user_id) => ({ user_id, observed_streams: table.sizeOf('user_id', user_id) }))
      return withMetadata(parts, { examined: 0 })
    },
  }
}
