/** The line above the overview: what is wrong, as far as known. */
import type { ComponentChildren, JSX } from 'preact'
import type { DeliveryNodeAnswer } from '../../../contract/delivery.js'
import type { SourceRow } from '../../../diagnostics/sources.js'
import type { FindingSummary } from '../../../views/findings/finding.js'
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
  caption: string | null
}

/** When each fact was last known. */
const knownAt = new Map<string, number | null>()

/** One fact with where to look. Of what is not so now it says since when, and never what it was. */
function Fact({ name, href, answer: { asOf, problem, isOld }, isBad, caption }: FactProps): JSX.Element {
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

/** The kinds of findings that no source can show, in the same sentence. */
export const blindSpotOf = ({ kinds, not_looked_for: { length } }: FindingSummary): string =>
  length === 0 ? '' : `; ${length} of ${kinds.length + length} kinds of findings cannot be looked for`

const isAllIn = ({ kinds, completeness }: Pick<FindingSummary, 'kinds' | 'completeness'>) =>
  completeness.complete && kinds.every(({ exact }) => exact)

function foundIn(summary: FindingSummary): string | null {
  const { completeness } = summary
  const count = countIn(summary)
  if (count) return `${count} finding${count === '1' ? '' : 's'}`
  if (lacksSource(completeness)) return null
  return isWhole(summary) ? 'no findings' : 'no findings in what was read'
}

function silentIn({ items, has_more }: Listed<DeliveryNodeAnswer>): string | null {
  const silent = items.filter(({ stale }) => stale).length
  // Nodes with an unknown status may be silent too.
  const isAll = !has_more && items.every(({ stale }) => stale !== null)
  if (!isAll && silent === 0) return null
  return `${countOf(silent)}${isAll ? '' : '+'} of ${countOf(items.length)}${has_more ? '+' : ''} nodes silent`
}

/** The first thing that is read: facts, each with where to look. No threshold makes one of them good or bad. */
export function Headline({
  findings,
  nodes,
  sources,
  isAlarm,
  children,
}: {
  children: ComponentChildren
  /** Whether a contradiction is old enough to be one. */
  isAlarm: boolean
  findings: AnswerState<FindingSummary>
  nodes: AnswerState<Listed<DeliveryNodeAnswer>>
  sources: AnswerState<{ items: SourceRow[] }>
}): JSX.Element {
  const unreachable = sources.value?.items.filter(({ answered }) => !answered).map(({ source }) => spacedName(source))
  return (
    <p class="headline">
      <Fact
        name="findings"
        href="/findings"
        answer={findings}
        isBad={isAlarm}
        caption={findings.value && foundIn(findings.value)}
      />
      <Fact
        name="silent nodes"
        href="/delivery/nodes"
        answer={nodes}
        isBad={nodes.value?.items.some(({ stale }) => stale) ?? false}
        caption={nodes.value && silentIn(nodes.value)}
      />
      <Fact
        name="sources"
        href="/sources"
        answer={sources}
        isBad={Boolean(unreachable?.length)}
        caption={
          unreachable
            ? unreachable.length > 0
              ? `no answer from ${unreachable[1] ? `${unreachable.length} sources` : unreachable[0]}`
              : 'all sources answer'
            : null
        }
      />
      {children}
    </p>
  )
}
