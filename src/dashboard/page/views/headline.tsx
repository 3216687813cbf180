/** Facts above the overview, each with where to look: findings, silent nodes, sources. */
import type { ComponentChildren, JSX } from 'preact'
import type { DeliveryNodeAnswer } from '../../../internal/contract/delivery.js'
import type { SourceRow } from '../../../internal/diagnostics/sources.js'
import type { FindingSummary } from '../../../internal/views/findings/finding.js'
import { hrefOf } from '../address.js'
import { lacksSource } from '../answers.js'
import type { useAnswer } from '../hooks.js'
import type { Listed } from '../parts/list.js'
import { Unknown } from '../parts/text.js'
import { countOf, spacedName, timeOf } from '../words.js'

/** An answer as the parts of the overview share it. */
export type AnswerState<T> = ReturnType<typeof useAnswer<T>>

interface FactProps {
  /** The label, shown if there is no text. */
  name: string
  href: string
  answer: AnswerState<unknown>
  isBad: boolean
  /** What it says; `null` where the answer does not say it. */
  caption: ComponentChildren
}

/** When each fact was last known. */
const knownAt = new Map<string, number | null>()

/** One fact with where to look. Of what is not so now it says since when, and never what it was. */
export function Fact({ name, href, answer: { asOf, problem, isOld }, isBad, caption }: FactProps): JSX.Element {
  const isKnown = caption !== null && !isOld
  if (isKnown) knownAt.set(name, asOf)
  const since = knownAt.get(name)
  return (
    <a class={isBad || (since && !isKnown) ? 'bad' : ''} href={hrefOf(href)}>
      {isKnown ? (
        caption
      ) : asOf === null && !problem ? (
        `${name}: loading`
      ) : (
        <>
          {name} <Unknown />
          {since && ` since ${timeOf(since)}`}
        </>
      )}
    </a>
  )
}

/** How many findings there are: `13`, `at least 13` as `13+`, and nothing for none. */
export function countIn({ kinds, completeness }: FindingSummary): string {
  const total = kinds.reduce((sum, { count }) => sum + (count ?? 0), 0)
  return total > 0 ? countOf(total) + (isAllIn({ kinds, completeness }) ? '' : '+') : ''
}

/** Whether every kind of finding was looked for, everywhere. */
export const isWhole = (summary: FindingSummary): boolean =>
  isAllIn(summary) && summary.kinds.every(({ count }) => count !== null) && summary.not_looked_for.length === 0

const isAllIn = ({ kinds, completeness }: Pick<FindingSummary, 'kinds' | 'completeness'>) =>
  completeness.complete && kinds.every(({ exact }) => exact)

/** How many findings there are, in words; `null` where a source failed. */
export function foundIn(summary: FindingSummary): string | null {
  const { completeness } = summary
  const count = countIn(summary)
  if (count) return `${count} finding${count === '1' ? '' : 's'}`
  if (lacksSource(completeness)) return null
  return isWhole(summary) ? 'no findings' : 'no findings in what was read'
}

/** How many nodes there are, and how many of them are silent, in words; `null` if unknown. */
export function silentIn({ items, has_more }: Listed<DeliveryNodeAnswer>): string | null {
  const silent = items.filter(({ stale }) => stale).length
  // Nodes with an unknown status may be silent too.
  const isAll = !has_more && items.every(({ stale }) => stale !== null)
  const isUntold = items.every(({ stale }) => stale === null)
  if (silent === 0) return isAll || isUntold ? `${countOf(items.length)} node${items.length === 1 ? '' : 's'}` : null
  return `${countOf(silent)}${isAll ? '' : '+'} of ${countOf(items.length)}${has_more ? '+' : ''} nodes silent`
}

/** Whether the sources answer, in words. */
export function muteIn(items: readonly SourceRow[]): string {
  const mute = items.filter(({ answered }) => !answered).map(({ source }) => spacedName(source))
  if (mute.length === 0) return 'all sources answer'
  return `no answer from ${mute[1] ? `${mute.length} sources` : mute[0]}`
}
