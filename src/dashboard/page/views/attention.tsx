/** What needs attention: findings, silent nodes and sources that do not answer, each with its age. */
import type { JSX } from 'preact'
import type { DeliveryNodeAnswer } from '../../../internal/contract/delivery.js'
import type { SourceRow } from '../../../internal/diagnostics/sources.js'
import type { Finding, FindingSummary } from '../../../internal/views/findings/finding.js'
import { hrefOf } from '../address.js'
import { NOT_SCOPABLE, onReset } from '../answers.js'
import { FEEDS, useFeed } from '../feed.js'
import { useAnswer, useTick } from '../hooks.js'
import type { Listed } from '../parts/list.js'
import { AsOf, problemName } from '../parts/state.js'
import { Text } from '../parts/text.js'
import { Time } from '../parts/value.js'
import { clock, countOf, durationText, spacedName } from '../words.js'
import { type AnswerState, isWhole } from './headline.js'
import { useNodes } from './nodes.js'

/** A finding may disappear with the next reading: a younger one is not an alarm. */
const SETTLED_MS = 10_000

const firstSeen = new Map<string, number>()

/** What comes and goes so often in this time is an alarm each time. */
const [OFTEN, WITHIN_MS] = [3, 600_000]
/** When each began to be seen, of the last minutes. */
const begun = new Map<string, number[]>()
onReset(() => {
  firstSeen.clear()
  begun.clear()
})

export interface Need {
  key: string
  /** The kind of finding; a silent node and a source that does not answer come first. */
  kind: string
  caption: string
  /** An example, or which ones. */
  detail: string
  /** Since when it is so, as far as that is known: by the source, or by this tab. */
  since: number
  isBySource: boolean
  href: string
}

/** How much a kind of finding weighs: 0 a person is affected now, 1 may be soon, 2 bookkeeping. */
const BOOKKEEPING = /^(reservation_without_command|counts_disagree|store_evicts|context_of_|window_of_)/
const NOW = /^(command_|client_not|call_|calls_lost|session_without)/
export const weightOf = (kind: string): number => (BOOKKEEPING.test(kind) ? 2 : kind === '' || NOW.test(kind) ? 0 : 1)

/** Findings by their kind, the oldest of each first. */
export function groupFindings(items: readonly Finding[]): Map<string, Finding[]> {
  const groups = new Map<string, Finding[]>()
  for (const finding of items) groups.set(finding.kind, [...(groups.get(finding.kind) ?? []), finding])
  return groups
}

/** The earliest time that a source names; `null` where none does. */
export function oldestOf(findings: readonly Finding[]): number | null {
  const times = findings.flatMap(({ since }) => (since === null ? [] : [Date.parse(since)]))
  return times.length > 0 ? Math.min(...times) : null
}

/**
 * Remembers when this tab first saw each of `keys`. One that was away is new when it comes again; of what did not answer just
 * now it is not known whether it is away.
 */
function seenSince(keys: readonly string[], isKnown: boolean, at: number): void {
  if (isKnown) for (const key of firstSeen.keys()) if (!keys.includes(key)) firstSeen.delete(key)
  for (const [key, times] of begun) if (at - (times.at(-1) as number) > WITHIN_MS) begun.delete(key)
  for (const key of keys)
    if (!firstSeen.has(key)) {
      firstSeen.set(key, at)
      begun.set(key, [...(begun.get(key) ?? []).filter((before) => at - before < WITHIN_MS), at])
    }
}

const timesOf = (key: string) => begun.get(key)?.length ?? 0

export const isSettled = (since: number, key = '') => clock() - since >= SETTLED_MS || timesOf(key) >= OFTEN

/** Whether one of the findings is old enough to be an alarm: by its source, or by what this tab saw of it. */
export const isAlarming = ({ kinds }: FindingSummary): boolean =>
  kinds.some(
    ({ kind, count, oldest_since }) =>
      count && isSettled(oldest_since === null ? (firstSeen.get(kind) ?? 0) : Date.parse(oldest_since), kind),
  )

/** One that holds nothing needs no attention: the line below counts it. */
const isSilentHolder = ({ stale, connection_waiters, active_drainers }: DeliveryNodeAnswer) =>
  stale && (connection_waiters !== 0 || active_drainers !== 0)

interface Given {
  findings: AnswerState<FindingSummary>
  nodes: AnswerState<Listed<DeliveryNodeAnswer>>
  sources: AnswerState<{ items: SourceRow[] }>
}

function attentionOf({ findings, nodes, sources }: Given): Need[] {
  // What was last known of the sources stays: that they do not answer is why it is old.
  const mute = sources.value?.items.filter(({ answered }) => !answered) ?? []
  // Without any source the others are old at once: their rows leave as the alarm comes, and nothing moves twice.
  const isOld = mute.length > 0 && mute.length === sources.value?.items.length
  const silent = nodes.isOld || isOld ? [] : (nodes.value?.items.filter(isSilentHolder) ?? [])
  // A silent node that holds something is a finding too, and is named once.
  const groups =
    findings.isOld || isOld
      ? []
      : (findings.value?.kinds.filter(({ kind, count }) => count && !(silent[0] && kind === 'silent_node_holds')) ?? [])
  const keys = [
    ...groups.map(({ kind }) => kind),
    ...silent.map(({ node_id }) => `node ${node_id}`),
    ...(mute.length > 0 ? ['source'] : []),
  ]
  seenSince(keys, !findings.isOld && !nodes.isOld && !sources.isOld && !isOld, clock())
  const bySource = (key: string, since: number | null) => ({
    key,
    since: since ?? firstSeen.get(key) ?? clock(),
    isBySource: since !== null,
  })
  return [
    ...mute.slice(0, 1).map(({ source }) => ({
      ...bySource('source', null),
      kind: '',
      caption: `No answer from ${mute[1] ? `${mute.length} sources` : spacedName(source)}`,
      detail: [...new Set(mute.map(({ code }) => code as string))]
        .map((code) => {
          const sources = mute.filter((one) => one.code === code).map(({ source }) => spacedName(source))
          return `${problemName(code)}: ${sources.join(', ')}`
        })
        .join('; '),
      href: hrefOf('/sources'),
    })),
    ...silent.map(({ node_id, updated_at, connection_waiters }) => ({
      ...bySource(`node ${node_id}`, updated_at === null ? null : Date.parse(updated_at)),
      kind: '',
      caption: `Node ${node_id} is silent`,
      detail: connection_waiters ? `clients recorded there: ${countOf(connection_waiters)}` : 'clients there may wait',
      href: hrefOf('/delivery/nodes'),
    })),
    ...groups.map(({ kind, count, exact, oldest_since, sample }) => ({
      ...bySource(kind, oldest_since === null ? null : Date.parse(oldest_since)),
      kind,
      caption: `${exact ? '' : 'at least '}${countOf(count)} × ${spacedName(kind)}`,
      detail: sample ? Object.values(sample.subject).join(' / ') + (count === 1 ? '' : ', and others') : '',
      href: hrefOf('/findings', { kind }),
    })),
  ].sort(
    (a, b) =>
      Number(isSettled(b.since, b.key)) - Number(isSettled(a.since, a.key)) ||
      weightOf(a.kind) - weightOf(b.kind) ||
      a.since - b.since,
  )
}

const Row = ({ id, caption, detail, since, isBySource, href }: Need & { id: string }): JSX.Element => {
  const isRed = isSettled(since, id)
  const times = timesOf(id)
  return (
    <li class={isRed ? 'settled' : 'new'}>
      <a class={isRed ? 'bad' : ''} href={href}>
        {isRed ? '▲' : '△'} <Text value={caption} />
      </a>
      <span class="dim detail">
        <Text value={detail} />
      </span>
      <span>
        {isBySource ? 'since' : 'seen since'} <Time at={new Date(since).toISOString()} />
      </span>
      <span>{times >= OFTEN ? `${times} times` : isRed ? durationText(clock() - since) : 'just seen'}</span>
    </li>
  )
}

/** Rows that have a place of their own, so that nothing moves when one comes or goes. */
const PLACES = 4

export interface Problems extends Given {
  rows: Need[]
  /** Whether one of them is old enough to be an alarm. */
  isAlarm: boolean
  /** Whether everything was looked for and read to its end, just now. */
  isRead: boolean
}

/** What needs attention now. */
export function useProblems(): Problems {
  const findings = useAnswer<FindingSummary>('/findings/summary')
  const nodes = useNodes()
  const sources = useAnswer<{ items: SourceRow[] }>('/sources')
  const given = { findings, nodes, sources }
  const rows = attentionOf(given)
  const isChanging = rows.some(({ since, key }) => !isSettled(since, key))
  useTick(isChanging ? 1_000 : rows.length > 0 ? 5_000 : Infinity)
  const isRead =
    !findings.isOld &&
    !nodes.isOld &&
    !sources.isOld &&
    findings.value !== null &&
    isWhole(findings.value) &&
    sources.value !== null &&
    (nodes.value?.items.every(({ stale }) => stale !== null) ?? nodes.problem?.status === 501)
  // Sources are a fact of their own in the heading.
  const isAlarm = rows.some(({ since, key }) => key !== 'source' && isSettled(since, key))
  return { ...given, rows, isAlarm, isRead }
}

/** Which families were read, and which not. */
function Scope(): JSX.Element {
  const feed = useFeed()
  const named = (state: string) =>
    FEEDS.filter((_, i) => feed[i] === state)
      .map(({ name }) => name.toLowerCase())
      .join(', ')
  const [read, unfed] = [named('fed'), named('unfed')]
  return (
    <>
      No problems in what was read{read && `: ${read}`}.{unfed && ` Not checked: ${unfed} (not fed).`}
    </>
  )
}

/** The text if no problem was found. */
function Calm({ findings, sources, isRead }: Problems): JSX.Element {
  const count = countOf(sources.value?.items.length ?? 0)
  return (
    <li class="dim">
      {isRead ? (
        <>
          No problems found · {count} of {count} sources read · <AsOf path={findings.path} />
        </>
      ) : findings.value && !findings.isOld ? (
        <Scope />
      ) : findings.asOf === null && !findings.problem ? (
        'Loading …'
      ) : (
        'Unknown: no answer.'
      )}
    </li>
  )
}

export function Attention(problems: Problems): JSX.Element | null {
  const { rows, findings } = problems
  if (findings.problem?.code === NOT_SCOPABLE) return null
  return (
    <section class="attention" aria-label="Problems">
      <h2>Problems</h2>
      <ul class="plain">
        {rows.slice(0, PLACES).map((need) => (
          <Row {...need} key={need.key} id={need.key} />
        ))}
        {rows.length === 0 && <Calm {...problems} />}
      </ul>
      <p>{rows[PLACES] && <a href={hrefOf('/findings')}>{rows.length - PLACES} more →</a>}</p>
    </section>
  )
}
