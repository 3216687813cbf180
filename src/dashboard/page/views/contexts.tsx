/** Execution contexts, and one of them. */
import type { JSX } from 'preact'
import type { ContextAnswer, ContextEndReason, ContextStatus } from '../../../internal/contract/contexts.js'
import type { Workers } from '../../../internal/views/workers.js'
import { type Address, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields, idOf, whoOf } from '../parts/field.js'
import { CLIENT_TYPES, choice, ORDER, OWNERSHIPS, text } from '../parts/filters.js'
import { hasRequiredFilters, type ListView, PageHead } from '../parts/list.js'
import { truncationsOf } from '../parts/state.js'
import { Table } from '../parts/table.js'
import { Count, Term } from '../parts/value.js'

const STATUSES: ContextStatus[] = ['active', 'idle', 'closed', 'stale']
const REASONS: ContextEndReason[] = ['closed', 'crashed', 'browser_disconnected']

const statusOf = ({ status, status_reason }: ContextAnswer) => (
  <>
    <Term value={status} /> <Term value={status_reason} />
  </>
)

export const CONTEXTS: ListView<ContextAnswer> = {
  path: '/contexts',
  title: 'Contexts',
  about: 'Each as its client last reported it.',
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
    { head: 'status', width: 'min(26ch, 36vw)', cell: statusOf },
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

// A user's worker contexts: the idle ones apart from those with a task.

const USER = { ...text('user_id'), isRequired: true } as const

/** The worker contexts assigned to one task. */
export const TASK: ListView<ContextAnswer> = {
  ...CONTEXTS,
  title: 'Task',
  about: 'Worker contexts with this task, crashed ones for an hour.',
  filters: [USER],
}

const HEAD = {
  title: 'Workers',
  about: 'Contexts that do work for a user. Idle ones have no task.',
  filters: [USER, choice('client_type', CLIENT_TYPES)],
}

export function WorkersPage({ address }: { address: Address }): JSX.Element {
  const isReady = hasRequiredFilters(HEAD.filters, address)
  const answer = useAnswer<Workers>(isReady ? pathWithQuery(address.path, address.query) : null)
  const { value, isOld } = answer
  return (
    <>
      <PageHead {...HEAD} address={address} answer={isReady ? answer : null} />
      {value && (
        <div class={isOld ? 'old' : ''}>
          <p class="dim">{truncationsOf(value).join(' · ')}</p>
          <h2>
            Idle <Count value={value.idle_count} />
          </h2>
          <Table label="Idle" rows={value.idle} look={CONTEXTS} />
          <h2>
            Assigned <Count value={value.assigned_count} />
          </h2>
          <Table label="Assigned" rows={value.assigned} look={CONTEXTS} />
          <p class="dim">
            Others: <Count value={value.other_count} />
          </p>
        </div>
      )}
    </>
  )
}
