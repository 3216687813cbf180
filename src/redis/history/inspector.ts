/** Reads the message history of a shared store. */

import * as z from 'zod'
import {
  foldStream,
  type HistoryInspector,
  HistoryMessage,
  HistoryOptions,
  HistoryStream,
} from '../../internal/contract/history.js'
import { HISTORY_BYTES } from '../../internal/contract/limits.js'
import { readParts } from '../../internal/contract/options.js'
import { type InspectionContext, omittedCount } from '../../internal/contract/page.js'
import { hydrate } from '../../internal/spill/spilling.js'
import { strings } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { Millis, readIndex, readRows, type TableReader, timestampOf } from '../table/rows.js'
import { allShards } from '../table/shards.js'
import { listUserIds, observeUsers } from '../table/users.js'

// Formats of stored streams and messages.

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
  is_guest: z.boolean().optional(),
  externalized: z.object({ ref: z.string(), bytes: z.int().min(0) }).nullable(),
})

/**
 * Returns the id of a message. It is unambiguous, because neither stream names nor ids contain a line break. A stream
 * belongs to its first user; messages that other users append, who cannot know what it contains, are separate messages
 * with `guest`.
 */
export const messageKey = (stream: string, messageId: string, guest?: string) =>
  guest === undefined ? `${stream}\n${messageId}` : `${stream}\n${messageId}\n${guest}`

export const MESSAGES: TableReader<HistoryMessage, z.infer<typeof StoredMessage>> = {
  name: 'messages',
  idOf: ({ stream, message_id, user_id, is_guest }) => messageKey(stream, message_id, is_guest ? user_id : undefined),
  schema: StoredMessage,
  indexes: [],
  read: ({ recorded_at, externalized, payload, size: _counted, is_guest: _, ...row }) => ({
    ...row,
    recorded_at: timestampOf(recorded_at),
    payload: payload ?? null,
    externalized: externalized && { ...externalized, hydration: 'not_configured' },
  }),
}

/** Number of messages that are read at the same time: some megabytes at most. */
const STRETCH = 100

export function createHistoryInspector(
  store: Store,
  reading: Pick<HistoryOptions, 'spill' | 'hydrationMs'> = {},
): HistoryInspector {
  const { spill, hydrationMs } = readParts(HistoryOptions, reading)
  return {
    async readMessages({ stream, limit }, ctx) {
      const shards = await allShards(store, ctx)
      const read = await Promise.all(shards.map((shard) => readStream(store, shard, stream, limit, ctx)))
      const newest = newestOf(
        read.map(({ messages }) => messages),
        limit,
      )
      const held = read.reduce((sum, { lastSequence }) => sum + lastSequence, 0)
      const items = spill ? await hydrate(newest, spill, { signal: ctx.signal, withinMs: hydrationMs }) : newest
      const omitted = read.reduce((sum, { bad }) => sum + bad, 0)
      return { items, truncated: items.length < held, ...omittedCount(omitted) }
    },
    listStreams: (filter, page, ctx) => readPage(store, STREAMS, filter, page, ctx),
    listUserIds: (page, ctx) => listUserIds(store, STREAMS.name, page, ctx),
    observeUsers: (userIds, ctx) => observeUsers(store, STREAMS, userIds, ctx, foldStream),
  }
}

/**
 * Merges the samples of several shards, newest last. A stream to which several users append has a part in the shard of
 * each. Each part keeps its own order, whatever its timestamps are.
 */
function newestOf(samples: readonly (readonly HistoryMessage[])[], limit: number): HistoryMessage[] {
  const parts = samples.map((sample) => [...sample])
  // Timestamps have one format, so their strings sort by time; an empty part sorts before all others.
  const lastOf = (part: readonly HistoryMessage[]) => part.at(-1)?.recorded_at ?? ''
  const newest: HistoryMessage[] = []
  while (newest.length < limit) {
    const latest = parts.reduce((a, b) => (lastOf(b) >= lastOf(a) ? b : a), []).pop()
    if (!latest) break
    newest.push(latest)
  }
  return newest.reverse()
}

/**
 * Returns the newest messages of a stream in one shard, oldest first, how many are invalid, and how many it has ever
 * had.
 */
async function readStream(
  store: Store,
  shard: number,
  stream: string,
  limit: number,
  ctx: InspectionContext,
): Promise<{ messages: HistoryMessage[]; bad: number; lastSequence: number }> {
  const of = store.key(shard, MESSAGES.name, 'of', stream)
  const [newest, known, emptied] = await Promise.all([
    readIndex(store, ['ZRANGE', of, '0', String(limit - 1), 'REV'], ctx),
    readRows(store, STREAMS, shard, [stream], ctx),
    readIndex(store, ['HMGET', store.key(shard, 'emptied', 'last'), stream], ctx),
  ])
  const messages: HistoryMessage[] = []
  let bad = 0
  const ids = strings(newest)
  // Newest first, so that the oldest are left out if the sample is too large; one read is enough for most samples.
  for (let from = 0, bytes = 0; from < ids.length && bytes <= HISTORY_BYTES; from += STRETCH) {
    const keys = ids.slice(from, from + STRETCH).map((id) => messageKey(stream, id))
    for (const { row } of await readRows(store, MESSAGES, shard, keys, ctx)) {
      if (!row) bad += 1
      bytes += row?.size ?? 0
      const message = row && MESSAGES.read(row, 0)
      if (message && (bytes <= HISTORY_BYTES || messages.length === 0)) messages.unshift(message)
    }
  }
  const [record] = known
  // Without a readable record of the stream it is unknown whether it has had more messages than these.
  const unread = record?.isBad ? Number.POSITIVE_INFINITY : strings(emptied).length > 0 ? 1 : 0
  return { messages, bad, lastSequence: record?.row?.last_sequence ?? unread }
}
