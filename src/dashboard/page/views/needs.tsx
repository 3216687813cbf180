/** What needs attention: findings, silent nodes and sources that do not answer, each with its age. */
import type { JSX } from 'preact'
import type { ConnectionChurnAnswer } from '../../../contract/connections.js'
import type { DeliveryNodeAnswer } from '../../../contract/delivery.js'
import type { SourceRow } from '../../../diagnostics/sources.js'
import type { Finding, FindingSummary } from '../../../views/findings/finding.js'
import { hrefOf } from '../address.js'
import { NOT_SCOPABLE } from '../answers.js'
import { recentChurn } from '../charts/churn.js'
import { useAnswer, useTick } from '../hooks.js'
import type { Listed } from '../parts/list.js'
import { AsOf, ProblemNote, problemName } from '../parts/state.js'
import { Text } from '../parts/text.js'
import { Time } from '../parts/value.js'
import { clock, countOf, durationText, spacedName } from '../words.js'
import { type AnswerState, blindSpotOf, Headline, isWhole } from './headline.js'

/** A contradiction may be gone with the next reading: until it is so old it is no alarm. */
const SETTLED_MS = 10_000

const firstSeen = new Map<string, number>()

/** What comes and goes so often in this time is an alarm each time. */
const [OFTEN, WITHIN_MS] = [3, 600_000]
/** When each began to be seen, of the last minutes. */
const begun = new Map<string, number[]>()

export interface Need {
  key: string
  caption: string
  /** An example, or which ones. */
  detail: string
  /** Since when it is so, as far as that is known: by the source, or by this tab. */
  since: number
  isBySource: boolean
  href: string
}

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

function needsOf({ findings, nodes, sources }: Given): Need[] {
  const silent = nodes.isOld ? [] : (nodes.value?.items.filter(isSilentHolder) ?? [])
  // A silent node that holds something is a finding too, and is named once.
  const groups = findings.isOld
    ? []
    : (findings.value?.kinds.filter(({ kind, count }) => count && !(silent[0] && kind === 'silent_node_holds')) ?? [])
  // What was last known of the sources stays: that they do not answer is why it is old.
  const mute = sources.value?.items.filter(({ answered }) => !answered) ?? []
  const keys = [
    ...groups.map(({ kind }) => kind),
    ...silent.map(({ node_id }) => `node ${node_id}`),
    ...(mute.length > 0 ? ['source'] : []),
  ]
  seenSince(keys, !findings.isOld && !nodes.isOld && !sources.isOld, clock())
  const bySource = (key: string, since: number | null) => ({
    key,
    since: since ?? firstSeen.get(key) ?? clock(),
    isBySource: since !== null,
  })
  return [
    ...mute.slice(0, 1).map(({ source }) => ({
      ...bySource('source', null),
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
      caption: `Node ${node_id} is silent`,
      detail: connection_waiters ? `clients recorded there: ${countOf(connection_waiters)}` : 'what it has may wait',
      href: hrefOf('/delivery/nodes'),
    })),
    ...groups.map(({ kind, count, exact, oldest_since, sample }) => ({
      ...bySource(kind, oldest_since === null ? null : Date.parse(oldest_since)),
      caption: `${exact ? '' : 'at least '}${countOf(count)} × ${spacedName(kind)}`,
      detail: sample ? Object.values(sample.subject).join(' / ') + (count === 1 ? '' : ', and others') : '',
      href: hrefOf('/findings', { kind }),
    })),
  ].sort((a, b) => Number(isSettled(b.since, b.key)) - Number(isSettled(a.since, a.key)) || a.since - b.since)
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
const PLACES = 3

export const useNodes = () => useAnswer<Listed<DeliveryNodeAnswer>>('/delivery/nodes')
const useSources = () => useAnswer<{ items: SourceRow[] }>('/sources')

const LOST = 'heartbeat_lost'

/** How many connections were lost in the last minutes; nothing for none, and where it is unknown. */
function useLost(): number | undefined {
  const { value, isOld } = useAnswer<ConnectionChurnAnswer>('/connections/churn')
  const recent = value && !isOld ? recentChurn(value.items, value.observed_at) : null
  return recent?.gone.find(([reason]) => reason === LOST)?.[1]
}

export function Needs(): JSX.Element {
  const lost = useLost()
  const findings = useAnswer<FindingSummary>('/findings/summary')
  const nodes = useNodes()
  const sources = useSources()
  const given = { findings, nodes, sources }
  const needs = needsOf(given)
  const isChanging = needs.some(({ since, key }) => !isSettled(since, key))
  useTick(isChanging ? 1_000 : needs.length > 0 ? 5_000 : Infinity)
  // Sources are a fact of their own in the line below.
  const found = needs.filter(({ key }) => key !== 'source')
  const settled = needs.filter(({ since, key }) => isSettled(since, key)).length
  if (findings.problem?.code === NOT_SCOPABLE) return <ProblemNote problem={findings.problem} />
  // Calm is only what was read to its end, and just now.
  const isRead =
    !findings.isOld &&
    !nodes.isOld &&
    !sources.isOld &&
    findings.value !== null &&
    isWhole(findings.value) &&
    sources.value !== null &&
    (nodes.value?.items.every(({ stale }) => stale !== null) ?? nodes.problem?.status === 501)
  return (
    <section class="needs" aria-label="Needs you">
      <h2>
        {settled > 0 ? `${settled} thing${settled === 1 ? '' : 's'} need${settled === 1 ? 's' : ''} you` : 'Needs you'}
      </h2>
      <ul class="plain">
        {needs.slice(0, PLACES).map((need) => (
          <Row {...need} key={need.key} id={need.key} />
        ))}
        {needs.length === 0 && (
          <li class="dim">
            {isRead ? (
              <>
                No problems found · {countOf(sources.value?.items.length ?? 0)} of{' '}
                {countOf(sources.value?.items.length ?? 0)} sources read, <AsOf path={findings.path} />
              </>
            ) : findings.value && !findings.isOld ? (
              `No problems in what was read${blindSpotOf(findings.value)}.`
            ) : findings.asOf === null && !findings.problem ? (
              'Loading …'
            ) : (
              'Unknown: no answer.'
            )}
          </li>
        )}
      </ul>
      <div class="under">
        <Headline {...given} isAlarm={found.some(({ since, key }) => isSettled(since, key))}>
          {lost && (
            <a class="warn" href={hrefOf('/connections', { ended_reason: LOST })}>
              {countOf(lost)} {spacedName(LOST)} in 3 min
            </a>
          )}
        </Headline>
        {needs[PLACES] && <a href={needs[PLACES].href}>{needs.length - PLACES} more →</a>}
      </div>
    </section>
  )
}
