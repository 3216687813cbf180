/** Calls that wait for their reply, one of them, and whether an instance holds its client. */
import type { JSX } from 'preact'
import type { PendingCall, RpcSummary } from '../../../contract/rpc.js'
import { type Address, question } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/fields.js'
import { flag, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { CallRef, ClientRef, InstanceRef, UserRef } from '../parts/ref.js'
import { Moment, Time, Truth, Word } from '../parts/value.js'
import { countOf, plain, spanOf } from '../words.js'

const deadlineOf = ({ deadline_at, overdue }: PendingCall) => (
  <>
    <Time at={deadline_at} /> {overdue && <Word value="overdue" />}
  </>
)

export const CALLS: ListView<PendingCall> = {
  path: '/rpc/pending',
  title: 'Calls',
  about: 'Calls that wait for their reply, oldest first.',
  source: 'rpc',
  filters: [text('user_id'), text('client_id'), text('action'), flag('overdue')],
  keyOf: ({ correlation_id }) => correlation_id,
  markOf: ({ overdue }) => (overdue ? 'bad' : ''),
  columns: [
    { head: 'call', cell: ({ correlation_id }) => <CallRef id={correlation_id} /> },
    { head: 'action', cell: ({ action }) => action },
    { head: 'user_id', cell: ({ user_id }) => <UserRef id={user_id} /> },
    { head: 'client_id', cell: (row) => <ClientRef {...row} /> },
    { head: 'instance', cell: (row) => <InstanceRef {...row} /> },
    { head: 'started_at', cell: ({ started_at }) => <Time at={started_at} /> },
    { head: 'deadline_at', cell: deadlineOf },
  ],
}

/** What became of all calls, above those that wait. */
export function CallSummary(): JSX.Element {
  const answer = useAnswer<RpcSummary>('/rpc/summary')
  return (
    <Card title="All calls" answer={answer} class="inline">
      {({ pending, overdue, oldest_age_ms, counters, counting_since }) => (
        <dl class="fields">
          <Figure name="pending" value={countOf(pending)} />
          <Figure name="overdue" value={countOf(overdue)} />
          <Figure name="oldest" value={oldest_age_ms === null ? '–' : spanOf(oldest_age_ms)} />
          {Object.entries(counters).map(([name, value]) => (
            <Figure key={name} name={plain(name)} value={countOf(value)} />
          ))}
          <div>
            <dt>counting since</dt>
            <dd>
              <Moment at={counting_since} />
            </dd>
          </div>
        </dl>
      )}
    </Card>
  )
}

const Figure = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)

export function CallPage({ path }: { path: string }): JSX.Element {
  return (
    <Card isMain title="Call" answer={useAnswer<PendingCall>(path)} note="once it has its reply, it is no longer here">
      {(call) => (
        <Fields
          record={call}
          show={{
            user_id: <UserRef id={call.user_id} />,
            client_id: <ClientRef {...call} />,
            instance_id: <InstanceRef {...call} />,
            age_ms: spanOf(call.age_ms),
          }}
        />
      )}
    </Card>
  )
}

interface Instance {
  instance_id: string
  current: boolean
  current_instance_id: string | null
}

export function InstancePage({ address: { path, query } }: { address: Address }): JSX.Element {
  const [user_id = '', client_id = ''] = [query.get('user_id') ?? '', query.get('client_id') ?? '']
  return (
    <Card isMain title="Instance" answer={useAnswer<Instance>(question(path, query))}>
      {(instance) => (
        <Fields
          record={instance}
          show={{
            current: (
              <Truth value={instance.current} yes="it holds its client" no="another one holds its client, or none" />
            ),
            current_instance_id: (
              <InstanceRef user_id={user_id} client_id={client_id} instance_id={instance.current_instance_id} />
            ),
          }}
        />
      )}
    </Card>
  )
}
