/** Execution contexts, and one of them. */
import type { JSX } from 'preact'
import type { ContextAnswer, ContextEndReason, ContextStatus } from '../../../contract/contexts.js'
import type { Workers } from '../../../views/workers.js'
import { type Address, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/field.js'
import { CLIENT_TYPES, choice, ORDER, OWNERSHIPS, text } from '../parts/filters.js'
import { hasRequiredFilters, type ListView, PageHead } from '../parts/list.js'
import { truncationsOf } from '../parts/state.js'
import { Table } from '../parts/table.js'
import { Count, Term } from '../parts/value.js'

const STATUSES: ContextStatus[] = ['active', 'idle', 'closed', 'stale']
const REASONS: ContextEndReason[] = ['closed', 'crashed', 'browser_disconnected']

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
  columns: [
    'context_id',
    'status',
    { head: 'because', cell: ({ status_reason }) => <Term value={status_reason} /> },
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
  about: 'Worker contexts with this task, crashed ones for an hour. That does not prove that a job system assigned it.',
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
