/** `relayscope status`: the overview of a relay, printed once. */
import type { ConnectionChurn, ConnectionCounts } from '../contract/connections.js'
import type { DeliveryNode } from '../contract/delivery.js'
import { type DeliverySummary, TerminalState, TRACKED_STATES } from '../contract/delivery-summary.js'
import type { RpcSummary } from '../contract/rpc.js'
import type { SourceRow } from '../diagnostics/sources.js'
import type { FindingSummary } from '../views/findings/finding.js'
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
/** A contradiction may be gone with the next reading: a younger one needs no person yet. */
const SETTLED_MS = 10_000
/** Lines about single nodes, at most. */
const NODES_SHOWN = 5

const ROUTES = {
  findings: '/findings/summary',
  nodes: '/delivery/nodes?limit=200',
  sources: '/sources',
  summary: '/delivery/summary',
  counts: '/connections/count?status=connected',
  churn: '/connections/churn',
  calls: '/rpc/summary',
} as const

interface NodePage {
  readonly items: readonly DeliveryNode[]
  readonly has_more: boolean
}

/** What each route returned; `null` is unknown. */
export interface StatusAnswers {
  readonly findings: FindingSummary | null
  readonly nodes: NodePage | null
  readonly sources: { readonly items: readonly SourceRow[] } | null
  readonly summary: DeliverySummary | null
  readonly counts: (ConnectionCounts & { of_silent_nodes: number | null }) | null
  readonly churn: ConnectionChurn | null
  readonly calls: RpcSummary | null
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
  const isRead =
    findings.completeness.complete &&
    findings.not_looked_for.length === 0 &&
    findings.kinds.every(({ count: found, exact }) => found !== null && exact) &&
    sources !== null &&
    (nodes === null || (!nodes.has_more && nodes.items.every(({ stale }) => stale !== null)))
  return isRead
    ? `No problems found · ${sources.items.length} of ${sources.items.length} sources read`
    : 'No problems in what was read.'
}

/** How many findings, silent nodes and sources without an answer there are, as far as known. */
function headline({ findings, nodes, sources, churn }: StatusAnswers): string {
  const found = findings?.kinds.reduce((sum, each) => sum + (each.count ?? 0), 0) ?? null
  const isAll = findings?.completeness.complete && findings.kinds.every(({ exact }) => exact)
  const silent = nodes?.items.filter(({ stale }) => stale).length ?? null
  const isEachKnown = nodes !== null && !nodes.has_more && nodes.items.every(({ stale }) => stale !== null)
  const mute = sources?.items.filter(({ answered }) => !answered).length ?? null
  const since = churn ? Date.parse(churn.observed_at) - 180_000 : 0
  const lost = (churn?.items ?? [])
    .filter(({ minute }) => Date.parse(minute) > since)
    .reduce((sum, { ended }) => sum + (ended.heartbeat_lost ?? 0), 0)
  return [
    found === null
      ? 'findings unknown'
      : found > 0
        ? `${found}${isAll ? '' : '+'} finding${found === 1 ? '' : 's'}`
        : `no findings${isAll && findings?.not_looked_for.length === 0 ? '' : ' in what was read'}`,
    silent === null || (!isEachKnown && silent === 0)
      ? 'silent nodes unknown'
      : `${silent}${isEachKnown ? '' : '+'} of ${nodes?.items.length}${nodes?.has_more ? '+' : ''} nodes silent`,
    mute === null ? 'sources unknown' : mute === 0 ? 'all sources answer' : `no answer from ${mute} sources`,
    ...(lost > 0 ? [`${lost} heartbeat lost in 3 min`] : []),
  ].join(' · ')
}

function* commandLines({ summary }: StatusAnswers): Generator<string> {
  if (summary === null) return yield 'Commands  unknown'
  const { by_state, tracked_commands, due_commands, oldest_open_age_ms, waits_for } = summary
  const of = (states: readonly string[]) =>
    states.map((state) => `${state} ${count((by_state as Record<string, number> | null)?.[state])}`).join(' · ')
  yield `Commands  ${of(TRACKED_STATES)}`
  yield `  ended, still kept: ${of(TerminalState.options)}`
  const waits = Object.entries(waits_for ?? {})
    .filter(([, waiting]) => waiting > 0)
    .sort(([, a], [, b]) => b - a)
    .map(([name, waiting]) => `${waiting} for ${spaced(name)}`)
  const oldest = oldest_open_age_ms === null ? '' : `; the oldest in delivery for ${duration(oldest_open_age_ms)}`
  yield `  ${count(tracked_commands)} in delivery${waits.length > 0 ? `, waiting: ${waits.join(', ')}` : ''}, ${count(due_commands)} due${oldest}`
}

/** The overview, line by line, in the order of the dashboard's. */
export function statusOf(answers: StatusAnswers): { lines: string[]; needsPerson: boolean } {
  const { counts, calls } = answers
  const { settled, fresh } = needsOf(answers)
  const number = settled.length
  const lines = [
    number === 0 ? 'Nothing needs you' : `${number} thing${number === 1 ? ' needs' : 's need'} you`,
    ...settled.map((line) => `  ▲ ${line}`),
    ...fresh.map((line) => `  △ ${line}`),
    ...(number + fresh.length === 0 ? [`  ${nothingOf(answers)}`] : []),
    headline(answers),
    ...commandLines(answers),
    `Connected clients  ${count(counts?.total)}${Object.entries(counts?.by_client_type ?? {})
      .filter(([, each]) => each > 0)
      .map(([type, each], i) => `${i === 0 ? ': ' : ', '}${each} ${type}`)
      .join('')}`,
    ...(counts?.of_silent_nodes
      ? [`  ${counts.of_silent_nodes} of them on silent nodes: they may be disconnected`]
      : []),
    calls
      ? `Calls  ${calls.pending} pending, ${calls.overdue} of them past their deadline${calls.oldest_age_ms === null ? '' : `; the oldest for ${duration(calls.oldest_age_ms)}`}`
      : 'Calls  unknown',
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
  const answers = Object.fromEntries(read.map(([name, { value }]) => [name, value ?? null]))
  const { lines, needsPerson } = statusOf(answers as unknown as StatusAnswers)
  const { problem } = results.findings
  if (problem === undefined || Object.values(answers).some((value) => value !== null))
    print(out, lines.map((line) => wrap(visible(line), Math.min(COLUMNS, out.columns || COLUMNS), 4)).join('\n'))
  if (needsPerson) return 1
  if (problem === undefined) return 0
  // Without findings it is unknown whether something needs a person.
  print(err, `relayscope: ${problem}`)
  return 2
}
