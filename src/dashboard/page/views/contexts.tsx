/** Workers and other execution contexts, one of them, and those of one task. */
import type { JSX } from 'preact'
import type { ContextAnswer, ContextEndReason, ContextStatus } from '../../../internal/contract/contexts.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields, idOf, whoOf } from '../parts/field.js'
import { CLIENT_TYPES, choice, ORDER, OWNERSHIPS, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { terms } from '../parts/value.js'

const STATUSES: ContextStatus[] = ['active', 'idle', 'closed', 'stale']
const REASONS: ContextEndReason[] = ['closed', 'crashed', 'browser_disconnected']

export const CONTEXTS: ListView<ContextAnswer> = {
  path: '/contexts',
  title: 'Workers and contexts',
  about: 'Each as its client last reported it. Workers do tasks.',
  countedBy: '/contexts/count',
  filters: [
    text('user_id'),
    text('client_id'),
    choice('client_type', CLIENT_TYPES),
    choice('status', STATUSES),
    choice('status_reason', REASONS),
    choice('ownership', OWNERSHIPS),
    text('window_id'),
    text('task_id'),
    text('silent_for_ms'),
    ORDER,
  ],
  keyOf: ({ context_id, user_id }) => `${user_id} ${context_id}`,
  markOf: ({ status }) => (/closed|stale/.test(status) ? 'past' : ''),
  presets: [
    ['free workers', { status: 'idle', ownership: 'worker' }],
    ['busy workers', { status: 'active', ownership: 'worker' }],
    ['crashed', { status_reason: 'crashed' }],
  ],
  columns: [
    whoOf('context_id'),
    { head: 'status', width: 'min(26ch, 36vw)', cell: ({ status, status_reason }) => terms(status, status_reason) },
    'updated_at',
    'task_id',
    'ownership',
    'client_type',
    'window_id',
    idOf('context_id'),
  ],
}

export const ContextPage = ({ path }: { path: string }): JSX.Element => (
  <Card isMain title="Context" answer={useAnswer<ContextAnswer>(path)}>
    {(context) => <Fields record={context} />}
  </Card>
)

/** The worker contexts assigned to one task. */
export const TASK: ListView<ContextAnswer> = {
  ...CONTEXTS,
  title: 'Task',
  about: 'Workers with this task, crashed ones for an hour.',
  presets: [],
  filters: [{ ...text('user_id'), isRequired: true }],
}
