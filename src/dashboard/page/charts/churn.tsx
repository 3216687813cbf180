/** Connects and ends per minute of the last hour. Minutes without data are only marked as such. */
import type { JSX } from 'preact'
import type { ChurnMinuteAnswer } from '../../../contract/connections.js'
import { clock, countOf, spacedName } from '../words.js'
import { MINUTE_MS, Minutes, STEP, scaleOf, sum } from './minutes.js'

const HALF = 50

const reasonsOf = (ended: Record<string, number> | null) =>
  Object.entries(ended ?? {})
    .map(([reason, count]) => `${countOf(count)} ${spacedName(reason)}`)
    .join(', ')

/** What the last minutes did to the number of connections; `null` where none of them was watched. */
export function recentChurn(items: readonly ChurnMinuteAnswer[], until: string | null, minutes = 3) {
  const since = (until === null ? clock() : Date.parse(until)) - minutes * MINUTE_MS
  const recent = items.filter(({ minute }) => Date.parse(minute) > since)
  if (recent.length === 0 || recent.some(({ opened, ended }) => opened === null || ended === null)) return null
  const ended: Record<string, number> = {}
  for (const item of recent)
    for (const [reason, count] of Object.entries(item.ended ?? {})) ended[reason] = (ended[reason] ?? 0) + count
  const opened = recent.reduce((total, item) => total + (item.opened ?? 0), 0)
  return { change: opened - sum(ended), gone: Object.entries(ended) }
}

export function Churn({ items, until }: { items: readonly ChurnMinuteAnswer[]; until: string | null }): JSX.Element {
  const scale = scaleOf(
    items.flatMap(({ opened, ended }) => [opened ?? 0, sum(ended ?? {})]),
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
        const up = scale.share(opened ?? 0) * HALF
        return (
          <>
            <rect class="opened" x={x + 1} y={HALF - up} width={STEP - 2} height={up} />
            <rect class="ended" x={x + 1} y={HALF} width={STEP - 2} height={scale.share(sum(ended ?? {})) * HALF} />
          </>
        )
      }}
      saidOf={({ opened, ended }) =>
        `${countOf(opened)} opened; ended: ${ended === null ? 'unknown' : reasonsOf(ended) || 'none'}`
      }
      caption={scale.caption}
      legend={['opened', 'ended']}
    />
  )
}
