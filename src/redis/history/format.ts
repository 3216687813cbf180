/** How streams and their messages are stored, and read back. */
import * as z from 'zod'
import { HistoryMessage, HistoryStream } from '../../contract/history.js'
import type { TableReader } from '../table/rows.js'
import { Millis, timestampOf } from '../table/timestamp.js'

const StoredStream = HistoryStream.extend({
  first_recorded_at: Millis,
  last_recorded_at: Millis,
  last_sequence: z.int().min(1),
})

export const STREAMS: TableReader<HistoryStream, z.infer<typeof StoredStream>> = {
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
 * Unmistakable, because neither a stream name of ours nor an id holds a line break. A stream is its first user's; what another one
 * appends to it, who does not know what it holds, is a message of its own under `guest`.
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
