/** Minutes since the data begins, at most the last hour: drawn as a chart, read by a cursor, and as a table for screen readers. */
import type { ComponentChildren, JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import { zoneName } from '../preferences.js'
import { clock, countOf, isPinned, timeOf } from '../words.js'

/** A value so many times the median would press all others to a hairline. */
const FAR = 20

export interface Scale {
  /** From 0 to 1. */
  share(value: number): number
  /** Of all values. */
  readonly most: number
  readonly isRoot: boolean
}

/** Linear, or the square root where one value is far above the others. */
export function scaleOf(values: readonly number[]): Scale {
  const most = Math.max(1, ...values)
  const sorted = values.filter((value) => value > 0).sort((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? 0
  const isRoot = median > 0 && most / median > FAR
  return { share: (value) => (isRoot ? Math.sqrt(value / most) : value / most), most, isRoot }
}

export const sum = (counts: Readonly<Record<string, number>>) =>
  Object.values(counts).reduce((total, count) => total + count, 0)

export const MINUTE_MS = 60_000
/** The axis grows from five minutes to an hour. */
const [LEAST, MOST] = [5, 60]
/** Width of one minute. */
export const STEP = 10

/** Marks a part of a minute whose numbers are not known. */
export const Unknown = ({ x, y, height }: { x: number; y: number; height: number }): JSX.Element => (
  <rect class="unwatched" x={x} y={y} width={STEP} height={height} />
)

/** Whether some numbers of a minute are not known. */
const isPartial = (item: object) => Object.values(item).includes(null)

interface MinutesProps<T> {
  /** What it shows. */
  label: string
  items: readonly T[]
  /** The instant of the answer. */
  until: string | null
  height: number
  /** Heights at which a line is drawn. */
  lines: readonly number[]
  draw(item: T, x: number): ComponentChildren
  /** The numbers of one minute. */
  saidOf(item: T): string
  /** The number of a minute whose peak is labelled; `null` if unknown. */
  numberOf(item: T): number | null
  scale: Scale
  legend: readonly string[]
}

export function Minutes<T extends { readonly minute: string }>(props: MinutesProps<T>): JSX.Element {
  const { label, items, until, height, lines, draw, saidOf, numberOf, scale, legend } = props
  /** The chosen minute since the epoch, which does not move as time passes. */
  const [chosen, setChosen] = useState<number | null>(null)
  const last = Math.floor((until === null ? clock() : Date.parse(until)) / MINUTE_MS)
  const known = items.filter((item) =>
    Object.entries(item).some(([name, value]) => name !== 'minute' && value !== null),
  )
  const begin = Math.min(last, ...known.map(({ minute }) => Math.floor(Date.parse(minute) / MINUTE_MS)))
  const minutes = Math.min(MOST, Math.max(LEAST, last - begin + 1))
  const first = last - minutes + 1
  const timeAt = (i: number) => timeOf((first + i) * MINUTE_MS)
  const slots = useMemo(() => {
    const byMinute = new Map(items.map((item) => [Math.floor(Date.parse(item.minute) / MINUTE_MS), item]))
    return Array.from({ length: minutes }, (_, i) => byMinute.get(first + i))
  }, [items, first, minutes])
  // The same nodes until the data is another.
  const bars = useMemo(
    () =>
      slots.map((item, i) =>
        item ? <g key={i}>{draw(item, i * STEP)}</g> : <Unknown key={i} x={i * STEP} y={0} height={height} />,
      ),
    [slots],
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
  const cursor = chosen === null ? null : Math.max(0, chosen - first)
  const go = (to: number) => setChosen(first + Math.min(minutes - 1, Math.max(0, to)))
  const leave = () => setChosen(null)
  const move = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowLeft' ? -1 : event.key === 'ArrowRight' ? 1 : 0
    if (event.key === 'Escape') leave()
    else if (by === 0) return
    else go((cursor ?? minutes) + by)
    event.preventDefault()
  }
  const follow = ({ offsetX, currentTarget }: MouseEvent) =>
    go(Math.floor((offsetX / (currentTarget as Element).clientWidth) * minutes))
  const item = slots[cursor ?? -1]
  const values = slots.map((slot) => (slot && numberOf(slot)) || 0)
  const peak = Math.max(...values)
  const place = values.indexOf(peak) + 0.5
  return (
    <figure>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: arrow keys move along its minutes */}
      <section aria-label={`${label}; arrow keys read one minute`} tabIndex={0} onKeyDown={move} onBlur={leave}>
        <svg
          viewBox={`0 0 ${minutes * STEP} ${height}`}
          preserveAspectRatio="none"
          aria-hidden="true"
          onMouseMove={follow}
          onMouseLeave={leave}
        >
          {bars}
          {cursor !== null && <rect class="cursor" x={cursor * STEP} y="0" width={STEP} height={height} />}
          {lines.map((y) => (
            <line key={y} class="axis" x1="0" x2={minutes * STEP} y1={y} y2={y} />
          ))}
        </svg>
        {peak > 0 && (
          <span
            class={place < minutes / 2 ? 'peak' : 'peak late-on'}
            aria-hidden="true"
            style={{ left: `${(100 * place) / minutes}%` }}
          >
            {countOf(peak)}
          </span>
        )}
      </section>
      <figcaption>
        <span class="dim">{timeAt(0)}</span>
        <span role="status">
          {cursor === null
            ? scale.isRoot && 'square-root scale'
            : `${timeAt(cursor)}: ${item ? saidOf(item) : 'not observed'}`}
        </span>
        <span class="dim">{isPinned() ? timeOf(clock()) : 'now'}</span>
      </figcaption>
      <p class="legend">
        {[...legend, ...(slots.includes(undefined) || items.some(isPartial) ? ['unwatched'] : [])].map((name) => (
          <span key={name} class={`key ${name}`}>
            {name === 'unwatched' ? 'not observed' : name}
          </span>
        ))}
      </p>
      {/* A table would be as wide as its text, however it is hidden. */}
      <div class="hidden">
        <table>
          <caption>{label}</caption>
          <tbody>{rows}</tbody>
        </table>
      </div>
    </figure>
  )
}
