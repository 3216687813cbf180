/** Commands minute by minute, in two charts: how many are open, by state, and how many ended, by end. */
import type { JSX } from 'preact'
import type { DeliveryMinuteAnswer } from '../../../internal/contract/delivery-summary.js'
import { countOf, spacedName } from '../words.js'
import { Minutes, type Scale, STEP, scaleOf, sum, Unknown } from './minutes.js'

const HEIGHT = 100

export const OPEN_STATES = ['waiting', 'attempted', 'acknowledged'] as const
export const ENDS = ['resulted', 'failed', 'expired', 'cancelled', 'rejected'] as const

type Counts = Readonly<Record<string, number>>

/** Bars on top of each other. */
function stack(x: number, scale: Scale, names: readonly string[], counts: Counts) {
  const total = sum(counts)
  const whole = scale.share(total) * HEIGHT
  let at = HEIGHT
  return names.map((name) => {
    const own = total === 0 ? 0 : ((counts[name] as number) / total) * whole
    at -= own
    return own > 0 && <rect key={name} class={name} x={x + 0.5} y={at} width={STEP - 1} height={own} />
  })
}

interface ChartProps {
  items: readonly DeliveryMinuteAnswer[]
  until: string | null
}

interface CountsProps extends ChartProps {
  label: string
  names: readonly string[]
  of(item: DeliveryMinuteAnswer): Counts | null
  saidOf(counts: Counts): string
}

function Chart({ items, until, label, names, of, saidOf }: CountsProps): JSX.Element {
  const totalOf = (item: DeliveryMinuteAnswer) => {
    const counts = of(item)
    return counts && sum(counts)
  }
  const scale = scaleOf(items.flatMap((item) => totalOf(item) ?? []))
  return (
    <Minutes
      label={label}
      items={items}
      until={until}
      height={HEIGHT}
      lines={[HEIGHT]}
      draw={(item, x) => {
        const counts = of(item)
        return counts ? stack(x, scale, names, counts) : <Unknown x={x} y={0} height={HEIGHT} />
      }}
      saidOf={(item) => {
        const counts = of(item)
        return counts ? saidOf(counts) : 'unknown'
      }}
      numberOf={totalOf}
      scale={scale}
      // The numbers above have the colours.
      legend={[]}
    />
  )
}

const listed = (counts: Counts, names: readonly string[]) =>
  names.map((name) => `${countOf(counts[name])} ${spacedName(name)}`).join(', ')

export const OpenChart = (props: ChartProps): JSX.Element => (
  <Chart
    {...props}
    label="Commands that are open, by state"
    names={OPEN_STATES}
    of={({ open }) => open}
    saidOf={(counts) => listed(counts, OPEN_STATES)}
  />
)

export const EndedChart = (props: ChartProps): JSX.Element => (
  <Chart
    {...props}
    label="Commands ended per minute, by end"
    names={ENDS}
    of={({ ended }) => ended}
    saidOf={(counts) =>
      listed(
        counts,
        ENDS.filter((name) => counts[name]),
      ) || 'none ended'
    }
  />
)
