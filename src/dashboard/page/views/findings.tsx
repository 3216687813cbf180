/** Findings: what contradicts what, with the evidence side by side. */
import type { JSX } from 'preact'
import type { Evidence, Finding, FindingKind, FindingPage } from '../../../views/findings/finding.js'
import { type Address, hrefOf, pathWithQuery } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Field, Fields } from '../parts/field.js'
import { choice } from '../parts/filters.js'
import { PageHead, Pager } from '../parts/list.js'
import { Time } from '../parts/value.js'
import { spacedName } from '../words.js'

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

/** What it is about, each id leading there. */
export const Subject = ({ subject }: { subject: Finding['subject'] }): JSX.Element => (
  <span class="names">
    {Object.keys(subject).map((name) => (
      <span key={name}>
        <span class="dim">{spacedName(name)}</span> <Field name={name} record={subject} />
      </span>
    ))}
  </span>
)

const Found = ({ kind, subject, evidence, since, means, does_not_mean }: Finding): JSX.Element => (
  <article class="card found">
    <h2>{spacedName(kind)}</h2>
    <Subject subject={subject} />
    <p>
      {means} {since ? <Time at={since} age="full" /> : <span class="dim">Start unknown.</span>}
    </p>
    <p class="dim">{does_not_mean}</p>
    <div class="side">
      {evidence.map((seen) => (
        <Seen key={seen.source + seen.route} {...seen} />
      ))}
    </div>
  </article>
)

/** That there are none is said of what was read, and of no more. */
export const NoneFound = ({ completeness, has_more }: FindingPage): JSX.Element => (
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
          {value.items.map((finding) => (
            <Found key={finding.finding_id} {...finding} />
          ))}
        </div>
      )}
      <Pager address={address} page={value} />
    </>
  )
}
