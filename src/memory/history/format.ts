/** How a message is kept in memory, and shown. */
import type { HistoryMessage, HistoryStream } from '../../contract/history.js'
import { deepFreeze, type Json } from '../../contract/json.js'
import type { Place } from '../../fair-share/fair-share.js'
import type { OrderedIndex } from '../table/ordered-index.js'
import type { Entry } from '../table/table.js'

/** A message as it is kept. Its payload is text, because what that text stands for can take forty times its room. */
export interface Kept {
  readonly message: HistoryMessage
  readonly text: string
  readonly stream: Stream
  place?: Place<Kept>
  spilled?: Place<Kept>
}

/** What is kept of a stream that has messages. Its sequence numbers have no holes: the oldest always leave first. */
export interface StreamState {
  readonly messages: OrderedIndex<number, Kept>
  lastSequence: number
  shown: HistoryStream | undefined
}

export type StreamName = Pick<HistoryStream, 'stream' | 'user_id'>
export type Stream = Entry<StreamName, StreamState>

/** The message with its payload, made anew each time. */
export const toMessage = ({ message, text }: Kept): HistoryMessage =>
  deepFreeze({ ...message, payload: JSON.parse(text) as Json })
