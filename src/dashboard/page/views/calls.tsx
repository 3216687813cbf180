/** Calls that wait for their reply, one of them, and whether an instance holds its client. */
import type { JSX } from 'preact'
import type { ConnectionAnswer } from '../../../internal/contract/connections.js'
import type {
  CallOutcomeName,
  EndedCallAnswer,
  InstanceCheck,
  ObservedCalls,
  PendingCallAnswer,
  RpcSummaryAnswer,
} from '../../../internal/contract/rpc.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { CallChart } from '../charts/call-chart.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields, idOf, whoOf } from '../parts/field.js'
import { choice, flag, ORDER, text } from '../parts/filters.js'
import { EXCERPT, type Listed, type ListView } from '../parts/list.js'
import { Table, type TableView } from '../parts/table.js'
import { Text } from '../parts/text.js'
import { Hint, Term, Time, Truth, terms } from '../parts/value.js'
import { countOf, durationText, spacedName } from '../words.js'

const deadlineOf = ({ deadline_at, overdue }: PendingCallAnswer) => (
  <>
    <Time at={deadline_at} age="short" /> {overdue && <Term value="overdue" />}
  </>
)

const ORIGIN = [choice('direction', ['to_client', 'to_server']), flag('observed')]

export const CALLS: ListView<PendingCallAnswer> = {
  path: '/rpc/pending',
  title: 'Calls',
  about: 'Calls that wait for their reply.',
  filters: [text('user_id'), text('client_id'), text('action'), text('trace_id'), flag('overdue'), ...ORIGIN, ORDER],
  keyOf: ({ correlation_id }) => correlation_id,
  markOf: ({ overdue }) => (overdue ? 'bad' : ''),
  presets: [['overdue', { overdue: 'true' }]],
  columns: [
    whoOf('correlation_id'),
    'action',
    'started_at',
    { head: 'deadline_at', cell: deadlineOf },
    'direction',
    'answered_since',
    idOf('correlation_id'),
    'instance_id',
  ],
}

const OUTCOMES: CallOutcomeName[] = ['succeeded', 'failed', 'timed_out', 'cancelled', 'unanswered']

export const ENDED_CALLS: ListView<EndedCallAnswer> = {
  path: '/rpc/ended',
  title: 'Ended calls',
  about: 'Calls that ended in the last hour.',
  filters: [
    text('user_id'),
    text('client_id'),
    text('action'),
    text('trace_id'),
    choice('outcome', OUTCOMES),
    ...ORIGIN,
    text('from'),
    text('to'),
    ORDER,
  ],
  keyOf: ({ correlation_id, ended_at }) => correlation_id + ended_at,
  presets: (['unanswered', 'failed', 'timed_out'] as const).map((outcome) => [spacedName(outcome), { outcome }]),
  columns: [
    whoOf('correlation_id'),
    { head: 'outcome', cell: ({ outcome, connection_reason }) => terms(outcome, connection_reason) },
    'ended_at',
    'action',
    'duration_ms',
    'direction',
    idOf('correlation_id'),
    'instance_id',
  ],
}

/** A call that takes longer counts as slow: from then on it is listed while it is open. */
const SLOW_MS = 1_000

interface ActionRow extends Pick<ObservedCalls['actions'][number], 'action' | 'direction' | 'failed' | 'unanswered'> {
  answered: number
  slower_than_1_s: number
}

/** The ends of observed calls of each action, those with unanswered calls first. */
function rowsOf({ actions, bounds_ms }: ObservedCalls): ActionRow[] {
  const slow = (sum: number, count: number, i: number) => sum + ((bounds_ms[i - 1] ?? 0) >= SLOW_MS ? count : 0)
  return actions
    .map(({ counts, ...each }) => ({
      ...each,
      answered: each.succeeded + each.failed,
      slower_than_1_s: counts.reduce(slow, 0),
    }))
    .sort((a, b) => b.unanswered - a.unanswered || b.answered - a.answered)
}

const BY_ACTION: TableView<ActionRow> = {
  keyOf: ({ action, direction }) => direction + action,
  columns: [
    {
      head: 'action',
      cell: ({ action, direction }) => (
        <a href={hrefOf(CALLS.path, { action, direction })}>
          <Text value={action} />
        </a>
      ),
    },
    { head: 'direction', cell: ({ direction }) => spacedName(direction) },
    'answered',
    'slower_than_1_s',
    'failed',
    {
      head: 'unanswered',
      cell: ({ action, unanswered }) => (
        <a class={unanswered > 0 ? 'bad' : 'dim'} href={hrefOf(ENDED_CALLS.path, { action, outcome: 'unanswered' })}>
          {countOf(unanswered)}
        </a>
      ),
    },
  ],
}

/** Calls by action, where followers observe them, at most so many; and how all ended. */
export const CallSummary = ({ most }: { most?: number }): JSX.Element => (
  <Card
    title={most ? 'Calls' : 'All calls'}
    href={hrefOf(CALLS.path)}
    answer={useAnswer<RpcSummaryAnswer>('/rpc/summary')}
  >
    {({ pending, oldest_age_ms, counters, observed }) => (
      <>
        {observed && <Table label="Calls by action" rows={rowsOf(observed).slice(0, most)} look={BY_ACTION} />}
        <p>
          <b>{countOf(pending)}</b> <Hint name="pending calls" label="open" />
          {oldest_age_ms !== null && `, the oldest for ${durationText(oldest_age_ms)}`}
        </p>
        <p class="dim">
          {Object.entries(counters ?? {})
            .filter(([name, count]) => count !== 0 || name === 'opened')
            .map(([name, value], i) => (
              <span key={name}>
                {i > 0 && ' · '}
                {countOf(value)} {/late|foreign/.test(name) ? <Hint name={name} /> : spacedName(name)}
              </span>
            ))}
        </p>
      </>
    )}
  </Card>
)

/** A pending or an ended call, as a timeline before its fields. */
export function CallPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<PendingCallAnswer | EndedCallAnswer>(path)
  const { user_id, client_id } = answer.value ?? {}
  const connections = useAnswer<Listed<ConnectionAnswer>>(
    user_id && client_id ? pathWithQuery('/connections', { user_id, client_id, limit: EXCERPT }) : null,
  )
  const gone = (
    <>
      A call that has its reply is among the <a href={hrefOf(ENDED_CALLS.path)}>ended calls</a> for an hour.
    </>
  )
  return (
    <Card isMain title="Call" answer={answer} gone={gone}>
      {(call) => (
        <>
          <CallChart call={call} connections={connections.isOld ? null : (connections.value?.items ?? null)} />
          <Fields record={call} />
        </>
      )}
    </Card>
  )
}

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
          }}
        />
      )}
    </Card>
  )
}
