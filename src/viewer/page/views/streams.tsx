/** Streams that retain messages, and the newest messages of one. */
import type { HistoryMessage, HistoryStream } from '../../../contract/history.js'
import { text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { ClientRef, StreamRef, UserRef } from '../parts/ref.js'
import { Text } from '../parts/text.js'
import { Json, Time } from '../parts/value.js'
import { countOf } from '../words.js'

export const STREAMS: ListView<HistoryStream> = {
  path: '/history/streams',
  title: 'History',
  about: 'Streams that retain messages. What has left them by age or number is in no answer.',
  source: 'history',
  filters: [text('user_id')],
  keyOf: ({ stream }) => stream,
  columns: [
    { head: 'stream', cell: ({ stream }) => <StreamRef id={stream} /> },
    { head: 'user_id', cell: ({ user_id }) => <UserRef id={user_id} /> },
    { head: 'messages', cell: ({ message_count }) => countOf(message_count), isNumber: true },
    { head: 'first', cell: ({ first_recorded_at }) => <Time at={first_recorded_at} /> },
    { head: 'last', cell: ({ last_recorded_at }) => <Time at={last_recorded_at} /> },
  ],
}

const payloadOf = ({ payload, externalized }: HistoryMessage) => (
  <>
    <Json value={payload} />
    {externalized && (
      <span class="dim">
        kept outside, {countOf(externalized.bytes)} bytes: {externalized.hydration.replaceAll('_', ' ')}
      </span>
    )}
  </>
)

export const MESSAGES: ListView<HistoryMessage> = {
  path: '/history/messages',
  title: 'Messages',
  about: 'The newest messages of one stream, oldest first. Nothing here follows the page: it is asked anew.',
  source: 'history',
  isAsked: true,
  filters: [{ ...text('stream'), isNeeded: true }],
  keyOf: ({ sequence }) => `${sequence}`,
  columns: [
    { head: 'sequence', cell: ({ sequence }) => sequence },
    { head: 'kind', cell: ({ kind }) => kind },
    { head: 'recorded', cell: ({ recorded_at }) => <Time at={recorded_at} /> },
    { head: 'client', cell: (row) => <ClientRef {...row} /> },
    { head: 'message_id', cell: ({ message_id }) => <Text value={message_id} /> },
    { head: 'payload', cell: payloadOf },
  ],
}
