/** Connects and ends per minute of the last hour. Minutes without data are only marked as such. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { ChurnMinute } from '../../../contract/connections.js'
import { countOf, spacedName, timeOf } from '../words.js'

// How numbers of very different size stand side by side: the root of each where one is far above the others.

/** So many times the median is a number that would press all others to a hairline. */
const FAR = 20

export interface Scale {
  /** From 0 to 1. */
  share(value: number): number
  /** What the picture must say of itself. */
  readonly caption: string
}

export function scaleOf(values: readonly number[], unit: string): Scale {
  const most = Math.max(1, ...values)
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const isRoot = median > 0 && most / median > FAR
  return {
    share: (value) => (isRoot ? Math.sqrt(value / most) : value / most),
    caption: `at most ${countOf(Math.max(0, ...values))} ${unit}${isRoot ? ', square-root scale' : ''}`,
  }
}

const MINUTE_MS = 60_000
const MINUTES = 60
const STEP = 10
const HALF = 50

const sum = (counts: Record<string, number>) => Object.values(counts).reduce((total, count) => total + count, 0)

const saidOf = (ended: Record<string, number>) =>
  Object.entries(ended)
    .map(([reason, count]) => `${countOf(count)} ${spacedName(reason)}`)
    .join(', ')

/** What the last minutes did to the number of connections; `null` where none of them was watched. */
export function recentChurn(items: readonly ChurnMinute[], until: string, minutes = 3) {
  const since = Date.parse(until) - minutes * MINUTE_MS
  const recent = items.filter(({ minute }) => Date.parse(minute) > since)
  if (recent.length === 0) return null
  const ended: Record<string, number> = {}
  for (const item of recent)
    for (const [reason, count] of Object.entries(item.ended)) ended[reason] = (ended[reason] ?? 0) + count
  const opened = recent.reduce((total, item) => total + item.opened, 0)
  return { change: opened - sum(ended), gone: Object.entries(ended) }
}

export function Churn({ items, until }: { items: readonly ChurnMinute[]; until: string }): JSX.Element {
  const last = Math.floor(Date.parse(until) / MINUTE_MS)
  const byMinute = new Map(items.map((item) => [Math.floor(Date.parse(item.minute) / MINUTE_MS), item]))
  const scale = scaleOf(
    items.flatMap(({ opened, ended }) => [opened, sum(ended)]),
    'a minute',
  )
  const worst = items.reduce<ChurnMinute | null>(
    (found, item) => (sum(item.ended) > (found ? sum(found.ended) : 0) ? item : found),
    null,
  )
  const caption = worst
    ? `most ended at ${timeOf(worst.minute)}: ${saidOf(worst.ended)}`
    : 'none ended in what was observed'
  const bars = useMemo(
    () =>
      Array.from({ length: MINUTES }, (_, i) => {
        const minute = last - MINUTES + 1 + i
        const item = byMinute.get(minute)
        const x = i * STEP
        if (!item)
          return (
            <rect key={minute} class="unwatched" x={x} y="0" width={STEP} height={2 * HALF}>
              <title>{`${timeOf(minute * MINUTE_MS)}: not observed`}</title>
            </rect>
          )
        const up = scale.share(item.opened) * HALF
        const down = scale.share(sum(item.ended)) * HALF
        return (
          <g key={minute}>
            <title>{`${timeOf(item.minute)}: ${countOf(item.opened)} opened; ended: ${saidOf(item.ended) || 'none'}`}</title>
            <rect x={x} y="0" width={STEP} height={2 * HALF} />
            <rect class="opened" x={x + 1} y={HALF - up} width={STEP - 2} height={up} />
            <rect class="ended" x={x + 1} y={HALF} width={STEP - 2} height={down} />
          </g>
        )
      }),
    [items, last],
  )
  return (
    <>
      <svg viewBox={`0 0 ${MINUTES * STEP} ${2 * HALF}`} role="img" aria-label={`Connections per minute; ${caption}`}>
        {bars}
        <line class="axis" x1="0" x2={MINUTES * STEP} y1={HALF} y2={HALF} />
      </svg>
      <p class="legend">
        <span class="key opened">opened</span>
        <span class="key ended">ended</span>
        {items.length < MINUTES && <span class="key unwatched">not observed</span>}
        <span>{scale.caption}</span>
        <span>{caption}</span>
      </p>
    </>
  )
}
