/** Connects and disconnects per minute. Minutes without data are only marked as such. */
import type { JSX } from 'preact'
import type { ChurnMinuteAnswer } from '../../../internal/contract/connections.js'
import { clock, countOf, spacedName } from '../words.js'
import { MINUTE_MS, Minutes, STEP, scaleOf, sum, Unknown } from './minutes.js'

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
  const scale = scaleOf(items.flatMap(({ opened, ended }) => [opened ?? [], ended ? sum(ended) : []].flat()))
  return (
    <Minutes
      label="Connects and disconnects per minute"
      items={items}
      until={until}
      height={2 * HALF}
      lines={[HALF]}
      draw={({ opened, ended }, x) => {
        const [up, down] = [opened, ended && sum(ended)].map((count) => count && scale.share(count) * HALF)
        const bar = (kind: string, y: number, height: number) => (
          <rect class={kind} x={x + 1} y={y} width={STEP - 2} height={height} />
        )
        return (
          <>
            {up == null ? <Unknown x={x} y={0} height={HALF} /> : bar('opened', HALF - up, up)}
            {down == null ? <Unknown x={x} y={HALF} height={HALF} /> : bar('ended', HALF, down)}
          </>
        )
      }}
      saidOf={({ opened, ended }) =>
        `${countOf(opened)} opened; ended: ${ended === null ? 'unknown' : reasonsOf(ended) || 'none'}`
      }
      numberOf={({ opened }) => opened}
      scale={scale}
      legend={['opened', 'ended']}
    />
  )
}
