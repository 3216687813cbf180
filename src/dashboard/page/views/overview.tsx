/** The overview: what is wrong, the numbers of each family that is fed, and what happens over time. */
import type { JSX } from 'preact'
import type { ConnectionChurnAnswer } from '../../../internal/contract/connections.js'
import type { DeliveryNodeAnswer } from '../../../internal/contract/delivery.js'
import type { DeliveryChurnAnswer, DeliverySummaryAnswer } from '../../../internal/contract/delivery-summary.js'
import { hrefOf } from '../address.js'
import { isIndexKnown, NOT_SCOPABLE, offers } from '../answers.js'
import { Churn, recentChurn } from '../charts/churn.js'
import { ENDS, EndedChart, OPEN_STATES, OpenChart } from '../charts/command-chart.js'
import { FEEDS, isShown, useFeed } from '../feed.js'
import { useAnswer, useLook } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Field, Fields } from '../parts/field.js'
import { Excerpt } from '../parts/list.js'
import { Absent } from '../parts/state.js'
import { Hint, hintOf, Term } from '../parts/value.js'
import { countOf, durationText, spacedName } from '../words.js'
import { Attention, useProblems } from './attention.js'
import { CALLS, CallSummary } from './calls.js'
import { COMMANDS } from './commands.js'
import { CONNECTIONS } from './connections.js'
import { NODES, useNodes } from './nodes.js'
import { Heading, Numbers } from './numbers.js'

const listOf = (state: string) => hrefOf('/delivery/commands', { state })

/** What the open commands wait for, the most common first. */
function waitsOf({ waits_for }: DeliverySummaryAnswer): string | false {
  const waits = Object.entries(waits_for ?? {})
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `${countOf(count)} for ${spacedName(name)}`)
  return waits.length > 0 && `, waiting: ${waits.join(', ')}`
}

/** Reasons that are shown: the most common ones. */
const REASONS = 3

/** Why commands ended, the most common reasons first. */
function Reasons({ by_reason }: DeliverySummaryAnswer): JSX.Element | null {
  const reasons = Object.entries(by_reason ?? {}).filter(([reason]) => reason !== 'unspecified')
  const shown = reasons
    // It counts reasons beyond a bound too, which no filter finds.
    .filter(([reason]) => reason !== 'other')
    .sort(([, a], [, b]) => b - a)
    .slice(0, REASONS)
  const more = reasons.length - shown.length
  return (
    <p class="ends">
      Ended:{' '}
      {shown.length === 0
        ? 'no reasons given'
        : shown.map(([reason, count]) => (
            <a key={reason} href={hrefOf('/delivery/commands', { reason })}>
              {countOf(count)} {spacedName(reason)}
            </a>
          ))}
      {more > 0 && <span class="dim">{more} more</span>}
    </p>
  )
}

const BAD_ENDS = /failed|expired|rejected/

/** How many commands are in each state, and why the ended ones ended. */
const States = ({ value }: { value: DeliverySummaryAnswer }): JSX.Element => {
  const { by_state, oldest_open_age_ms, latency, metadata } = value
  if (by_state === null && metadata) return <Fields record={metadata} />
  const State = (state: (typeof OPEN_STATES)[number] | (typeof ENDS)[number]) => {
    const count = by_state?.[state]
    const isBad = BAD_ENDS.test(state) && !!count
    return (
      <a key={state} href={listOf(state)} class={isBad ? 'bad' : ''} {...hintOf(state)}>
        <span class={`key ${state}`}>{state}</span> <b>{count == null ? '?' : countOf(count)}</b>
      </a>
    )
  }
  return (
    <>
      <div class="flow">
        {OPEN_STATES.map(State)}
        {ENDS.map(State)}
      </div>
      <Reasons {...value} />
      <p>
        <b>{countOf(value.tracked_commands)}</b> <Hint name="open" />
        {waitsOf(value)}, <b>{countOf(value.due_commands)}</b> <Hint name="due" />
        {latency?.total && latency.total.p50_ms !== null && latency.total.p95_ms !== null && (
          <>
            ; of the last {countOf(latency.total.sample_size)} half took at most {durationText(latency.total.p50_ms)},{' '}
            <Hint name="95 %" /> at most {durationText(latency.total.p95_ms)}
          </>
        )}
        {/* Last, because its width changes with each answer. */}
        {oldest_open_age_ms !== null && `; the oldest open for ${durationText(oldest_open_age_ms)}`}
      </p>
    </>
  )
}

/** Two charts, each with one question. */
function Charts({ items, observed_at }: DeliveryChurnAnswer): JSX.Element {
  return (
    <>
      <div>
        <h3>Open now, by state</h3>
        <OpenChart items={items} until={observed_at} />
      </div>
      <div>
        <h3>Ended per minute, by end</h3>
        <EndedChart items={items} until={observed_at} />
      </div>
    </>
  )
}

function Commands(): JSX.Element {
  const summary = useAnswer<DeliverySummaryAnswer>('/delivery/summary')
  const hasChart = offers('/delivery/churn')
  const churn = useAnswer<DeliveryChurnAnswer>(hasChart ? '/delivery/churn' : null)
  // Callers with access to some users can list commands, but not read the summary.
  if (summary.problem?.code === NOT_SCOPABLE) return <Excerpt view={COMMANDS} query={{}} />
  return (
    <Card
      title="Commands"
      href={hrefOf('/delivery/commands')}
      answer={summary}
      class={hasChart ? 'commands with-chart' : 'commands'}
      note="the last hour"
    >
      {(value) => (
        <>
          <States value={value} />
          {hasChart && (
            <div class={churn.isOld && !summary.isOld ? 'command-chart old' : 'command-chart'}>
              {churn.value && <Charts {...churn.value} />}
            </div>
          )}
        </>
      )}
    </Card>
  )
}

function Connections(): JSX.Element {
  const churn = useAnswer<ConnectionChurnAnswer>('/connections/churn')
  const recent = churn.value && !churn.isOld ? recentChurn(churn.value.items, churn.value.observed_at) : null
  return (
    <Card title="Connects and disconnects" href={hrefOf('/connections')} answer={churn} note="per minute">
      {({ items, observed_at }) => (
        <>
          <Churn items={items} until={observed_at} />
          <ul class="inline">
            <li class="dim">
              <Hint name="ended in 3 min" />
            </li>
            {recent?.gone.map(([reason, count]) => (
              <li key={reason}>
                <a href={hrefOf('/connections', { ended_reason: reason })}>
                  {countOf(count)} {spacedName(reason)}
                </a>
              </li>
            ))}
            {recent?.gone.length === 0 && <li class="dim">none</li>}
          </ul>
        </>
      )}
    </Card>
  )
}

/** A node that reports is silent for some of this between two reports: its exact number changes with each answer. */
const STEADY_MS = 10_000

function Silence({ of }: { of: DeliveryNodeAnswer }): JSX.Element {
  const [label] = useLook(() => {
    const ms = of.staleness_ms ?? 0
    return [ms < STEADY_MS ? '< 10 s' : durationText(ms)]
  })
  return <Hint name="silent for" label={label} />
}

/** Nodes that are named: silent ones first. */
const NAMED_NODES = 8

const Nodes = (): JSX.Element => (
  <Card title="Nodes" href={hrefOf('/delivery/nodes')} answer={useNodes()}>
    {({ items }) => (
      <ul class="plain nodes">
        {items
          .toSorted((a, b) => Number(b.stale) - Number(a.stale))
          .slice(0, NAMED_NODES)
          .map((node) => (
            <li key={node.node_id}>
              <span class={node.stale ? 'bad' : node.stale === null ? 'dim' : 'ok'}>
                {node.stale ? '▲' : node.stale === null ? '○' : '●'}
              </span>
              <Field name="node_id" record={node} />
              <span class="more">
                {node.stale && <Term value="silent" />} {node.staleness_ms !== null && <Silence of={node} />}
              </span>
              <span>
                {node.connection_waiters !== null && (
                  <>
                    <Hint name="connection waiters" label="waiting" /> {countOf(node.connection_waiters)}
                  </>
                )}
              </span>
            </li>
          ))}
        {items.length > NAMED_NODES && <li class="dim">{items.length - NAMED_NODES} more</li>}
      </ul>
    )}
  </Card>
)

/** Actions that the overview names. */
const ACTIONS = 5

/** `name` is the deployment. */
export function Overview({ name }: { name: string }): JSX.Element {
  const problems = useProblems()
  const feed = useFeed()
  const isFed = (family: string) => isShown(feed[FEEDS.findIndex((each) => each.name === family)])
  const isKnown = isIndexKnown() && !feed.includes('unknown')
  const isEmpty = isKnown && !feed.some(isShown)
  return (
    <>
      <Heading name={name} problems={problems} />
      {/* Until it is known which families there are, none is shown: nothing moves when they come. */}
      <div class={isKnown ? 'parts' : 'parts placing'}>
        <Numbers problems={problems} isFed={isFed} />
        <Attention {...problems} />
        {isEmpty && <p class="card">Nothing has been reported yet. What feeds each page stands below “More”.</p>}
        {isFed('Commands') && <Commands />}
        {isFed('Calls') && !isFed('Commands') && <CallSummary most={ACTIONS} />}
        <div class="cards">
          {isFed('Clients') && <Connections />}
          {isFed('Calls') && isFed('Commands') && <CallSummary most={ACTIONS} />}
          {isFed('Commands') && <Nodes />}
        </div>
      </div>
      <Absent views={[COMMANDS, NODES, CONNECTIONS, CALLS]} />
    </>
  )
}
