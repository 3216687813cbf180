/** `relayscope status`: the overview of a relay, printed once. */
import type { BrowserWindowCounts } from '../internal/contract/browser-windows.js'
import type { Capabilities } from '../internal/contract/capabilities.js'
import type { ConnectionChurn, ConnectionCounts } from '../internal/contract/connections.js'
import type { ContextCounts } from '../internal/contract/contexts.js'
import type { DeliveryNode } from '../internal/contract/delivery.js'
import { type DeliverySummary, TerminalState, TRACKED_STATES } from '../internal/contract/delivery-summary.js'
import type { RpcSummary } from '../internal/contract/rpc.js'
import type { SourceRow } from '../internal/diagnostics/sources.js'
import type { FindingSummary } from '../internal/views/findings/finding.js'
import { parse, UsageError } from './arguments.js'
import { createReader, type FetchResult, readKey, readTarget } from './reader/reader.js'
import { print, visible, wrap } from './text/table.js'

const STATUS_HELP = `relayscope status: prints the overview of a relay once

  npx relayscope status http://127.0.0.1:8080/ops/diagnostics
  watch -n 2 relayscope status http://127.0.0.1:8080/ops/diagnostics

  --key-file FILE  the admin key (default SERVICE_ADMIN_KEY)

Exit codes: 0 nothing needs a person, as far as it was read; 1 something does; 2 refused, unreachable or wrong usage.
`

const OPTIONS = { 'key-file': { type: 'string' }, help: { type: 'boolean', short: 'h' } } as const
const COLUMNS = 80
/** A finding may be gone with the next reading: a younger one needs no person yet. */
const SETTLED_MS = 10_000
/** Lines about single nodes, at most. */
const NODES_SHOWN = 5
/** Reasons of ended commands, at most. */
const REASONS_SHOWN = 3

const ROUTES = {
  findings: '/findings/summary',
  nodes: '/delivery/nodes?limit=200',
  sources: '/sources',
  capabilities: '/capabilities',
  summary: '/delivery/summary',
  counts: '/connections/count',
  churn: '/connections/churn',
  calls: '/rpc/summary',
  contexts: '/contexts/count?ownership=worker',
  windows: '/browser-windows/count',
  sites: '/sites',
} as const

interface NodePage {
  readonly items: readonly DeliveryNode[]
  readonly has_more: boolean
}

/** Whether the deployment has no such part. */
const isAbsent = ({ problem }: FetchResult) => problem?.startsWith('501 ') === true

/** What each route returned; `null` is unknown, `undefined` no part of the deployment. */
export interface StatusAnswers {
  readonly findings: FindingSummary | null | undefined
  readonly nodes: NodePage | null | undefined
  readonly sources: { readonly items: readonly SourceRow[] } | null | undefined
  readonly capabilities: Capabilities | null | undefined
  readonly summary: DeliverySummary | null | undefined
  readonly counts: (ConnectionCounts & { of_silent_nodes: number | null }) | null | undefined
  readonly churn: ConnectionChurn | null | undefined
  readonly calls: RpcSummary | null | undefined
  readonly contexts: ContextCounts | null | undefined
  readonly windows: BrowserWindowCounts | null | undefined
  readonly sites: { readonly items: readonly unknown[]; readonly has_more: boolean } | null | undefined
}

const spaced = (name: string) => name.replaceAll('_', ' ')
const count = (value: number | null | undefined) => (value == null ? 'unknown' : String(value))

/** `45 s`, `3 min`, `2 h`, `4 d`. */
function duration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1_000))
  if (s < 60) return `${s} s`
  if (s < 3_600) return `${Math.floor(s / 60)} min`
  return s < 172_800 ? `${Math.floor(s / 3_600)} h` : `${Math.floor(s / 86_400)} d`
}

/** What needs a person, one line each, and what is too young to. */
function needsOf({ findings, nodes, sources }: StatusAnswers): { settled: string[]; fresh: string[] } {
  const [settled, fresh]: [string[], string[]] = [[], []]
  const mute = sources?.items.filter(({ answered }) => !answered) ?? []
  if (mute.length > 0)
    settled.push(`No answer from ${mute.map(({ source, code }) => `${spaced(source)} (${code})`).join(', ')}`)
  // A silent node that holds nothing needs no attention: the line below counts it.
  const silent = (nodes?.items ?? []).filter(
    ({ stale, connection_waiters, active_drainers }) => stale && (connection_waiters !== 0 || active_drainers !== 0),
  )
  for (const { node_id, staleness_ms } of silent.slice(0, NODES_SHOWN))
    settled.push(`Node ${node_id} is silent${staleness_ms === null ? '' : ` for ${duration(staleness_ms)}`}`)
  if (silent.length > NODES_SHOWN) settled.push(`${silent.length - NODES_SHOWN} more nodes are silent`)
  for (const { kind, count: found, exact, oldest_since, sample } of findings?.kinds ?? []) {
    if (!found || (kind === 'silent_node_holds' && silent.length > 0)) continue
    const age = oldest_since === null ? null : Date.parse(findings?.observed_at as string) - Date.parse(oldest_since)
    const example = sample ? `: ${Object.values(sample.subject).join(' / ')}${found > 1 ? ', and others' : ''}` : ''
    const since = age === null ? '' : ` for ${duration(age)}`
    const into = age !== null && age < SETTLED_MS ? fresh : settled
    into.push(`${exact ? '' : 'at least '}${found} × ${spaced(kind)}${since}${example}`)
  }
  return { settled, fresh }
}

function nothingOf({ findings, nodes, sources }: StatusAnswers): string {
  if (findings === null) return 'Unknown: no answer.'
  if (findings === undefined) return 'No part of this deployment has problems to look for.'
  const isRead =
    findings.completeness.complete &&
    findings.not_looked_for.length === 0 &&
    findings.kinds.every(({ count: found, exact }) => found !== null && exact) &&
    !!sources &&
    (!nodes || (!nodes.has_more && nodes.items.every(({ stale }) => stale !== null)))
  return isRead
    ? `No problems found · ${sources.items.length} of ${sources.items.length} sources read`
    : 'No problems in what was read.'
}

const plural = (number: number, noun: string) => `${number} ${noun}${number === 1 ? '' : 's'}`

/** The deployment, its nodes and clients, and whether its sources answer. */
function headline({ capabilities, nodes, sources, counts, churn }: StatusAnswers): string {
  const silent = nodes?.items.filter(({ stale }) => stale).length ?? null
  const isEachKnown = !!nodes && !nodes.has_more && nodes.items.every(({ stale }) => stale !== null)
  const mute = sources?.items.filter(({ answered }) => !answered).length ?? null
  const since = churn ? Date.parse(churn.observed_at) - 180_000 : 0
  const lost = (churn?.items ?? [])
    .filter(({ minute }) => Date.parse(minute) > since)
    .reduce((sum, { ended }) => sum + (ended?.heartbeat_lost ?? 0), 0)
  const clients = counts?.by_status?.connected
  const nodesShown =
    silent === null || (!isEachKnown && silent === 0)
      ? 'silent nodes unknown'
      : silent === 0
        ? plural(nodes?.items.length ?? 0, 'node')
        : `${silent}${isEachKnown ? '' : '+'} of ${nodes?.items.length}${nodes?.has_more ? '+' : ''} nodes silent`
  return [
    String(capabilities?.extensions.deployment_id ?? 'relayscope'),
    ...(nodes === undefined ? [] : [nodesShown]),
    ...(clients === undefined ? [] : [plural(clients, 'client')]),
    mute === null ? 'sources unknown' : mute === 0 ? 'all sources answer' : `no answer from ${plural(mute, 'source')}`,
    ...(lost > 0 ? [`${lost} heartbeat lost in 3 min`] : []),
  ].join(' · ')
}

function findingsIn({ findings }: StatusAnswers): string[] {
  if (findings === undefined) return []
  if (findings === null) return ['findings unknown']
  const found = findings.kinds.reduce((sum, each) => sum + (each.count ?? 0), 0)
  const isAll = findings.completeness.complete && findings.kinds.every(({ exact }) => exact)
  if (found > 0) return [`${found}${isAll ? '' : '+'} finding${found === 1 ? '' : 's'}`]
  return [`no findings${isAll && findings.not_looked_for.length === 0 ? '' : ' in what was read'}`]
}

/** One number for each family that has ever been fed, problems first, each with what is wrong. */
function numbersOf(answers: StatusAnswers): string {
  const { counts, calls, summary, contexts, windows, sites } = answers
  const withBad = (text: string, bad: readonly (string | false)[]) => {
    const given = bad.filter((each) => each !== false)
    return given.length > 0 ? `${text} (${given.join(', ')})` : text
  }
  const ends = (['failed', 'expired', 'rejected'] as const).map((name) => {
    const number = summary?.by_state?.[name]
    return !!number && `${number} ${name}`
  })
  const isFed = (number: number | null | undefined) => number !== null && number !== undefined && number > 0
  const unanswered = calls?.counters?.unanswered
  return [
    ...findingsIn(answers),
    ...(counts && isFed(counts.total)
      ? [
          withBad(plural(counts.by_status.connected, 'client'), [
            !!counts.of_silent_nodes && `${counts.of_silent_nodes} on silent nodes`,
          ]),
        ]
      : []),
    ...(calls && (isFed(calls.counters?.opened) || calls.observed)
      ? [
          withBad(plural(calls.pending, 'open call'), [
            calls.overdue ? `${calls.overdue} past their deadline` : !!unanswered && `${unanswered} unanswered`,
          ]),
        ]
      : []),
    ...(summary
      ? [withBad(`${count(summary.tracked_commands)} open command${summary.tracked_commands === 1 ? '' : 's'}`, ends)]
      : []),
    ...(contexts && isFed(contexts.total)
      ? [
          withBad(plural(contexts.by_status.active + contexts.by_status.idle, 'worker'), [
            contexts.by_status.stale > 0 && `${contexts.by_status.stale} stale`,
          ]),
        ]
      : []),
    ...(windows && isFed(windows.total)
      ? [
          withBad(plural(windows.by_status.open, 'window'), [
            windows.by_status.stale > 0 && `${windows.by_status.stale} stale`,
          ]),
        ]
      : []),
    ...(sites && sites.items.length > 0
      ? [`${plural(sites.items.length, 'site')}${sites.has_more ? ' or more' : ''}`]
      : []),
  ].join(' · ')
}

function* commandLines({ summary }: StatusAnswers): Generator<string> {
  if (!summary) return
  const { by_state, by_reason, tracked_commands, due_commands, oldest_open_age_ms, waits_for } = summary
  const of = (states: readonly string[]) =>
    states.map((state) => `${state} ${count((by_state as Record<string, number> | null)?.[state])}`).join(' · ')
  yield 'Commands'
  if (by_state !== null) yield `  ${of(TRACKED_STATES)} · ${of(TerminalState.options)}`
  const reasons = Object.entries(by_reason ?? {})
    .filter(([reason]) => !/^(unspecified|other)$/.test(reason))
    .sort(([, a], [, b]) => b - a)
    .slice(0, REASONS_SHOWN)
    .map(([reason, ended]) => `${ended} ${spaced(reason)}`)
  if (reasons.length > 0) yield `  Ended: ${reasons.join(' · ')}`
  const waits = Object.entries(waits_for ?? {})
    .filter(([, waiting]) => waiting > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, waiting]) => `${waiting} for ${spaced(name)}`)
  const oldest = oldest_open_age_ms === null ? '' : `; the oldest open for ${duration(oldest_open_age_ms)}`
  yield `  ${count(tracked_commands)} open${waits.length > 0 ? `, waiting: ${waits.join(', ')}` : ''}, ${count(due_commands)} due${oldest}`
}

/** Calls, and those that followers saw in the traffic of the host by how they ended. */
function callLines({ calls }: StatusAnswers): string[] {
  if (!calls) return []
  const { actions } = calls.observed ?? { actions: [] }
  const ends = (['succeeded', 'failed', 'cancelled', 'unanswered'] as const).map(
    (outcome) => `${outcome} ${actions.reduce((sum, action) => sum + action[outcome], 0)}`,
  )
  const oldest = calls.oldest_age_ms === null ? '' : `, the oldest for ${duration(calls.oldest_age_ms)}`
  return [
    'Calls',
    `  ${count(calls.pending)} open${oldest}`,
    ...(actions.length > 0 ? [`  observed, ended: ${ends.join(' · ')}`] : []),
  ]
}

/** The overview, line by line, in the order and the words of the dashboard's. */
export function statusOf(answers: StatusAnswers): { lines: string[]; needsPerson: boolean } {
  const { settled, fresh } = needsOf(answers)
  const number = settled.length
  const lines = [
    headline(answers),
    numbersOf(answers),
    'Problems',
    ...settled.map((line) => `  ▲ ${line}`),
    ...fresh.map((line) => `  △ ${line}`),
    ...(number + fresh.length === 0 ? [`  ${nothingOf(answers)}`] : []),
    ...commandLines(answers),
    ...callLines(answers),
  ]
  return { lines, needsPerson: number > 0 }
}

interface Output {
  readonly columns?: number
  write(text: string): unknown
}

/** Fetches and prints. @returns the exit code. @throws UsageError for invalid arguments */
export async function status(
  args: readonly string[],
  env: Record<string, string | undefined>,
  out: Output,
  err: Output,
): Promise<number> {
  const { values, positionals } = parse(args, OPTIONS)
  if (values.help) {
    print(out, STATUS_HELP.trimEnd())
    return 0
  }
  if (positionals.length !== 1) throw new UsageError('expected one URL')
  const reader = createReader(readTarget(positionals[0]), await readKey(values['key-file'], env))
  const read = await Promise.all(
    Object.entries(ROUTES).map(async ([name, route]) => [name, await reader.fetchRoute(route)] as const),
  )
  const results = Object.fromEntries(read) as Record<keyof typeof ROUTES, FetchResult>
  const answers = Object.fromEntries(
    read.map(([name, result]) => [name, result.value ?? (isAbsent(result) ? undefined : null)]),
  )
  const { lines, needsPerson } = statusOf(answers as unknown as StatusAnswers)
  const problem = isAbsent(results.findings) ? undefined : results.findings.problem
  if (problem === undefined || Object.values(answers).some((value) => value != null))
    print(out, lines.map((line) => wrap(visible(line), Math.min(COLUMNS, out.columns || COLUMNS), 4)).join('\n'))
  if (needsPerson) return 1
  if (problem === undefined) return 0
  // Without findings it is unknown whether something needs a person.
  print(err, `relayscope: ${problem}`)
  return 2
}
