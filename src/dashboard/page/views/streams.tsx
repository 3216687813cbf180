/** Streams that retain messages, and the newest messages of one. */
import type { HistoryMessageAnswer, HistoryStreamAnswer } from '../../../internal/contract/history.js'
import { Field } from '../parts/field.js'
import { ORDER, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { Json } from '../parts/value.js'

export const STREAMS: ListView<HistoryStreamAnswer> = {
  path: '/history/streams',
  title: 'History',
  about: 'Retained messages, by stream.',
  filters: [text('user_id'), ORDER],
  keyOf: ({ stream }) => stream,
  columns: ['stream', 'user_id', 'message_count', 'first_recorded_at', 'last_recorded_at'],
}

/** What is kept outside says where, how large it is, and what became of reading it. */
const payloadOf = (message: HistoryMessageAnswer) => (
  <>
    <Json value={message.payload} /> {message.externalized && <Json value={message.externalized} />}
    <Field name="trace_id" record={message} />
  </>
)

export const MESSAGES: ListView<HistoryMessageAnswer> = {
  path: '/history/messages',
  title: 'Messages',
  about: 'The newest messages of one stream, oldest first.',
  filters: [{ ...text('stream'), isRequired: true }],
  keyOf: ({ sequence }) => `${sequence}`,
  columns: [
    'sequence',
    'kind',
    'recorded_at',
    'user_id',
    'client_id',
    'message_id',
    { head: 'payload', cell: payloadOf },
  ],
}
