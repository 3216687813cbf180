/** A user's worker contexts: the idle ones apart from those with a task. */
import type { JSX } from 'preact'
import type { Context } from '../../../contract/contexts.js'
import type { Workers } from '../../../views/workers.js'
import { type Address, question } from '../address.js'
import { useAnswer } from '../hooks.js'
import { choice, Filters, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { cutsOf, State, Trouble } from '../parts/state.js'
import { Table } from '../parts/table.js'
import { Count } from '../parts/value.js'
import { CLIENT_TYPES } from './choices.js'
import { CONTEXTS } from './contexts.js'

const USER = { ...text('user_id'), isNeeded: true } as const

/** The worker contexts assigned to one task. */
export const TASK: ListView<Context> = {
  ...CONTEXTS,
  title: 'Task',
  isAsked: true,
  about: 'The worker contexts assigned to one task in this registry; no proof that a job system owns it.',
  filters: [USER],
}

export function WorkersPage({ address }: { address: Address }): JSX.Element {
  const { path, query } = address
  const answer = useAnswer<Workers>(query.get('user_id') ? question(path, query) : null)
  const { value, problem, isOld } = answer
  return (
    <>
      <header class="page">
        <h1>Workers</h1>
        <p>Which worker of a user is free: idle ones carry no task.</p>
        <Filters filters={[USER, choice('client_type', CLIENT_TYPES)]} address={address} />
        {query.get('user_id') ? <State answer={answer as never} /> : <p class="empty">Say which user_id.</p>}
      </header>
      {problem && <Trouble problem={problem} />}
      {value && (
        <div class={isOld ? 'old' : ''}>
          <p class="dim">{cutsOf(value).join(' · ')}</p>
          <h2>
            Idle <Count value={value.idle_count} />
          </h2>
          <Table label="Idle" rows={value.idle} look={CONTEXTS} />
          <h2>
            Assigned <Count value={value.assigned_count} />
          </h2>
          <Table label="Assigned" rows={value.assigned} look={CONTEXTS} />
          <p class="dim">
            Neither: <Count value={value.other_count} />
          </p>
        </div>
      )}
    </>
  )
}
