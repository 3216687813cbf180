/** How far an answer can be believed: since when it is so, of how much it speaks, and why there is none. */
import type { ComponentChildren, JSX } from 'preact'
import type { Completeness } from '../../../contract/completeness.js'
import type { Problem } from '../ask.js'
import { countOf, plain, timeOf } from '../words.js'

/** Why there is no answer, where it would stand. */
export function Trouble({ problem }: { problem: Problem }): JSX.Element {
  const { status, code, title } = problem
  if (status === 501) return <p class="absent">Not part of this deployment.</p>
  return (
    <p class="trouble">
      <strong>{status === 404 ? 'No such record' : status === 0 ? 'No answer' : plain(code)}</strong>{' '}
      {status > 0 && status} <span class="dim">{title}</span>
    </p>
  )
}

interface Bounded {
  items?: readonly unknown[]
  has_more?: boolean
  omitted?: number
  completeness?: Completeness
}

/** `all 12`, `the first 100: more follow`, or what was cut short. A sample never reads as a total. */
export function extentOf({ items = [], has_more, omitted, completeness }: Bounded): string {
  const said = [has_more ? `${countOf(items.length)}, and more follow` : `${countOf(items.length)} in all`]
  if (omitted) said.push(`${countOf(omitted)} left out: unreadable`)
  const limits: Record<string, number> = completeness?.limits ?? {}
  const examined: Record<string, number> = completeness?.examined ?? {}
  for (const source of completeness?.truncated_sources ?? [])
    said.push(
      `a sample: ${plain(source)} was cut short at ${countOf(examined[source] ?? 0)} of at most ${countOf(limits[source])}`,
    )
  return said.join(' · ')
}

interface StateProps {
  answer: { value: Bounded | null; asOf: number | null; problem: Problem | null; isOld: boolean }
  children?: ComponentChildren
}

/** The line under a heading. */
export const State = ({ answer: { value, asOf, isOld }, children }: StateProps): JSX.Element => (
  <span class={isOld ? 'state old' : 'state'}>
    {value?.items && `${extentOf(value)} · `}
    {asOf === null ? 'nobody has answered yet' : `as of ${timeOf(asOf)}`}
    {isOld && asOf !== null && ' · may have changed since'}
    {children}
  </span>
)
