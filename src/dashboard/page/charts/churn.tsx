/** How many connections came and went in each minute of the last hour; of a minute that nobody watched nothing is drawn but that. */
import type { JSX } from 'preact'
import type { ChurnMinute } from '../../../contract/connections.js'
import { countOf, spacedName, timeOf } from '../words.js'

const MINUTE_MS = 60_000
const MINUTES = 60
const STEP = 10
const HALF = 50

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, count) => total + count, 0)

const reasonsOf = ({ ended }: ChurnMinute) =>
  Object.entries(ended)
    .map(([reason, count]) => `${countOf(count)} ${spacedName(reason)}`)
    .join(', ')

export function Churn({ items, until }: { items: readonly ChurnMinute[]; until: string }): JSX.Element {
  const last = Math.floor(new Date(until).getTime() / MINUTE_MS)
  const byMinute = new Map(items.map((item) => [Math.floor(new Date(item.minute).getTime() / MINUTE_MS), item]))
  const most = Math.max(1, ...items.flatMap(({ opened, ended }) => [opened, sum(ended)]))
  const worst = items.reduce<ChurnMinute | null>(
    (found, item) => (sum(item.ended) > (found ? sum(found.ended) : 0) ? item : found),
    null,
  )
  const said = worst ? `most ended at ${timeOf(worst.minute)}: ${reasonsOf(worst)}` : 'none ended in what was watched'
  return (
    <>
      <svg viewBox={`0 0 ${MINUTES * STEP} ${2 * HALF}`} role="img" aria-label={`Connections per minute; ${said}`}>
        {Array.from({ length: MINUTES }, (_, i) => {
          const minute = last - MINUTES + 1 + i
          const item = byMinute.get(minute)
          const x = i * STEP
          if (!item)
            return (
              <rect key={minute} class="unwatched" x={x} y="0" width={STEP} height={2 * HALF}>
                <title>{`${timeOf(minute * MINUTE_MS)}: not observed`}</title>
              </rect>
            )
          const up = (item.opened / most) * HALF
          const down = (sum(item.ended) / most) * HALF
          return (
            <g key={minute}>
              <title>{`${timeOf(item.minute)}: ${countOf(item.opened)} opened; ended: ${reasonsOf(item) || 'none'}`}</title>
              <rect x={x} y="0" width={STEP} height={2 * HALF} />
              <rect class="opened" x={x + 1} y={HALF - up} width={STEP - 2} height={up} />
              <rect class="ended" x={x + 1} y={HALF} width={STEP - 2} height={down} />
            </g>
          )
        })}
        <line class="axis" x1="0" x2={MINUTES * STEP} y1={HALF} y2={HALF} />
      </svg>
      <p class="legend">
        <span class="key opened">opened</span>
        <span class="key ended">ended</span>
        {items.length < MINUTES && <span class="key unwatched">not observed</span>}
        <span>{said}</span>
      </p>
    </>
  )
}
