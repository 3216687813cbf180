/** The life of one connection as a line: what happened to it, and when it was last heard of. */
import type { JSX } from 'preact'
import type { Connection, ConnectionEvent } from '../../../contract/connections.js'
import { Text } from '../parts/text.js'
import { Term, TONES } from '../parts/value.js'
import { agoOf, clock, durationText, spacedName, timeOf } from '../words.js'

const WIDTH = 900
const LEFT = 12

interface Mark {
  at: number
  name: string
  tone: string
}

export function Lifeline({
  events,
  connection,
}: {
  events: readonly ConnectionEvent[]
  connection: Connection | null
}): JSX.Element {
  const marks: Mark[] = events.map(({ at, event }) => ({
    at: new Date(at).getTime(),
    name: spacedName(event),
    tone: TONES.get(event) ?? '',
  }))
  const isLive = connection?.status === 'connected'
  if (connection && isLive)
    marks.push({ at: new Date(connection.last_seen_at).getTime(), name: 'last seen', tone: 'run' })
  if (marks.length === 0) return <p class="empty">Nothing is recorded of it.</p>
  const from = Math.min(...marks.map(({ at }) => at))
  const to = isLive ? clock() : Math.max(...marks.map(({ at }) => at))
  const x = (at: number) => LEFT + ((at - from) / Math.max(1, to - from)) * (WIDTH - 2 * LEFT)
  const said = marks.map(({ at, name }) => `${name} ${timeOf(at)}`).join(', ')
  return (
    <>
      <svg class="lifeline" viewBox={`0 0 ${WIDTH} 34`} role="img" aria-label={said}>
        <line class="life" x1={x(from)} x2={x(to)} y1="17" y2="17" />
        {isLive && <line class="live" x1={x(from)} x2={x(to)} y1="17" y2="17" />}
        {marks.map(({ at, name, tone }) => (
          <circle key={`${name} ${at}`} class={tone} cx={x(at)} cy="17" r="6">
            <title>{`${name} ${timeOf(at)}`}</title>
          </circle>
        ))}
      </svg>
      <ol class="plain">
        {events.map(({ at, event, reason }, i) => (
          <li key={`${at} ${i}`}>
            <time>{timeOf(at)}</time> <Term value={event} />{' '}
            {reason !== null && (
              <span class="dim">
                because <Text value={spacedName(reason)} />
              </span>
            )}{' '}
            <span class="dim">
              {i > 0 && `${durationText(new Date(at).getTime() - from)} after the first`} {i === 0 && agoOf(at)}
            </span>
          </li>
        ))}
      </ol>
    </>
  )
}
