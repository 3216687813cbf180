/** Connects and ends per minute of the last hour. Minutes without data are only marked as such. */
import type { JSX } from 'preact'
import type { ChurnMinute } from '../../../contract/connections.js'
import { countOf, spacedName } from '../words.js'
import { MINUTE_MS, Minutes, STEP, scaleOf, sum } from './minutes.js'

const HALF = 50

const reasonsOf = (ended: Record<string, number>) =>
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
  const scale = scaleOf(
    items.flatMap(({ opened, ended }) => [opened, sum(ended)]),
    'a minute',
  )
  return (
    <Minutes
      label="Connections of the last hour"
      items={items}
      until={until}
      height={2 * HALF}
      lines={[HALF]}
      draw={({ opened, ended }, x) => {
        const up = scale.share(opened) * HALF
        return (
          <>
            <rect class="opened" x={x + 1} y={HALF - up} width={STEP - 2} height={up} />
            <rect class="ended" x={x + 1} y={HALF} width={STEP - 2} height={scale.share(sum(ended)) * HALF} />
          </>
        )
      }}
      saidOf={({ opened, ended }) => `${countOf(opened)} opened; ended: ${reasonsOf(ended) || 'none'}`}
      caption={scale.caption}
      legend={['opened', 'ended']}
    />
  )
}
