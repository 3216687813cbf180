/** Format of a message in memory. */
import type { HistoryMessage, HistoryStream } from '../../contract/history.js'
import { deepFreeze, type Json } from '../../contract/json.js'
import type { Place } from '../../fair-share/fair-share.js'
import type { OrderedIndex } from '../table/ordered-index.js'
import type { Entry } from '../table/table.js'

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
export type Stream = Entry<StreamName, StreamState>

/** Returns a new copy of the message with its payload. */
export const toMessage = ({ message, text }: Kept): HistoryMessage =>
  deepFreeze({ ...message, payload: JSON.parse(text) as Json })
