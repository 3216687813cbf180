/** Findings by weight and kind: one line for each kind, its subjects with their evidence, and what it means. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Evidence, Finding, FindingPage, FindingSummary } from '../../../internal/views/findings/finding.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { onReset } from '../answers.js'
import { useAnswer, useBefore, useLook, useTick } from '../hooks.js'
import { Field, Fields } from '../parts/field.js'
import { choice } from '../parts/filters.js'
import { News, PageHead, Pager } from '../parts/list.js'
import { Help } from '../parts/state.js'
import { Time } from '../parts/value.js'
import { isFollowing } from '../preferences.js'
import { clock, countOf, spacedName } from '../words.js'
import { groupFindings, isSettled, oldestOf, weightOf } from './attention.js'

/** When it was last confirmed. */
const Confirmed = ({ of }: { of: Evidence }) => <Time at={useLook(() => [of.observed_at])[0]} age="full" />

const EvidenceItem = (evidence: Evidence): JSX.Element => (
  <div class="seen close">
    <h3>
      {spacedName(evidence.source)} <span class="dim">reports</span>
    </h3>
    <Fields record={evidence.fields} />
    <a href={hrefOf(evidence.route)}>Open</a> <Confirmed of={evidence} />
  </div>
)

/** The subject of a finding; each id is a link. */
const Subject = ({ subject }: { subject: Finding['subject'] }): JSX.Element => (
  <span class="names">
    {Object.keys(subject).map((name) => (
      <span key={name}>
        <span class="dim">{spacedName(name)}</span> <Field name={name} record={subject} />
      </span>
    ))}
  </span>
)

interface ItemProps {
  finding: Finding
  isOpen: boolean
  isGone: boolean
}

/** One finding with its subject and its evidence, which is open if there is a single finding. */
const FindingItem = ({ finding, isOpen, isGone }: ItemProps): JSX.Element => (
  <article class={isGone ? 'found old' : 'found'}>
    <Subject subject={finding.subject} />
    <span>
      {isGone ? (
        'No longer so.'
      ) : finding.since ? (
        <Time at={finding.since} age="full" />
      ) : (
        <span class="dim">Start unknown.</span>
      )}
    </span>
    <details open={isOpen}>
      <summary>Evidence</summary>
      <div class="side">
        {finding.evidence.map((seen) => (
          <EvidenceItem key={seen.source + seen.route} {...seen} />
        ))}
      </div>
    </details>
  </article>
)

/** How many there were two minutes ago, one minute ago, and now, as this tab saw it. */
const counts = new Map<string, { at: number; count: number }[]>()
onReset(() => counts.clear())
const [MINUTE_MS, KEPT_MS] = [60_000, 180_000]

/** How many there were before this tab looked, if that is recorded; `null` if unknown. */
function useCountBefore(kind: string, ms: number): number | null {
  const { kinds } = useBefore<FindingSummary>('/findings/summary', ms)?.value ?? {}
  return (kinds && (kinds.find((each) => each.kind === kind)?.count ?? 0)) ?? null
}

function useTrend(kind: string, count: number): (number | null)[] {
  const recorded = [useCountBefore(kind, 2 * MINUTE_MS), useCountBefore(kind, MINUTE_MS)]
  const now = clock()
  const before = (counts.get(kind) ?? []).filter(({ at }) => now - at < KEPT_MS)
  if (now - (before.at(-1)?.at ?? 0) >= 5_000) before.push({ at: now, count })
  counts.set(kind, before)
  const at = (ms: number) => before.findLast((each) => now - each.at >= ms)?.count ?? null
  return [at(2 * MINUTE_MS) ?? recorded[0] ?? null, at(MINUTE_MS) ?? recorded[1] ?? null, count]
}

/** Three small bars: growing or shrinking. */
function Trend({ kind, count }: { kind: string; count: number }): JSX.Element {
  const trend = useTrend(kind, count)
  const most = Math.max(1, ...trend.map((each) => each ?? 0))
  const caption = trend
    .map((each, i) => `${['2 min before', '1 min before', 'as shown'][i]} ${each ?? 'unknown'}`)
    .join(', ')
  return (
    <svg class="trend" viewBox="0 0 30 16" role="img" aria-label={caption}>
      <title>{caption}</title>
      {trend.map((each, i) => (
        <rect
          key={i}
          class={each === null ? 'unwatched' : 'ended'}
          x={i * 10 + 1}
          width="8"
          y={each === null ? 8 : 16 - (each / most) * 15 - 1}
          height={each === null ? 8 : (each / most) * 15 + 1}
        />
      ))}
    </svg>
  )
}

interface GroupProps {
  kind: string
  findings: readonly Finding[]
  total: string
  /** The findings of other kinds are shown too: subjects are folded up. */
  isOneOfMany: boolean
  isGone(finding: Finding): boolean
}

/** One line for all findings of one kind: subjects and the explanation are there on demand. */
function Group({ kind, findings, total, isOneOfMany, isGone }: GroupProps): JSX.Element {
  const [{ means, does_not_mean, help }] = findings as [Finding]
  const oldest = oldestOf(findings)
  const isNew = oldest !== null && !isSettled(oldest)
  useTick(isNew ? 1_000 : 10_000)
  const present = findings.filter((finding) => !isGone(finding)).length
  return (
    <section class={isNew || present === 0 ? 'group new' : 'group'}>
      <h2>
        <a href={hrefOf('/findings', { kind })}>{spacedName(kind)}</a> <b>{total}</b>
      </h2>
      <Trend kind={kind} count={present} />
      <span class="dim">{oldest !== null && <Time at={new Date(oldest).toISOString()} age="short" />}</span>
      <details>
        <summary>What does this mean?</summary>
        <p>{means}</p>
        <p class="dim">
          {does_not_mean} <Help file={help} />
        </p>
      </details>
      <details open={!isOneOfMany}>
        <summary>Subjects</summary>
        {findings.map((finding) => (
          <FindingItem
            key={finding.finding_id}
            finding={finding}
            isOpen={findings.length === 1 && !isOneOfMany}
            isGone={isGone(finding)}
          />
        ))}
      </details>
    </section>
  )
}

const WEIGHTS = ['A person is affected now', 'A person may be affected soon', 'Bookkeeping']

/** That there are none is said of what was read, and of no more. */
const NoFindings = ({ completeness, has_more, not_looked_for }: FindingPage): JSX.Element => (
  <p class="empty">
    {completeness.complete && !has_more && not_looked_for.length === 0
      ? 'None, and every source was read to its end.'
      : 'None in what was read.'}
  </p>
)

/** The findings that were there when the page was opened, as they are now; one that is gone keeps its place, and new ones wait. */
function useKept(path: string | null, items: readonly Finding[]) {
  const redraw = useState({})[1]
  const kept = useMemo(() => new Map<string, Finding>(), [path])
  if (isFollowing()) kept.clear()
  const isFirst = kept.size === 0
  for (const finding of items) if (isFirst || kept.has(finding.finding_id)) kept.set(finding.finding_id, finding)
  const ids = new Set(items.map(({ finding_id }) => finding_id))
  const take = () => {
    kept.clear()
    redraw({})
  }
  return {
    shown: [...kept.values()],
    isGone: ({ finding_id }: Finding) => !ids.has(finding_id),
    count: items.filter(({ finding_id }) => !kept.has(finding_id)).length,
    take,
  }
}

export function FindingsPage({ address }: { address: Address }): JSX.Element {
  const answer = useAnswer<FindingPage>(pathWithQuery(address.path, address.query))
  const { value, isOld } = answer
  const { shown, isGone, ...held } = useKept(answer.path, value?.items ?? [])
  const summary = useAnswer<FindingSummary>('/findings/summary')
  const { kinds = [], not_looked_for = [] } = summary.value ?? {}
  const groups = [...groupFindings(shown)]
  const filters = [choice('kind', [...kinds.map(({ kind }) => kind), ...not_looked_for])]
  /** How many there are, of which the page may show some. */
  const totalOf = (kind: string, shown: number) => {
    const group = summary.isOld ? undefined : kinds.find((each) => each.kind === kind)
    const count = Math.max(shown, group?.count ?? 0)
    return `${group?.exact || !value?.has_more ? '' : 'at least '}${countOf(count)}`
  }
  return (
    <>
      <PageHead
        title="Findings"
        about="What does not fit together, and what is overdue."
        filters={filters}
        address={address}
        answer={answer}
      >
        <News {...held} />
      </PageHead>
      {value && (
        <div class={isOld ? 'place of-groups old' : 'place of-groups'}>
          {shown.length === 0 && <NoFindings {...value} />}
          {value.not_looked_for.length > 0 && (
            <p class="dim">This deployment cannot show: {value.not_looked_for.map(spacedName).join(', ')}.</p>
          )}
          {WEIGHTS.map((title, weight) => {
            const own = groups.filter(([kind]) => weightOf(kind) === weight)
            return (
              own.length > 0 && (
                <section key={title} class="card">
                  <h2 class="dim">{title}</h2>
                  {own.map(([kind, findings]) => (
                    <Group
                      key={kind}
                      kind={kind}
                      findings={findings}
                      total={totalOf(kind, findings.filter((finding) => !isGone(finding)).length)}
                      isOneOfMany={groups.length > 1}
                      isGone={isGone}
                    />
                  ))}
                </section>
              )
            )
          })}
        </div>
      )}
      <Pager address={address} page={value} />
    </>
  )
}
