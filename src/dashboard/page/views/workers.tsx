/** A user's worker contexts: the idle ones apart from those with a task. */
import type { JSX } from 'preact'
import type { Context } from '../../../contract/contexts.js'
import type { Workers } from '../../../views/workers.js'
import { type Address, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { CLIENT_TYPES, choice, text } from '../parts/filters.js'
import { hasRequiredFilters, type ListView, PageHead } from '../parts/list.js'
import { truncationsOf } from '../parts/state.js'
import { Table } from '../parts/table.js'
import { Count } from '../parts/value.js'
import { CONTEXTS } from './contexts.js'

const USER = { ...text('user_id'), isRequired: true } as const

/** The worker contexts assigned to one task. */
export const TASK: ListView<Context> = {
  ...CONTEXTS,
  title: 'Task',
  isAsked: true,
  about: 'Worker contexts with this task. That does not prove that a job system assigned it.',
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
            Neither idle nor assigned: <Count value={value.other_count} />
          </p>
        </div>
      )}
    </>
  )
}
