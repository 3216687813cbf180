/** Reads the message history of one process. */
import type { HistoryInspector, HistoryMessage, HistoryStream, SpillStore } from '../../contract/history.js'
import { HISTORY_BYTES } from '../../contract/limits.js'
import { scanLimit, withMetadata } from '../../contract/page.js'
import { hydrate } from '../../spill/spilling.js'
import type { createTable } from '../table/table.js'
import type { EmptiedStreams } from './emptied-streams.js'
import { type Kept, type Stream, type StreamName, type StreamState, toMessage } from './format.js'

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
