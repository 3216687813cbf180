/** A true axis of time, and the lanes on it: marks for events, spans for what took a while. */
import type { ComponentChildren, JSX } from 'preact'
import type { ConnectionAnswer, ConnectionEventAnswer } from '../../../internal/contract/connections.js'
import { useTick } from '../hooks.js'
import { Text } from '../parts/text.js'
import { Term, Time, TONES } from '../parts/value.js'
import { clock, durationText, spacedName, timeOf } from '../words.js'

/** Where an axis has a number. */
const TICKS = [0, 0.25, 0.5, 0.75, 1]

export interface Axis {
  from: number
  to: number
  /** Where on it something is, as CSS has it. */
  at(time: number): string
}

export const timeIn = (text: string | null | undefined) => (text == null ? null : Date.parse(text))

/** The axis from one instant to another, in epoch ms. */
export function axisBetween(from: number, to: number): Axis {
  const at = (time: number) => `${(Math.min(1, Math.max(0, (time - from) / (to - from))) * 100).toFixed(2)}%`
  return { from, to, at }
}

interface MarkProps {
  axis: Axis
  time: number
  glyph: string
  caption: string
  tone?: string
  /** Its text stands elsewhere. */
  isBare?: boolean
}

/** An event with its text, which is cut at the end of the lane. */
export const Mark = ({ axis, time, glyph, caption, tone = '', isBare }: MarkProps): JSX.Element => (
  <span
    class={`event ${tone} ${isBare ? 'bare' : time - axis.from > (axis.to - axis.from) * 0.5 ? 'late-on' : ''}`}
    role="img"
    // biome-ignore lint/a11y/noNoninteractiveTabindex: each is read by itself
    tabIndex={0}
    title={`${caption}, ${timeOf(time)}`}
    style={{ left: axis.at(time) }}
  >
    <bdi>{glyph}</bdi> <span aria-hidden="true">{caption}</span>
  </span>
)

/** A time that something took. */
export const Span = ({
  axis,
  from,
  to,
  kind,
  caption,
}: {
  axis: Axis
  from: number
  to: number
  kind: string
  caption: string
}) => (
  <span
    class={`span ${kind}`}
    title={`${caption}, ${timeOf(from)} to ${timeOf(to)}`}
    style={{ left: axis.at(from), right: `calc(100% - ${axis.at(to)})` }}
  />
)

interface LaneProps {
  name: string
  /** Classes of how it is drawn. */
  kind?: string
  children: ComponentChildren
}

export const Lane = ({ name, kind = '', children }: LaneProps): JSX.Element => (
  <div class={`lane ${kind}`}>
    <span class="name">{name}</span>
    <div class="track">{children}</div>
  </div>
)

/** The numbers above the lanes, `caption` of the ms since the start. */
export const Ticks = ({ axis, caption }: { axis: Axis; caption: (ms: number) => string }): JSX.Element => (
  <div class="lane axis-row" aria-hidden="true">
    <span class="name" />
    <div class="track">
      {TICKS.map((tick) => (
        <span key={tick} class="tick" style={{ left: `${tick * 100}%` }}>
          {caption((axis.to - axis.from) * tick)}
        </span>
      ))}
    </div>
  </div>
)

// The life of one connection on an axis of time: what happened to it, and when it was last seen.

interface LifelineProps {
  events: readonly ConnectionEventAnswer[]
  connection: ConnectionAnswer | null
}

export function Lifeline({ events, connection }: LifelineProps): JSX.Element {
  const marks = events.flatMap(({ at, event }) => (at === null ? [] : [{ at: Date.parse(at), name: event as string }]))
  const isLive = connection?.status === 'connected'
  useTick(isLive ? 5_000 : Infinity)
  if (connection?.last_seen_at && isLive) marks.push({ at: Date.parse(connection.last_seen_at), name: 'last_seen' })
  if (marks.length === 0) return <p class="empty">Nothing is recorded of it.</p>
  const times = marks.map(({ at }) => at)
  const from = Math.min(...times)
  const axis = axisBetween(from, Math.max(from + 1, isLive ? clock() : Math.max(...times)))
  return (
    <>
      <section class="event-chart" aria-label="Lifeline">
        <Ticks axis={axis} caption={(ms) => (ms === 0 ? timeOf(from) : `+${durationText(ms)}`)} />
        <Lane name="connection">
          {isLive && <Span axis={axis} from={from} to={axis.to} kind="there" caption="connected" />}
          {marks.map(({ at, name }) => (
            <Mark
              key={name + at}
              axis={axis}
              time={at}
              glyph="┃"
              caption={spacedName(name)}
              tone={TONES.get(name) ?? ''}
            />
          ))}
        </Lane>
      </section>
      <ol class="plain">
        {events.map(({ at, event, reason }, i) => (
          <li key={`${at} ${i}`}>
            <Time at={at} age="full" /> <Term value={event} />{' '}
            {reason !== null && (
              <span class="dim">
                because <Text value={spacedName(reason)} />
              </span>
            )}
          </li>
        ))}
      </ol>
    </>
  )
}
