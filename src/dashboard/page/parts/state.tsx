/** How far an answer can be believed: since when it is so, of how much it speaks, and why there is none. */
import type { ComponentChildren, JSX } from 'preact'
import type { Completeness } from '../../../contract/completeness.js'
import { NOT_SCOPABLE, pulse } from '../answers.js'
import type { Problem } from '../fetch-route.js'
import { countOf, spacedName, timeOf } from '../words.js'

interface ProblemNoteProps {
  problem: Problem
  /** Why a record may not be there. */
  gone?: string | undefined
}

/** Why there is no answer, where it would stand. What is no fault is no alarm. */
export function ProblemNote({ problem: { status, code, title }, gone }: ProblemNoteProps): JSX.Element {
  if (status === 501) return <p class="absent">Not part of this deployment.</p>
  if (code === NOT_SCOPABLE)
    return <p class="absent">Your key is for some users: what is of all of them is not shown.</p>
  if (status === 404)
    return (
      <p class="absent">
        <strong>No such record</strong>. {gone}
      </p>
    )
  return (
    <p class="trouble">
      <strong>{status === 0 ? 'No answer' : spacedName(code)}</strong> {status > 0 && status}{' '}
      <span class="dim">{title}</span>
    </p>
  )
}

interface Bounded {
  items?: readonly unknown[]
  has_more?: boolean
  omitted?: number
  completeness?: Completeness
}

/** What was cut short, by source. A sample never reads as a total, and what failed not as what reached its bound. */
export const truncationsOf = ({ completeness }: Bounded): string[] =>
  (completeness?.truncated_sources ?? []).map((source) => {
    const { examined, limits } = completeness as Completeness
    const read = examined[source] ?? 0
    if (read === 0) return `incomplete: ${spacedName(source)} could not be read`
    return read < (limits[source] ?? 0)
      ? `incomplete: ${spacedName(source)} was not read to its end (${countOf(read)} entries read)`
      : `a sample: ${spacedName(source)} was cut short at ${countOf(read)} entries`
  })

/** How much of a list this is. */
function extentOf(page: Bounded): string {
  const { items = [], has_more, omitted } = page
  return [
    `${countOf(items.length)}${has_more ? ', and more follow' : ' in all'}`,
    ...(omitted ? [`${countOf(omitted)} left out: unreadable`] : []),
    ...truncationsOf(page),
  ].join(' · ')
}

interface StateProps {
  answer: { value: Bounded | null; asOf: number | null; problem: Problem | null; isOld: boolean }
  children?: ComponentChildren
}

/** The line under a heading. */
export const State = ({ answer: { value, asOf, problem, isOld }, children }: StateProps): JSX.Element => (
  <span class={isOld && asOf !== null ? 'state old' : 'state'}>
    {value?.items && value.has_more !== undefined && `${extentOf(value)} · `}
    {asOf === null ? (problem ? '' : pulse().isPaused ? 'not asked while paused' : 'asking') : `as of ${timeOf(asOf)}`}
    {isOld && asOf !== null && ' · may have changed since'}
    {asOf !== null && children && <span class="dim"> · {children}</span>}
  </span>
)
