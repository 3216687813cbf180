/** The state of the relay at a glance: commands as a flow, who delivers, who is connected, what contradicts what. */
import type { JSX } from 'preact'
import type { ConnectionChurn, ConnectionCounts } from '../../../contract/connections.js'
import type { DeliveryCommand, DeliveryNode, DeliverySummary } from '../../../contract/delivery.js'
import type { RpcSummary } from '../../../contract/rpc.js'
import type { SourceRow } from '../../../diagnostics/sources.js'
import type { FindingPage } from '../../../views/findings/finding.js'
import { hrefOf } from '../address.js'
import { NOT_SCOPABLE } from '../answers.js'
import { Churn } from '../charts/churn.js'
import { type End, Flow, type Stage } from '../charts/flow.js'
import { Spark } from '../charts/spark.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import type { Listed } from '../parts/list.js'
import { Absent } from '../parts/state.js'
import { Table } from '../parts/table.js'
import { Time } from '../parts/value.js'
import { sampled } from '../samples.js'
import { countOf, durationText, spacedName } from '../words.js'
import { CALLS } from './calls.js'
import { COMMANDS } from './commands.js'
import { CONNECTIONS } from './connections.js'
import { NoneFound, Subject } from './findings.js'
import { type AnswerState, Headline } from './headline.js'
import { NODE_COLUMNS, NODES } from './nodes.js'

const ENDS = ['resulted', 'failed', 'expired', 'cancelled', 'rejected']
const NODE_LOOK = { ...NODES, columns: NODE_COLUMNS }
const STATES = ['waiting', 'attempted', 'acknowledged'] as const
const NOTES: Record<string, string> = { acknowledged: 'what they did is unknown' }

/** Sums of what the nodes have counted; `null` where none has said. */
function counted(nodes: readonly DeliveryNode[] | undefined) {
  if (!nodes || nodes.length === 0) return { admitted: null, ends: [] as End[] }
  const sum = (group: keyof DeliveryNode['counters'], name: string) =>
    nodes.reduce((total, { counters }) => total + (counters[group][name] ?? 0), 0)
  return {
    admitted: sum('other', 'admitted'),
    ends: ENDS.map((state) => ({ state, count: sum('outcome', state) })),
  }
}

const Sums = ({ answer: { value, asOf } }: { answer: AnswerState<DeliverySummary> }) =>
  value && (
    <div class="under">
      <p>
        <b>{countOf(value.tracked_commands)}</b> tracked, <b>{countOf(value.due_commands)}</b> due,{' '}
        <b>{countOf(value.waiting_for_client)}</b> waiting for their client
        {value.oldest_queued_age_ms !== null && (
          <>
            ; oldest queued {durationText(value.oldest_queued_age_ms)}{' '}
            <span class="dim">in a sample of {countOf(value.sample_size)}</span>
          </>
        )}
        {value.legacy_reason !== 'not_configured' && (
          <span class="dim">
            ; legacy stream {countOf(value.legacy_stream_depth)}, pending {countOf(value.legacy_pending_depth)}, lag{' '}
            {countOf(value.legacy_stream_lag)} {spacedName(value.legacy_reason ?? '')}
          </span>
        )}
      </p>
      <Spark name="tracked" samples={sampled('tracked', asOf, value.tracked_commands)} />
    </div>
  )

function Commands({ nodes }: { nodes: AnswerState<Listed<DeliveryNode>> }): JSX.Element {
  const summary = useAnswer<DeliverySummary>('/delivery/summary')
  const byState = summary.value?.by_state
  const { admitted, ends } = counted(nodes.value?.items)
  // Whoever sees some users has their commands, and no sum.
  const isSome = summary.problem?.code === NOT_SCOPABLE
  // Of one moment with the sum beside them; lists of three moments only where nobody has counted.
  const isListed = isSome || byState === null
  const lists = STATES.map((state) =>
    useAnswer<Listed<DeliveryCommand>>(isListed ? `/delivery/commands?state=${state}&limit=100` : null, true),
  )
  const stages = STATES.map((state, i): Stage => {
    const { value = null, isOld = false } = lists[i] ?? {}
    return {
      state,
      count: byState?.[state] ?? value?.items.length ?? null,
      isMore: value?.has_more ?? false,
      note: NOTES[state] ?? null,
      isOld,
    }
  })
  return (
    <Card<object>
      title="Commands"
      href={hrefOf('/delivery/commands')}
      answer={isSome && lists[0] ? { ...lists[0], value: lists[0].value && {} } : summary}
      class="wide"
      note={isSome ? 'those that have not ended' : 'ends are counted by the nodes since each started'}
    >
      {() => (
        <>
          <Flow admitted={isSome ? undefined : admitted} stages={stages} ends={ends} />
          <Sums answer={summary} />
        </>
      )}
    </Card>
  )
}

const Findings = ({ answer }: { answer: AnswerState<FindingPage> }): JSX.Element => (
  <Card title="Findings" href={hrefOf('/findings')} answer={answer} note="what the sources contradict">
    {(page) => (
      <>
        <ul class="plain">
          {page.items.slice(0, 5).map(({ finding_id, kind, subject, since }) => (
            <li key={finding_id}>
              <a class="bad" href={hrefOf('/findings', { kind })}>
                {spacedName(kind)}
              </a>{' '}
              <Time at={since} age="full" />
              <br />
              <Subject subject={subject} />
            </li>
          ))}
        </ul>
        {page.items.length > 5 && (
          <p class="dim">
            and {page.items.length - 5}
            {page.has_more && ' or'} more
          </p>
        )}
        {page.items.length === 0 && <NoneFound {...page} />}
      </>
    )}
  </Card>
)

function Connections(): JSX.Element {
  const counts = useAnswer<ConnectionCounts & { of_silent_nodes: number | null }>('/connections/count?status=connected')
  const churn = useAnswer<ConnectionChurn>('/connections/churn')
  return (
    <>
      <Card title="Connected clients" href={hrefOf('/connections', { status: 'connected' })} answer={counts}>
        {({ total, by_client_type, of_silent_nodes }) => (
          <>
            <p class="figure">{countOf(total)}</p>
            {of_silent_nodes !== null && of_silent_nodes > 0 && (
              <p class="bad">{countOf(of_silent_nodes)} of them on silent nodes: they may be disconnected</p>
            )}
            <ul class="bars">
              {Object.entries(by_client_type).map(([type, count]) => (
                <li key={type}>
                  <a href={hrefOf('/connections', { status: 'connected', client_type: type })}>{type}</a>
                  <meter min={0} max={Math.max(1, total)} value={count} aria-label={type} /> <b>{countOf(count)}</b>
                </li>
              ))}
            </ul>
            <Spark name="connected" samples={sampled('connected', counts.asOf, total)} />
          </>
        )}
      </Card>
      <Card title="Connects and disconnects" answer={churn} note="per minute, the last hour">
        {({ items, observed_at }) => <Churn items={items} until={observed_at} />}
      </Card>
    </>
  )
}

const Calls = (): JSX.Element => (
  <Card title="Calls" href={hrefOf('/rpc/pending')} answer={useAnswer<RpcSummary>('/rpc/summary')}>
    {({ pending, overdue, oldest_age_ms, counters }) => (
      <>
        <p class="figure">
          {countOf(pending)}{' '}
          <small>wait{oldest_age_ms !== null && `, the oldest for ${durationText(oldest_age_ms)}`}</small>
        </p>
        {overdue > 0 && <p class="bad">{countOf(overdue)} past their deadline</p>}
        <p class="dim">
          {Object.entries(counters)
            .map(([name, value]) => `${countOf(value)} ${spacedName(name)}`)
            .join(' · ')}
        </p>
      </>
    )}
  </Card>
)

const Sources = ({ answer }: { answer: AnswerState<{ items: SourceRow[] }> }): JSX.Element => (
  <Card title="Sources" href={hrefOf('/sources')} answer={answer} note="asked just now">
    {({ items }) => (
      <ul class="inline">
        {items.map(({ source, answered, duration_ms, code }) => (
          <li key={source}>
            {answered ? <span class="ok">✓</span> : <span class="bad">✕</span>} {spacedName(source)}{' '}
            <span class={answered ? 'dim' : 'bad'}>
              {answered ? `${duration_ms} ms` : spacedName(code ?? 'no answer')}
            </span>
          </li>
        ))}
      </ul>
    )}
  </Card>
)

export function Overview(): JSX.Element {
  const nodes = useAnswer<Listed<DeliveryNode>>('/delivery/nodes', true)
  const findings = useAnswer<FindingPage>('/findings?limit=100', true)
  const sources = useAnswer<{ items: SourceRow[] }>('/sources')
  return (
    <>
      <h1 class="hidden">Overview</h1>
      <Headline findings={findings} nodes={nodes} sources={sources} />
      <Commands nodes={nodes} />
      <div class="cards">
        <Card title="Nodes" href={hrefOf('/delivery/nodes')} answer={nodes}>
          {({ items }) => <Table label="Nodes" rows={items} look={NODE_LOOK} />}
        </Card>
        <Findings answer={findings} />
        <Connections />
        <Calls />
        <Sources answer={sources} />
      </div>
      <Absent views={[COMMANDS, NODES, CONNECTIONS, CALLS]} />
    </>
  )
}
