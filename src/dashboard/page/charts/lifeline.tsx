/** The life of one connection on an axis of time: what happened to it, and when it was last seen. */
import type { JSX } from 'preact'
import type { Connection, ConnectionEvent } from '../../../contract/connections.js'
import { useTick } from '../hooks.js'
import { Text } from '../parts/text.js'
import { Term, Time, TONES } from '../parts/value.js'
import { clock, durationText, spacedName, timeOf } from '../words.js'
import { axisBetween, Lane, Mark, Span, Ticks } from './axis.js'

interface LifelineProps {
  events: readonly ConnectionEvent[]
  connection: Connection | null
}

export function Lifeline({ events, connection }: LifelineProps): JSX.Element {
  const marks = events.map(({ at, event }) => ({ at: new Date(at).getTime(), name: event as string }))
  const isLive = connection?.status === 'connected'
  useTick(isLive ? 5_000 : Infinity)
  if (connection && isLive) marks.push({ at: new Date(connection.last_seen_at).getTime(), name: 'last_seen' })
  if (marks.length === 0) return <p class="empty">Nothing is recorded of it.</p>
  const times = marks.map(({ at }) => at)
  const from = Math.min(...times)
  const axis = axisBetween(from, Math.max(from + 1, isLive ? clock() : Math.max(...times)))
  return (
    <>
      <section class="score" aria-label="Lifeline">
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
