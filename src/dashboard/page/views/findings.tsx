/** Findings: what contradicts what, by kind, with the evidence of each side by side. */
import type { JSX } from 'preact'
import type { Evidence, Finding, FindingKind, FindingPage } from '../../../views/findings/finding.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Field, Fields } from '../parts/field.js'
import { choice } from '../parts/filters.js'
import { PageHead, Pager } from '../parts/list.js'
import { Time } from '../parts/value.js'
import { countOf, spacedName } from '../words.js'
import { groupFindings, isSettled, oldestOf } from './needs.js'

const KINDS: FindingKind[] = [
  'command_overdue',
  'command_waiting_though_listened',
  'command_waiting_for_nobody',
  'command_not_acknowledged',
  'reservation_without_command',
  'silent_node_holds',
  'session_without_connector',
  'call_overdue',
  'call_to_superseded_instance',
  'worker_of_disconnected_client',
  'context_of_disconnected_client',
  'window_of_disconnected_client',
  'counts_disagree',
]

const Seen = ({ source, route, fields, observed_at }: Evidence): JSX.Element => (
  <div class="seen close">
    <h3>
      {spacedName(source)} <span class="dim">reports</span>
    </h3>
    <Fields record={fields} />
    <a href={hrefOf(route)}>Open</a> <Time at={observed_at} age="full" />
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

/** One finding with its subject and its evidence, which is open if there is a single finding. */
const Found = ({ finding, isOpen }: { finding: Finding; isOpen: boolean }): JSX.Element => (
  <article class="found">
    <Subject subject={finding.subject} />
    <span class="when">
      {finding.since ? <Time at={finding.since} age="full" /> : <span class="dim">Start unknown.</span>}
    </span>
    <details open={isOpen}>
      <summary>Evidence</summary>
      <div class="side">
        {finding.evidence.map((seen) => (
          <Seen key={seen.source + seen.route} {...seen} />
        ))}
      </div>
    </details>
  </article>
)

/** All findings of one kind: what it means stands once, above them. */
function Group({ kind, findings, isMore }: { kind: string; findings: readonly Finding[]; isMore: boolean }) {
  const [{ means, does_not_mean }] = findings as [Finding]
  const oldest = oldestOf(findings)
  const isNew = oldest !== null && !isSettled(oldest)
  return (
    <section class={isNew ? 'card group new' : 'card group'}>
      <h2>
        <a href={hrefOf('/findings', { kind })}>{spacedName(kind)}</a>{' '}
        <b>
          {isMore && 'at least '}
          {countOf(findings.length)}
        </b>
      </h2>
      {oldest !== null && (
        <p class="dim">
          oldest since <Time at={new Date(oldest).toISOString()} age="full" />
        </p>
      )}
      <p>{means}</p>
      <p class="dim">{does_not_mean}</p>
      {findings.map((finding) => (
        <Found key={finding.finding_id} finding={finding} isOpen={findings.length === 1} />
      ))}
    </section>
  )
}

/** That there are none is said of what was read, and of no more. */
const NoneFound = ({ completeness, has_more }: FindingPage): JSX.Element => (
  <p class="empty">
    {completeness.complete && !has_more ? 'None, and every source was read to its end.' : 'None in what was read.'}
  </p>
)

const HEAD = {
  title: 'Findings',
  about: 'Contradictions between sources, and what is overdue by their own clocks.',
  filters: [choice('kind', KINDS)],
}

export function FindingsPage({ address }: { address: Address }): JSX.Element {
  const answer = useAnswer<FindingPage>(pathWithQuery(address.path, address.query), true)
  const { value, isOld } = answer
  return (
    <>
      <PageHead {...HEAD} address={address} answer={answer} />
      {value && (
        <div class={isOld ? 'old' : ''}>
          {value.items.length === 0 && <NoneFound {...value} />}
          {value.not_looked_for.length > 0 && (
            <p class="dim">This deployment cannot show: {value.not_looked_for.map(spacedName).join(', ')}.</p>
          )}
          {[...groupFindings(value.items)].map(([kind, findings]) => (
            <Group key={kind} kind={kind} findings={findings} isMore={value.has_more} />
          ))}
        </div>
      )}
      <Pager address={address} page={value} />
    </>
  )
}
