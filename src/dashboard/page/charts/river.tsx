/** Commands of the last hour, minute by minute: admitted above, open in the middle by where they stand, ended below. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { DeliveryMinute } from '../../../contract/delivery-summary.js'
import { zoneName } from '../preferences.js'
import { countOf, timeOf } from '../words.js'
import { type Scale, scaleOf } from './churn.js'

const MINUTE_MS = 60_000
const MINUTES = 60
const STEP = 10
/** Heights of the three bands, and what lies between them. */
const [IN, OPEN, OUT, GAP] = [40, 120, 60, 8]
const HEIGHT = IN + OPEN + OUT + 2 * GAP

const OPEN_STATES = ['waiting', 'attempted', 'acknowledged'] as const
export const ENDS = ['resulted', 'failed', 'expired', 'cancelled', 'rejected'] as const

const sum = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((total, count) => total + count, 0)

interface Slot {
  minute: number
  item: DeliveryMinute | undefined
}

/** The sixty minutes up to the minute `last`, including those without data. */
function slotsOf(items: readonly DeliveryMinute[], last: number): Slot[] {
  const byMinute = new Map(items.map((item) => [Math.floor(Date.parse(item.minute) / MINUTE_MS), item]))
  return Array.from({ length: MINUTES }, (_, i) => {
    const minute = last - MINUTES + 1 + i
    return { minute, item: byMinute.get(minute) }
  })
}

interface Scales {
  admitted: Scale
  open: Scale
  ended: Scale
}

/** Bars on top of each other, from `y` upwards or downwards. */
function stack(
  x: number,
  y: number,
  height: number,
  scale: Scale,
  counts: readonly (readonly [string, number])[],
  up: boolean,
) {
  const total = counts.reduce((all, [, count]) => all + count, 0)
  const whole = scale.share(total) * height
  let at = y
  return counts.map(([name, count]) => {
    const own = total === 0 ? 0 : (count / total) * whole
    const top = up ? at - own : at
    at += up ? -own : own
    return own > 0 && <rect key={name} class={`part ${name}`} x={x + 0.5} y={top} width={STEP - 1} height={own} />
  })
}

function Minute({ slot: { minute, item }, x, scales }: { slot: Slot; x: number; scales: Scales }): JSX.Element {
  if (!item)
    return (
      <rect class="unwatched" x={x} y="0" width={STEP} height={HEIGHT}>
        <title>{`${timeOf(minute * MINUTE_MS)}: not observed`}</title>
      </rect>
    )
  const { admitted, open, ended } = item
  const middle = IN + GAP
  return (
    <g>
      {stack(x, IN, IN, scales.admitted, [['admitted', admitted]], true)}
      {open ? (
        stack(
          x,
          middle + OPEN,
          OPEN,
          scales.open,
          OPEN_STATES.map((state) => [state, open[state]]),
          true,
        )
      ) : (
        <rect class="unwatched" x={x} y={middle} width={STEP} height={OPEN} />
      )}
      {stack(
        x,
        middle + OPEN + GAP,
        OUT,
        scales.ended,
        ENDS.map((state) => [state, ended[state]]),
        false,
      )}
    </g>
  )
}

const saidOf = ({ admitted, open, ended }: DeliveryMinute) =>
  [
    `${countOf(admitted)} admitted`,
    ...OPEN_STATES.map((state) => `${open ? countOf(open[state]) : 'unknown'} ${state}`),
    ...ENDS.filter((state) => ended[state] > 0).map((state) => `${countOf(ended[state])} ${state}`),
  ].join(', ')

export function River({ items, until }: { items: readonly DeliveryMinute[]; until: string }): JSX.Element {
  const [cursor, setCursor] = useState<number | null>(null)
  const last = Math.floor(Date.parse(until) / MINUTE_MS)
  const slots = useMemo(() => slotsOf(items, last), [items, last])
  const scales = useMemo(
    (): Scales => ({
      admitted: scaleOf(
        items.map(({ admitted }) => admitted),
        'admitted a minute',
      ),
      open: scaleOf(
        items.flatMap(({ open }) => (open ? [sum(open)] : [])),
        'open',
      ),
      ended: scaleOf(
        items.map(({ ended }) => sum(ended)),
        'ended a minute',
      ),
    }),
    [items],
  )
  // The same nodes until the data is another.
  const bars = useMemo(
    () => slots.map((slot, i) => <Minute key={slot.minute} slot={slot} x={i * STEP} scales={scales} />),
    [slots, scales],
  )
  const rows = useMemo(
    () =>
      items.map((item) => (
        <tr key={item.minute}>
          <th scope="row">{timeOf(item.minute)}</th>
          <td>{saidOf(item)}</td>
        </tr>
      )),
    [items, zoneName()],
  )
  const slot = cursor === null ? undefined : slots[cursor]
  const move = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0
    if (event.key === 'Escape') setCursor(null)
    else if (by === 0) return
    else setCursor(Math.min(MINUTES - 1, Math.max(0, (cursor ?? MINUTES) + by)))
    event.preventDefault()
  }
  const follow = ({ offsetX, currentTarget }: MouseEvent) =>
    setCursor(Math.min(MINUTES - 1, Math.floor((offsetX / (currentTarget as Element).clientWidth) * MINUTES)))
  const caption = slot
    ? `${timeOf(slot.minute * MINUTE_MS)}: ${slot.item ? saidOf(slot.item) : 'not observed'}`
    : [scales.admitted.caption, scales.open.caption, scales.ended.caption].join(' · ')
  return (
    <figure class="river">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move along its minutes */}
      <section aria-label="Commands of the last hour; arrow keys read one minute" tabIndex={0} onKeyDown={move}>
        <svg
          viewBox={`0 0 ${MINUTES * STEP} ${HEIGHT}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          onMouseMove={follow}
          onMouseLeave={() => setCursor(null)}
        >
          {bars}
          {cursor !== null && <rect class="cursor" x={cursor * STEP} y="0" width={STEP} height={HEIGHT} />}
          <line class="axis" x1="0" x2={MINUTES * STEP} y1={IN} y2={IN} />
          <line class="axis" x1="0" x2={MINUTES * STEP} y1={IN + GAP + OPEN} y2={IN + GAP + OPEN} />
        </svg>
      </section>
      <figcaption>
        <span class="dim">{timeOf((slots[0]?.minute ?? 0) * MINUTE_MS)}</span>
        <span role="status">{caption}</span>
        <span class="dim">now</span>
      </figcaption>
      <p class="legend">
        {['admitted', ...OPEN_STATES, ...ENDS].map((name) => (
          <span key={name} class={`key ${name}`}>
            {name}
          </span>
        ))}
        {items.length < MINUTES && <span class="key unwatched">not observed</span>}
      </p>
      {/* A table would be as wide as its text, however it is hidden. */}
      <div class="hidden">
        <table>
          <caption>Commands by minute</caption>
          <tbody>{rows}</tbody>
        </table>
      </div>
    </figure>
  )
}
