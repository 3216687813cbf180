/** Execution contexts, and one of them. */
import type { JSX } from 'preact'
import type { Context, ContextStatus } from '../../../contract/contexts.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/field.js'
import { CLIENT_TYPES, choice, ORDER, OWNERSHIPS, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'

const STATUSES: ContextStatus[] = ['active', 'idle', 'closed', 'stale']

export const CONTEXTS: ListView<Context> = {
  path: '/contexts',
  title: 'Contexts',
  about: 'Each as its client last reported it.',
  countedBy: '/contexts/count',
  filters: [
    text('user_id'),
    text('client_id'),
    choice('client_type', CLIENT_TYPES),
    choice('status', STATUSES),
    choice('ownership', OWNERSHIPS),
    text('window_id'),
    text('task_id'),
    text('silent_for_ms'),
    ORDER,
  ],
  keyOf: ({ context_id, user_id }) => `${user_id} ${context_id}`,
  markOf: ({ status }) => (/closed|stale/.test(status) ? 'past' : ''),
  columns: [
    'context_id',
    'status',
    'user_id',
    'client_id',
    'client_type',
    'ownership',
    'task_id',
    'window_id',
    'updated_at',
  ],
}

export const ContextPage = ({ path }: { path: string }): JSX.Element => (
  <Card
    isMain
    title="Context"
    answer={useAnswer<Context>(path)}
    gone="It was closed long ago, or never reported; or your key does not cover its user."
  >
    {(context) => <Fields record={context} />}
  </Card>
)
