/** The overview: what needs attention, the last hour of commands as a chart, and who is connected. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ConnectionChurnAnswer } from '../../../contract/connections.js'
import type { DeliveryCommandAnswer, DeliveryNodeAnswer } from '../../../contract/delivery.js'
import type { DeliveryChurnAnswer, DeliverySummaryAnswer } from '../../../contract/delivery-summary.js'
import type { RpcSummaryAnswer } from '../../../contract/rpc.js'
import type { ConnectionCount } from '../../../views/counts.js'
import { hrefOf, pathWithQuery } from '../address.js'
import { isIndexKnown, NOT_SCOPABLE, offers } from '../answers.js'
import { Churn, recentChurn } from '../charts/churn.js'
import { ENDS, OPEN_STATES, River } from '../charts/river.js'
import { useAnswer, useLook } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Field, Fields, Id } from '../parts/field.js'
import { Excerpt, type Listed } from '../parts/list.js'
import { Absent } from '../parts/state.js'
import { Text, Unknown } from '../parts/text.js'
import { Hint, hintOf, Term, Time, TONES } from '../parts/value.js'
import { type ClientEvent, commandNotice, eventNotice, happenings, notice } from '../tail.js'
import { countOf, durationText, spacedName } from '../words.js'
import { CALLS } from './calls.js'
import { COMMANDS } from './commands.js'
import { CONNECTIONS } from './connections.js'
import { Needs, useNodes } from './needs.js'
import { NODES } from './nodes.js'

const listOf = (state: string) => hrefOf('/delivery/commands', { state })

interface StandProps {
  state: string
  /** `null`: unknown. */
  count: number | null | undefined
}

/** How many commands are in one state. */
const Stand = ({ state, count }: StandProps): JSX.Element => (
  <div>
    <a href={listOf(state)} class={`stand ${state}`} {...hintOf(state)}>
      {state} <b>{count == null ? '?' : countOf(count)}</b>
    </a>
    {state === 'acknowledged' && <small>what they did is unknown</small>}
  </div>
)

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
function Reasons({ by_reason }: DeliverySummaryAnswer): JSX.Element {
  const reasons = Object.entries(by_reason ?? {}).filter(([reason]) => reason !== 'unspecified')
  const shown = reasons
    // It counts reasons beyond a bound too, which no filter finds.
    .filter(([reason]) => reason !== 'other')
    .sort(([, a], [, b]) => b - a)
    .slice(0, REASONS)
  const more = reasons.length - shown.length
  return (
    <ul class="inline">
      <li class="dim">
        <Hint name="ended, still kept" />
        {shown[0] && ', because'}
      </li>
      {shown.map(([reason, count]) => (
        <li key={reason}>
          <a href={hrefOf('/delivery/commands', { reason })}>
            {countOf(count)} {spacedName(reason)}
          </a>
        </li>
      ))}
      {more > 0 && <li class="dim">{more} more</li>}
    </ul>
  )
}

const Numbers = ({ value }: { value: DeliverySummaryAnswer }): JSX.Element => {
  const { by_state, oldest_open_age_ms, latency, legacy_reason, metadata } = value
  return (
    <>
      {by_state === null && metadata && <Fields record={metadata} />}
      <div class="flow" hidden={by_state === null && metadata !== null}>
        {OPEN_STATES.map((state) => (
          <Stand key={state} state={state} count={by_state?.[state]} />
        ))}
        <div class="ends">
          {ENDS.map((state) => {
            const count = by_state?.[state]
            return (
              <a key={state} href={listOf(state)} {...hintOf(state)}>
                <b class={count ? TONES.get(state) : 'dim'}>{count === undefined ? '?' : countOf(count)}</b> {state}
              </a>
            )
          })}
          <Reasons {...value} />
        </div>
      </div>
      <p>
        <b>{countOf(value.tracked_commands)}</b> <Hint name="in delivery" />
        {waitsOf(value)}, <b>{countOf(value.due_commands)}</b> <Hint name="due" />
        {latency?.total && latency.total.p50_ms !== null && latency.total.p95_ms !== null && (
          <>
            ; of the last {countOf(latency.total.sample_size)} half took at most {durationText(latency.total.p50_ms)},{' '}
            <Hint name="95 %" /> at most {durationText(latency.total.p95_ms)}
          </>
        )}
        {(value.legacy_stream_depth ?? legacy_reason ?? 'not_configured') !== 'not_configured' && (
          <span class="dim">
            ; legacy stream {countOf(value.legacy_stream_depth)}, pending {countOf(value.legacy_pending_depth)}
          </span>
        )}
        {/* Last, because its width changes with each answer. */}
        {oldest_open_age_ms !== null && `; the oldest in delivery for ${durationText(oldest_open_age_ms)}`}
      </p>
    </>
  )
}

function Commands(): JSX.Element {
  const summary = useAnswer<DeliverySummaryAnswer>('/delivery/summary')
  const hasRiver = offers('/delivery/churn')
  const churn = useAnswer<DeliveryChurnAnswer>(hasRiver ? '/delivery/churn' : null)
  // Callers with access to some users can list commands, but not read the summary.
  if (summary.problem?.code === NOT_SCOPABLE) return <Excerpt view={COMMANDS} query={{}} />
  return (
    <Card
      title="Commands"
      href={hrefOf('/delivery/commands')}
      answer={summary}
      class={hasRiver ? 'commands with-river' : 'commands'}
      note="the last hour"
    >
      {(value) => (
        <>
          {hasRiver && (
            <div class={churn.isOld && !summary.isOld ? 'river old' : 'river'}>
              {churn.value && <River items={churn.value.items} until={churn.value.observed_at} />}
            </div>
          )}
          <Numbers value={value} />
        </>
      )}
    </Card>
  )
}

const EVENTS = '/connections/events'
/** Lost clients that are named. */
const LOST = `${EVENTS}?event=disconnected&reason=heartbeat_lost&limit=3`

function LostClient({ user_id, client_id, at }: ClientEvent): JSX.Element {
  const client = { user_id, client_id }
  const path = pathWithQuery('/connections', { ...client, status: 'connected', limit: '1' })
  const { value, isOld } = useAnswer<Listed<unknown>>(path)
  return (
    <li>
      <Time at={at} /> heartbeat lost,{' '}
      {!value || isOld ? <Unknown /> : value.items.length > 0 ? 'back' : <span class="bad">not back</span>}:{' '}
      <a href={hrefOf('/connections', client)}>
        <Text value={client_id} />
      </a>{' '}
      <span class="dim">
        <Text value={user_id} />
      </span>
    </li>
  )
}

/** The last clients whose heartbeat was lost, as long as their connections are retained. */
function Lost(): JSX.Element {
  const { value } = useAnswer<Listed<ClientEvent>>(LOST)
  return (
    <ul class="plain lost">
      {value?.items.map((event) => (
        <LostClient key={event.connection_id} {...event} />
      ))}
    </ul>
  )
}

function Connections(): JSX.Element {
  const counts = useAnswer<ConnectionCount>('/connections/count?status=connected')
  const churn = useAnswer<ConnectionChurnAnswer>('/connections/churn')
  const recent = churn.value && !churn.isOld ? recentChurn(churn.value.items, churn.value.observed_at) : null
  return (
    <>
      <Card title="Connected clients" href={hrefOf('/connections', { status: 'connected' })} answer={counts}>
        {({ total, by_client_type, of_silent_nodes }) => (
          <>
            <p>
              <b class="figure">{total === null ? 'none ever reported' : countOf(total)}</b> <Hint name="connected" />{' '}
              {recent && (
                <small class={recent.change < 0 ? 'bad' : ''}>
                  {recent.change > 0 && '+'}
                  {countOf(recent.change)} <Hint name="in 3 min" />
                </small>
              )}
            </p>
            {recent && recent.gone.length > 0 && (
              <ul class="inline">
                <li class="dim">
                  <Hint name="gone" />
                </li>
                {recent.gone.map(([reason, count]) => (
                  <li key={reason}>
                    <a href={hrefOf('/connections', { ended_reason: reason })}>
                      {countOf(count)} {spacedName(reason)}
                    </a>
                  </li>
                ))}
              </ul>
            )}
            {of_silent_nodes !== null && of_silent_nodes > 0 && (
              <p class="bad">{countOf(of_silent_nodes)} of them on silent nodes: they may be disconnected</p>
            )}
            <ul class="bars">
              {Object.entries(by_client_type ?? {}).map(([type, count]) => (
                <li key={type}>
                  <a href={hrefOf('/connections', { status: 'connected', client_type: type })}>{type}</a>
                  <meter min={0} max={Math.max(1, total ?? 0)} value={count} aria-label={type} />{' '}
                  <b>{countOf(count)}</b>
                </li>
              ))}
            </ul>
            {offers(EVENTS) && <Lost />}
          </>
        )}
      </Card>
      <Card title="Connects and disconnects" answer={churn} note="per minute">
        {({ items, observed_at }) => <Churn items={items} until={observed_at} />}
      </Card>
    </>
  )
}

/** Rows of the tail: it is as high with one as with all. */
const TAIL = 8
/** Records of a list whose changes are followed. */
const FOLLOWED = 30

function JustNow(): JSX.Element {
  const commands = useAnswer<Listed<DeliveryCommandAnswer>>(`/delivery/commands?limit=${FOLLOWED}`)
  const hasEvents = offers(EVENTS)
  const events = useAnswer<Listed<ClientEvent>>(hasEvents ? `${EVENTS}?limit=${FOLLOWED}` : null)
  notice('commands', commands.value?.items, commandNotice)
  notice('events', events.value?.items, eventNotice)
  const [held, setHeld] = useState<ReturnType<typeof happenings> | null>(null)
  const shown = (held ?? happenings()).slice(-TAIL).reverse()
  const isOld = commands.isOld || events.isOld
  return (
    <section class="card tail">
      <h2>Just now</h2>
      <span class={isOld && (commands.asOf ?? events.asOf) !== null ? 'state old' : 'state'}>
        changes of the newest {FOLLOWED} commands{hasEvents && ' and connections'}, as this tab sees them
        {isOld && ': may have changed since'}
      </span>{' '}
      <button type="button" aria-pressed={held !== null} onClick={() => setHeld(held ? null : [...happenings()])}>
        hold
      </button>
      <ul class="plain">
        {shown.length === 0 && <li class="dim">{isOld ? 'Unknown: no answer.' : 'Nothing yet.'}</li>}
        {shown.map((row) => (
          <li key={row.key}>
            <Time at={new Date(row.at).toISOString()} />{' '}
            {'gap' in row ? (
              <span class="dim">more changed than could be followed</span>
            ) : (
              <>
                <Term value={row.what} /> <Id value={row.id} href={row.href} />{' '}
                <span class="dim">
                  <Text value={row.who} /> {row.why !== null && <Text value={`· ${spacedName(row.why)}`} />}
                </span>
              </>
            )}
          </li>
        ))}
      </ul>
    </section>
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

/** Above so many nodes each is a dot. */
const NAMED_NODES = 8

const Nodes = (): JSX.Element => (
  <Card title="Nodes" href={hrefOf('/delivery/nodes')} answer={useNodes()}>
    {({ items }) => {
      const most = Math.max(1, ...items.map(({ connection_waiters }) => connection_waiters ?? 0))
      return (
        <ul class={items.length > NAMED_NODES ? 'plain nodes many' : 'plain nodes'}>
          {items.map((node) => (
            <li key={node.node_id} title={node.node_id}>
              <span class={node.stale ? 'bad' : node.stale === null ? 'dim' : 'ok'}>
                {node.stale ? '▲' : node.stale === null ? '○' : '●'}
              </span>{' '}
              <Field name="node_id" record={node} />{' '}
              <span class="more">
                {node.stale && <Term value="silent" />}{' '}
                {node.staleness_ms === null ? <Unknown /> : <Silence of={node} />}
              </span>
              <span class="more">
                {node.connection_waiters === null ? (
                  <Unknown />
                ) : (
                  <>
                    <meter min={0} max={most} value={node.connection_waiters} aria-label="clients that wait" />{' '}
                    <Hint name="connection waiters" label="clients" /> {countOf(node.connection_waiters)}
                  </>
                )}
              </span>
            </li>
          ))}
        </ul>
      )
    }}
  </Card>
)

const Calls = (): JSX.Element => (
  <Card title="Calls" href={hrefOf('/rpc/pending')} answer={useAnswer<RpcSummaryAnswer>('/rpc/summary')}>
    {({ pending, overdue, oldest_age_ms, counters }) => (
      <>
        <p>
          <b class="figure">{countOf(pending)}</b>{' '}
          <small>
            <Hint name="pending calls" label="pending" />
            {oldest_age_ms !== null && `, the oldest for ${durationText(oldest_age_ms)}`}
          </small>
        </p>
        {overdue !== null && overdue > 0 && <p class="bad">{countOf(overdue)} of them past their deadline</p>}
        <p class="dim">
          {Object.entries(counters ?? {}).map(([name, value], i) => (
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

// Each part asks for itself: none is drawn again for the answer to another.
export function Overview(): JSX.Element {
  return (
    <>
      <h1 class="hidden">Overview</h1>
      <Needs />
      {/* Until it is known which parts there are, all are requested and none is shown: nothing moves when they come. */}
      <div class={isIndexKnown() ? '' : 'placing'}>
        <Commands />
        <div class="cards">
          <JustNow />
          <Nodes />
          <Connections />
          <Calls />
        </div>
      </div>
      <Absent views={[COMMANDS, NODES, CONNECTIONS, CALLS]} />
    </>
  )
}
