/** One command on one axis of time: what the relay recorded, what nodes tried, whether the client was there, and what it said. */

import type { JSX } from 'preact'
import type { ConnectionAnswer } from '../../../internal/contract/connections.js'
import type { DeliveryStatusAnswer } from '../../../internal/contract/delivery.js'
import { partsOf } from '../../../internal/contract/evidence.js'
import { useTick } from '../hooks.js'
import { clock, durationText, spacedName, timeOf } from '../words.js'
import { type Axis, axisBetween, Lane, Mark, Span, Ticks, timeIn } from './axis.js'

/**
 * From the admission, or the first time that is known, to the end; without one to the deadline, and to now where that has
 * passed. `null` if no time is known.
 */
function axisOf(status: DeliveryStatusAnswer): Axis | null {
  const { terminal } = status
  const { admission, attempts, acknowledgement } = partsOf(status)
  const tries = attempts.items.flatMap(({ at, ended_at }) => [at, ended_at])
  const known = [admission.at, terminal?.at, acknowledgement.at, attempts.last_at, ...tries].flatMap(
    (at) => timeIn(at) ?? [],
  )
  if (known.length === 0) return null
  const from = timeIn(admission.at) ?? Math.min(...known)
  const deadline = timeIn(admission.deadline_at)
  const open = Math.max(deadline ?? 0, deadline !== null && clock() < deadline ? 0 : clock())
  return axisBetween(from, Math.max(from + 1, timeIn(terminal?.at) ?? (terminal ? Math.max(...known) : open)))
}

/** What happened at a time that is not known, on a line of its own. */
const Untimed = ({ whats }: { whats: readonly string[] }): JSX.Element | null =>
  whats.length === 0 ? null : (
    <Lane name="" kind="same">
      <span class="dim">{spacedName(whats.join(', '))}, when is unknown</span>
    </Lane>
  )

function Relay({ status, axis }: { status: DeliveryStatusAnswer; axis: Axis }): JSX.Element {
  const { terminal } = status
  const { admission } = partsOf(status)
  const [from, deadline, end] = [admission.at, admission.deadline_at, terminal?.at].map(timeIn) as (number | null)[]
  const to = terminal ? end : Math.min(axis.to, clock())
  const [began, ended] = [admission.state ?? 'admission unknown', terminal?.state ?? 'ended']
  return (
    <>
      <Lane name="relay">
        {from != null && to != null && <Span axis={axis} from={from} to={to} kind="run" caption="open" />}
        {from != null && (
          <Mark axis={axis} time={from} glyph={admission.state === 'admitted' ? '●' : '✕'} caption={began} />
        )}
        {end != null && (
          <Mark
            axis={axis}
            time={end}
            glyph={ended === 'resulted' ? '✓' : '✕'}
            caption={ended}
            tone={ended === 'resulted' ? 'ok' : 'bad'}
          />
        )}
        {!terminal && deadline != null && <Mark axis={axis} time={deadline} glyph="▼" caption="deadline" tone="dim" />}
      </Lane>
      <Untimed whats={[...(from === null ? [began] : []), ...(terminal && end === null ? [ended] : [])]} />
    </>
  )
}

interface Try {
  number: number
  from: number | null
  to: number | null
  caption: string
  node: string | null
}

/** Every attempt that is kept one by one; without them the last one alone. */
function triesOf(status: DeliveryStatusAnswer): Try[] {
  const { attempts, acknowledgement } = partsOf(status)
  const { items, count, last_at, last_node_id, last_outcome } = attempts
  const isOver = status.terminal !== null || acknowledgement.state !== 'none'
  const pending = isOver ? 'outcome not recorded' : 'under way'
  if (items?.length)
    return items.map(({ number, at, ended_at, node_id, outcome, reason }) => ({
      number,
      from: timeIn(at),
      to: timeIn(ended_at),
      caption: spacedName(reason ?? outcome ?? pending),
      node: node_id,
    }))
  if (!count) return []
  return [
    {
      number: count,
      from: timeIn(last_at),
      to: null,
      caption: spacedName(last_outcome ?? pending),
      node: last_node_id,
    },
  ]
}

/** One row for each attempt: their texts cannot overlap, however soon one follows the other. */
function Nodes({ status, axis }: { status: DeliveryStatusAnswer; axis: Axis }): JSX.Element {
  const tries = triesOf(status)
  if (tries.length === 0)
    return (
      <Lane name="node">
        <span class="dim">
          {partsOf(status).attempts.count === null ? 'unknown' : 'no attempt: no node has claimed it'}
        </span>
      </Lane>
    )
  const nameOf = ({ node }: Try) => (node === null ? 'node unknown' : `node ${node}`)
  return (
    <>
      {tries.map((each, i) => {
        const { number, from, to, caption } = each
        const isSame = i > 0 && tries[i - 1]?.node === each.node
        return (
          <Lane key={number} name={isSame ? '' : nameOf(each)} kind={isSame ? 'try same' : 'try'}>
            {from !== null && to !== null && (
              <Span axis={axis} from={from} to={to} kind="try" caption={`attempt ${number}`} />
            )}
            {from === null ? (
              <span class="dim">{`▪${number} ${caption}, when is unknown`}</span>
            ) : (
              <Mark axis={axis} time={from} glyph={`▪${number}`} caption={caption} />
            )}
          </Lane>
        )
      })}
    </>
  )
}

interface ClientLaneProps {
  connections: readonly ConnectionAnswer[] | null
  axis: Axis
}

/** Whether the client was connected; unknown before the first connection that is kept. */
export function ClientLane({ connections, axis }: ClientLaneProps): JSX.Element {
  if (!connections)
    return (
      <Lane name="client">
        <span class="dim">presence unknown</span>
      </Lane>
    )
  const until = Math.min(axis.to, clock())
  const times = connections.flatMap(({ connected_at, disconnected_at, ended_reason, connection_id, status }) => {
    const [from, end] = [timeIn(connected_at), timeIn(disconnected_at)]
    const to = end ?? (status === 'connected' ? until : null)
    return from === null || to === null
      ? []
      : [{ id: connection_id, from, to, end, why: ended_reason ?? 'disconnected' }]
  })
  const untimed = connections.length - times.length
  const lives = times.filter(({ from, to }) => to >= axis.from && from <= until)
  const known = untimed > 0 ? axis.from : Math.min(...times.map(({ from }) => from))
  const marks = lives
    .flatMap(({ id, from, end, why }) => [
      ...(from > axis.from ? [{ key: `${id} on`, time: from, glyph: '┃', caption: 'connected', tone: 'ok' }] : []),
      ...(end !== null && end <= axis.to
        ? [{ key: `${id} off`, time: end, glyph: '┊', caption: spacedName(why), tone: 'bad' }]
        : []),
    ])
    .sort((a, b) => a.time - b.time)
  // Their texts could overlap: they have a line of their own then.
  const isCrowded = marks.length > 1
  return (
    <>
      <Lane name="client">
        {known > axis.from && (
          <Span
            axis={axis}
            from={axis.from}
            to={Math.min(known, until)}
            kind="unwatched"
            caption="no connection of then is kept"
          />
        )}
        {lives.map(({ id, from, to }) => (
          <Span key={id} axis={axis} from={from} to={to} kind="there" caption="connected" />
        ))}
        {marks.map((mark) => (
          <Mark {...mark} axis={axis} isBare={isCrowded} key={mark.key} />
        ))}
        {lives.length === 0 && untimed === 0 && known <= axis.from && (
          <span class="dim">not connected in this time</span>
        )}
      </Lane>
      {untimed > 0 && <Untimed whats={[`${untimed} of ${connections.length} connections`]} />}
      {isCrowded && (
        <Lane name="" kind="same">
          <span class="dim">
            {marks
              .map(({ glyph, caption, time }) => `${glyph}\u00a0${caption} +${durationText(time - axis.from)}`)
              .join(' · ')}
          </span>
        </Lane>
      )}
    </>
  )
}

function Said({ status, axis }: { status: DeliveryStatusAnswer; axis: Axis }): JSX.Element {
  const { terminal } = status
  const { state, at } = partsOf(status).acknowledgement
  const time = timeIn(at)
  return (
    <Lane name="client said">
      {state === null ? (
        <span class="dim">unknown</span>
      ) : state === 'none' ? (
        <span class="dim">nothing {terminal ? 'in time: no acknowledgement, no refusal' : 'yet'}</span>
      ) : time === null ? (
        <span class="dim">{state}, when is unknown</span>
      ) : (
        <Mark
          axis={axis}
          time={time}
          glyph={state === 'refused' ? '✕' : '●'}
          caption={state}
          tone={state === 'refused' ? 'bad' : 'ok'}
        />
      )}
    </Lane>
  )
}

interface EventChartProps {
  status: DeliveryStatusAnswer
  /** Connections of the client; `null` if unknown. */
  connections: readonly ConnectionAnswer[] | null
}

export function EventChart({ status, connections }: EventChartProps): JSX.Element {
  useTick(status.terminal ? Infinity : 1_000)
  const axis = axisOf(status)
  if (!axis) return <p class="dim">When it was admitted, attempted and ended is unknown.</p>
  const omitted = (partsOf(status).attempts.count ?? 0) - triesOf(status).length
  return (
    <section class="event-chart" aria-label="What happened, by time">
      <Ticks axis={axis} caption={(ms) => (ms === 0 ? timeOf(axis.from) : `+${durationText(ms)}`)} />
      <Relay status={status} axis={axis} />
      <Nodes status={status} axis={axis} />
      <ClientLane connections={connections} axis={axis} />
      <Said status={status} axis={axis} />
      {omitted > 0 && (
        <p class="dim">
          {omitted} earlier attempt{omitted === 1 ? ' is' : 's are'} not kept one by one.
        </p>
      )}
      <p class="legend">
        <span class="key there">connected</span>
        <span class="key unwatched">not known</span>
        <span>Clocks of nodes may differ.</span>
      </p>
    </section>
  )
}
