/** Findings: what contradicts what, by kind, with the evidence of each side by side. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { Evidence, Finding, FindingPage, FindingSummary } from '../../../views/findings/finding.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { useAnswer, useLook, useTick } from '../hooks.js'
import { Field, Fields } from '../parts/field.js'
import { choice } from '../parts/filters.js'
import { News, PageHead, Pager } from '../parts/list.js'
import { Help } from '../parts/state.js'
import { Time } from '../parts/value.js'
import { isFollowing } from '../preferences.js'
import { countOf, spacedName } from '../words.js'
import { groupFindings, isSettled, oldestOf } from './needs.js'

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

interface GroupProps {
  kind: string
  findings: readonly Finding[]
  total: string
  isGone(finding: Finding): boolean
}

/** All findings of one kind: what it means stands once, above them. */
function Group({ kind, findings, total, isGone }: GroupProps): JSX.Element {
  const [{ means, does_not_mean, help }] = findings as [Finding]
  const oldest = oldestOf(findings)
  const isNew = oldest !== null && !isSettled(oldest)
  useTick(isNew ? 1_000 : Infinity)
  return (
    <section class={isNew || findings.every(isGone) ? 'card group new' : 'card group'}>
      <h2>
        <a href={hrefOf('/findings', { kind })}>{spacedName(kind)}</a> <b>{total}</b>
      </h2>
      {oldest !== null && (
        <p class="dim">
          oldest since <Time at={new Date(oldest).toISOString()} age="full" />
        </p>
      )}
      <p>{means}</p>
      <p class="dim">
        {does_not_mean} <Help file={help} />
      </p>
      {findings.map((finding) => (
        <FindingItem
          key={finding.finding_id}
          finding={finding}
          isOpen={findings.length === 1}
          isGone={isGone(finding)}
        />
      ))}
    </section>
  )
}

/** That there are none is said of what was read, and of no more. */
const NoFindings = ({ completeness, has_more, not_looked_for }: FindingPage): JSX.Element => (
  <p class="empty">
    {completeness.complete && !has_more && not_looked_for.length === 0
      ? 'None, and every source was read to its end.'
      : 'None in what was read.'}
  </p>
)

const HEAD = {
  title: 'Findings',
  about: 'Contradictions between sources, and what is overdue by their own clocks.',
}

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
  const filters = [choice('kind', [...kinds.map(({ kind }) => kind), ...not_looked_for])]
  /** How many there are, of which the page may show some. */
  const totalOf = (kind: string, shown: number) => {
    const group = summary.isOld ? undefined : kinds.find((each) => each.kind === kind)
    const count = Math.max(shown, group?.count ?? 0)
    return `${group?.exact || !value?.has_more ? '' : 'at least '}${countOf(count)}`
  }
  return (
    <>
      <PageHead {...HEAD} filters={filters} address={address} answer={answer}>
        <News {...held} />
      </PageHead>
      {value && (
        <div class={isOld ? 'place of-groups old' : 'place of-groups'}>
          {shown.length === 0 && <NoFindings {...value} />}
          {value.not_looked_for.length > 0 && (
            <p class="dim">This deployment cannot show: {value.not_looked_for.map(spacedName).join(', ')}.</p>
          )}
          {[...groupFindings(shown)].map(([kind, findings]) => (
            <Group
              key={kind}
              kind={kind}
              findings={findings}
              total={totalOf(kind, findings.filter((finding) => !isGone(finding)).length)}
              isGone={isGone}
            />
          ))}
        </div>
      )}
      <Pager address={address} page={value} />
    </>
  )
}
