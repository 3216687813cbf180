/** Findings: what contradicts what, with the evidence side by side. */
import type { JSX } from 'preact'
import type { Evidence, Finding, FindingKind, FindingPage } from '../../../views/findings/finding.js'
import { type Address, hrefOf, question } from '../address.js'
import { useAnswer } from '../hooks.js'
import { Fields } from '../parts/fields.js'
import { choice, Filters } from '../parts/filters.js'
import { State, Trouble } from '../parts/state.js'
import { Text } from '../parts/text.js'
import { Moment } from '../parts/value.js'
import { plain } from '../words.js'

export const FINDING_KINDS: FindingKind[] = [
  'command_overdue',
  'command_waiting_though_listened',
  'command_waiting_for_nobody',
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
  <div class="seen">
    <h4>
      {plain(source)} <span class="dim">said</span>
    </h4>
    <Fields record={fields} />
    <a href={`#${route}`}>see for yourself</a> <Moment at={observed_at} />
  </div>
)

/** One line of what it is about. */
export const Subject = ({ subject }: { subject: Finding['subject'] }): JSX.Element => (
  <span class="subject">
    {Object.entries(subject).map(([name, id]) => (
      <span key={name}>
        <span class="dim">{plain(name)}</span> <Text value={id} />
      </span>
    ))}
  </span>
)

const Found = ({ kind, subject, evidence, since, means, does_not_mean }: Finding): JSX.Element => (
  <article class="card found">
    <h2>{plain(kind)}</h2>
    <Subject subject={subject} />
    <p>
      {means} {since ? <Moment at={since} /> : <span class="dim">Since when is not known.</span>}
    </p>
    <p class="dim">{does_not_mean}</p>
    <div class="side">
      {evidence.map((seen, i) => (
        <Seen key={`${seen.route} ${i}`} {...seen} />
      ))}
    </div>
  </article>
)

export function FindingsPage({ address }: { address: Address }): JSX.Element {
  const { path, query } = address
  const answer = useAnswer<FindingPage>(question(path, query), true)
  const { value, problem, isOld } = answer
  const next = new URLSearchParams(query)
  if (value?.next_cursor) next.set('cursor', value.next_cursor)
  return (
    <>
      <header class="page">
        <h1>Findings</h1>
        <p>What the sources contradict, and what is overdue by their own clocks. No threshold of ours.</p>
        <Filters filters={[choice('kind', FINDING_KINDS)]} address={address} />
        <State answer={answer} />
      </header>
      {problem && <Trouble problem={problem} />}
      {value && (
        <div class={isOld ? 'old' : ''}>
          {value.items.length === 0 && (
            <p class="empty">
              {value.completeness.complete && !value.has_more
                ? 'None was found, and every source was read to its end.'
                : 'None was found in what was read.'}
            </p>
          )}
          {value.not_looked_for.length > 0 && (
            <p class="dim">This deployment cannot show: {value.not_looked_for.map(plain).join(', ')}.</p>
          )}
          {value.items.map((finding) => (
            <Found key={finding.finding_id} {...finding} />
          ))}
        </div>
      )}
      <nav class="pager" aria-label="Pages">
        {value?.has_more && <a href={hrefOf(path, next)}>next page</a>}
      </nav>
    </>
  )
}
