/** Reads the message history of a shared store. */
import * as z from 'zod'
import {
  type HistoryInspector,
  HistoryMessage,
  HistoryStream,
  type SpillStore,
  tellStream,
} from '../../contract/history.js'
import { HISTORY_BOUNDS } from '../../contract/history-bounds.js'
import { HISTORY_BYTES } from '../../contract/limits.js'
import { resolveBounds } from '../../contract/options.js'
import type { Ask } from '../../contract/page.js'
import { hydrate } from '../../spill/hydration.js'
import { strings } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { readIndex, readRows, type TableReader } from '../table/rows.js'
import { allShards } from '../table/shards.js'
import { Millis, timestampOf } from '../table/timestamp.js'
import { listUserIds, observeUsers } from '../table/users.js'

const StoredStream = HistoryStream.extend({
  first_recorded_at: Millis,
  last_recorded_at: Millis,
  last_sequence: z.int().min(1),
})

const STREAMS: TableReader<HistoryStream, z.infer<typeof StoredStream>> = {
  name: 'streams',
  idOf: ({ stream }) => stream,
  schema: StoredStream,
  indexes: ['user_id'],
  read: ({ stream, user_id, message_count, first_recorded_at, last_recorded_at }) => ({
    stream,
    user_id,
    message_count,
    first_recorded_at: timestampOf(first_recorded_at),
    last_recorded_at: timestampOf(last_recorded_at),
  }),
}

const StoredMessage = HistoryMessage.extend({
  recorded_at: Millis,
  size: z.number().optional(),
  externalized: z.object({ ref: z.string(), bytes: z.int().min(0) }).nullable(),
})

/** Unmistakable, because neither a stream name of ours nor a message id holds a line break. */
export const messageKey = (stream: string, messageId: string) => `${stream}\n${messageId}`

export const MESSAGES: TableReader<HistoryMessage, z.infer<typeof StoredMessage>> = {
  name: 'messages',
  idOf: ({ stream, message_id }) => messageKey(stream, message_id),
  schema: StoredMessage,
  indexes: [],
  read: ({ recorded_at, externalized, payload, size: _counted, ...row }) => ({
    ...row,
    recorded_at: timestampOf(recorded_at),
    payload: payload ?? null,
    externalized: externalized && { ...externalized, hydration: 'not_configured' },
  }),
}

/** Messages that are asked for at once: at most some megabytes. */
const STRETCH = 100

export interface HistoryReading {
  /** Where externalised payloads are; without it they say `not_configured`. */
  spill?: SpillStore | undefined
  /** How long one answer waits for externalised payloads. @default 2000 */
  hydrationMs?: number | undefined
}

export function createHistoryInspector(store: Store, reading: HistoryReading = {}): HistoryInspector {
  const { spill } = reading
  const { hydrationMs } = resolveBounds(reading, HISTORY_BOUNDS)
  return {
    async readMessages({ stream, limit }, ask) {
      const shards = await allShards(store, ask)
      const read = await Promise.all(shards.map((shard) => readStream(store, shard, stream, limit, ask)))
      const newest = read.flatMap(({ messages }) => messages).slice(-limit)
      const held = read.reduce((sum, { lastSequence }) => sum + lastSequence, 0)
      const items = spill ? await hydrate(newest, spill, { signal: ask.signal, withinMs: hydrationMs }) : newest
      return { items, truncated: items.length < held }
    },
    listStreams: (filter, page, ask) => readPage(store, STREAMS, filter, page, ask),
    listUserIds: (page, ask) => listUserIds(store, STREAMS.name, page, ask),
    observeUsers: (userIds, ask) => observeUsers(store, STREAMS, userIds, ask, tellStream),
  }
}

/** The newest messages of a stream in one shard, oldest first, and how many it has ever held. */
async function readStream(
  store: Store,
  shard: number,
  stream: string,
  limit: number,
  ask: Ask,
): Promise<{ messages: HistoryMessage[]; lastSequence: number }> {
  const of = store.key(shard, MESSAGES.name, 'of', stream)
  const [newest, known, emptied] = await Promise.all([
    readIndex(store, ['ZRANGE', of, '0', String(limit - 1), 'REV'], ask),
    readRows(store, STREAMS, shard, [stream], ask),
    readIndex(store, ['HMGET', store.key(shard, 'emptied', 'last'), stream], ask),
  ])
  const messages: HistoryMessage[] = []
  const ids = strings(newest)
  // The newest first, so that what does not fit is what is oldest; most samples are one stretch.
  for (let from = 0, bytes = 0; from < ids.length && bytes <= HISTORY_BYTES; from += STRETCH) {
    const keys = ids.slice(from, from + STRETCH).map((id) => messageKey(stream, id))
    for (const { row } of await readRows(store, MESSAGES, shard, keys, ask)) {
      bytes += row.size ?? 0
      const message = MESSAGES.read(row, 0)
      if (message && (bytes <= HISTORY_BYTES || messages.length === 0)) messages.unshift(message)
    }
  }
  const lastSequence = known[0]?.row.last_sequence ?? (strings(emptied).length > 0 ? 1 : 0)
  return { messages, lastSequence }
}
