/** Commands of the last hour, minute by minute: admitted above, open in the middle by where they stand, ended below. */
import type { JSX } from 'preact'
import type { DeliveryMinuteAnswer } from '../../../contract/delivery-summary.js'
import { countOf } from '../words.js'
import { Minutes, type Scale, STEP, scaleOf, sum, Unknown } from './minutes.js'

/** Heights of the three bands, and what lies between them. */
const [IN, OPEN, OUT, GAP] = [40, 120, 60, 8]
const HEIGHT = IN + OPEN + OUT + 2 * GAP
const MIDDLE = IN + GAP

export const OPEN_STATES = ['waiting', 'attempted', 'acknowledged'] as const
export const ENDS = ['resulted', 'failed', 'expired', 'cancelled', 'rejected'] as const

/** Bars on top of each other, from `y` upwards or downwards. */
function stack(
  x: number,
  y: number,
  height: number,
  scale: Scale,
  names: readonly string[],
  counts: Readonly<Record<string, number>>,
  up: boolean,
) {
  const total = sum(counts)
  const whole = scale.share(total) * height
  let at = y
  return names.map((name) => {
    const own = total === 0 ? 0 : ((counts[name] as number) / total) * whole
    const top = up ? at - own : at
    at += up ? -own : own
    return own > 0 && <rect key={name} class={name} x={x + 0.5} y={top} width={STEP - 1} height={own} />
  })
}

const saidOf = ({ admitted, open, ended }: DeliveryMinuteAnswer) =>
  [
    `${countOf(admitted)} admitted`,
    ...OPEN_STATES.map((state) => `${open ? countOf(open[state]) : 'unknown'} ${state}`),
    ...(ended ? ENDS.flatMap((state) => (ended[state] ? `${countOf(ended[state])} ${state}` : [])) : ['unknown ends']),
  ].join(', ')

export function River({ items, until }: { items: readonly DeliveryMinuteAnswer[]; until: string | null }): JSX.Element {
  const scaleBy = (pick: (item: DeliveryMinuteAnswer) => number | null, unit: string) =>
    scaleOf(
      items.flatMap((item) => pick(item) ?? []),
      unit,
    )
  const scales = [
    scaleBy(({ admitted }) => admitted, 'admitted a minute'),
    scaleBy(({ open }) => open && sum(open), 'open'),
    scaleBy(({ ended }) => ended && sum(ended), 'ended a minute'),
  ] as const
  return (
    <Minutes
      label="Commands of the last hour"
      items={items}
      until={until}
      height={HEIGHT}
      lines={[IN, MIDDLE + OPEN]}
      draw={({ admitted, open, ended }, x) => (
        <>
          {admitted === null ? (
            <Unknown x={x} y={0} height={IN} />
          ) : (
            stack(x, IN, IN, scales[0], ['admitted'], { admitted }, true)
          )}
          {open ? (
            stack(x, MIDDLE + OPEN, OPEN, scales[1], OPEN_STATES, open, true)
          ) : (
            <Unknown x={x} y={MIDDLE} height={OPEN} />
          )}
          {ended ? (
            stack(x, MIDDLE + OPEN + GAP, OUT, scales[2], ENDS, ended, false)
          ) : (
            <Unknown x={x} y={MIDDLE + OPEN + GAP} height={OUT} />
          )}
        </>
      )}
      saidOf={saidOf}
      caption={scales.map(({ caption }) => caption).join(' · ')}
      legend={['admitted', ...OPEN_STATES, ...ENDS]}
    />
  )
}
