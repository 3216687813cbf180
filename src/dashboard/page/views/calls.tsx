/** Calls that wait for their reply, one of them, and whether an instance holds its client. */
import type { JSX } from 'preact'
import type {
  CallOutcomeName,
  EndedCallAnswer,
  InstanceCheck,
  PendingCallAnswer,
  RpcSummaryAnswer,
} from '../../../contract/rpc.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Field, Fields } from '../parts/field.js'
import { choice, flag, ORDER, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { Term, Time, Truth } from '../parts/value.js'

const deadlineOf = ({ deadline_at, overdue }: PendingCallAnswer) => (
  <>
    <Time at={deadline_at} /> {overdue && <Term value="overdue" />}
  </>
)

export const CALLS: ListView<PendingCallAnswer> = {
  path: '/rpc/pending',
  title: 'Calls',
  about: 'Calls that wait for their reply.',
  filters: [text('user_id'), text('client_id'), text('action'), text('trace_id'), flag('overdue'), ORDER],
  keyOf: ({ correlation_id }) => correlation_id,
  markOf: ({ overdue }) => (overdue ? 'bad' : ''),
  columns: [
    'correlation_id',
    { head: 'deadline_at', cell: deadlineOf },
    'action',
    'user_id',
    'client_id',
    'instance_id',
    'started_at',
  ],
}

const OUTCOMES: CallOutcomeName[] = ['succeeded', 'failed', 'timed_out', 'cancelled']

export const ENDED_CALLS: ListView<EndedCallAnswer> = {
  path: '/rpc/ended',
  title: 'Ended calls',
  about: 'Calls that ended in the last hour.',
  filters: [text('user_id'), text('client_id'), text('action'), text('trace_id'), choice('outcome', OUTCOMES), ORDER],
  keyOf: ({ correlation_id, ended_at }) => correlation_id + ended_at,
  columns: ['correlation_id', 'outcome', 'duration_ms', 'action', 'user_id', 'client_id', 'instance_id', 'ended_at'],
}

/** What became of all calls, above those that wait. */
export const CallSummary = (): JSX.Element => (
  <Card title="All calls" answer={useAnswer<RpcSummaryAnswer>('/rpc/summary')} class="close">
    {({ counters, observed_at: _, ...now }) => <Fields record={{ ...now, ...counters }} />}
  </Card>
)

/** A pending or an ended call. */
export const CallPage = ({ path }: { path: string }): JSX.Element => (
  <Card
    isMain
    title="Call"
    answer={useAnswer<PendingCallAnswer | EndedCallAnswer>(path)}
    gone={
      <>
        A call that has its reply is among the <a href={hrefOf(ENDED_CALLS.path)}>ended calls</a> for an hour.
      </>
    }
  >
    {(call) => <Fields record={call} />}
  </Card>
)

export function InstancePage({ address: { path, query } }: { address: Address }): JSX.Element {
  const client = Object.fromEntries(query)
  return (
    <Card isMain title="Instance" answer={useAnswer<InstanceCheck>(pathWithQuery(path, query))}>
      {(instance) => (
        <Fields
          record={{ ...client, ...instance }}
          show={{
            current: (
              <Truth value={instance.current} yes="it holds its client" no="another one holds its client, or none" />
            ),
            current_instance_id: (
              <Field name="instance_id" record={{ ...client, instance_id: instance.current_instance_id }} />
            ),
          }}
        />
      )}
    </Card>
  )
}
