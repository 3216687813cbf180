/** The lines of `top` above its tables: whether anybody answers, what is under way, what contradicts what. */
import { clock, type Frame, line, type Span } from './paint.js'
import { type Known, knownOf, type TopState } from './state.js'
import { TABLES } from './tables.js'

/** What has not been confirmed for so long is shown as old. */
const LATE_MS = 5_000

/** Whether nobody has confirmed it, for a reason or for too long. */
const isLate = ({ at, problem }: Known, now: number) => problem !== null || (at !== null && now - at > LATE_MS)

/** `said` of an answer; of one that nobody has confirmed with its time in front, and behind it why. */
function dated(answer: Known, said: Span, { paint, now }: Frame): Span[] {
  const { at, problem } = answer
  if (at === null || !isLate(answer, now)) return [said]
  return [[`as of ${clock(at)}  `, paint.bad], said, [problem === null ? '' : `  ${problem}`, paint.bad]]
}

function title(state: TopState, { width, paint, url, now }: Frame): string {
  const answer = knownOf(state, '/capabilities')
  const { value, at, problem } = answer
  const { deployment_id, mode } = (value as { extensions?: Record<string, unknown> } | null)?.extensions ?? {}
  const late = isLate(answer, now)
  const fresh = at === null ? (problem ?? 'asking') : late ? `NO ANSWER, as of ${clock(at)}` : `as of ${clock(at)}`
  return line(width, [
    [`${deployment_id ?? 'relayscope'}  `, paint.bold],
    [`${mode ?? url}  `, paint.dim],
    state.isPaused ? ['PAUSED ', paint.warn] : [''],
    [fresh, late ? paint.bad : paint.ok],
    ...(problem !== null && at !== null ? [[`  ${problem}`, paint.bad] as const] : []),
  ])
}

interface SourceRow {
  source: string
  answered: boolean
  code: string | null
}

function sources(state: TopState, frame: Frame): string {
  const { width, paint } = frame
  const answer = knownOf(state, '/sources')
  const { value, problem } = answer
  const items = (value as { items?: SourceRow[] } | null)?.items
  if (!items) return line(width, [[`sources: ${problem ?? 'asking'}`, problem ? paint.bad : paint.dim]])
  const mute = items.filter(({ answered }) => !answered)
  const said: Span =
    mute.length === 0
      ? [`all ${items.length} sources answer`, paint.dim]
      : [`no answer from ${mute.map(({ source, code }) => `${source} (${code})`).join(', ')}`, paint.bad]
  return line(width, dated(answer, said, frame))
}

/** What is answered now: a number of before would be read as one of now. */
function current(state: TopState, route: string): unknown {
  const { value, problem } = knownOf(state, route)
  return problem === null ? value : null
}

/** `12`, `100+` where more follow, `?` where nobody knows. */
function countOf(state: TopState, name: string): string {
  const value = current(state, `/delivery/commands?state=${name}&limit=100`)
  const page = value as { items: unknown[]; has_more: boolean } | null
  if (!page) return '?'
  return `${page.items.length}${page.has_more ? '+' : ''}`
}

const known = (value: unknown) => `${value ?? '?'}`

function flow(state: TopState, { width, paint }: Frame): string[] {
  const summary = current(state, '/delivery/summary') as Record<string, unknown> | null
  const nodes = current(state, TABLES[0]?.route as string) as { items: { counters: Counters }[] } | null
  const ended = ['resulted', 'failed', 'expired', 'cancelled', 'rejected'].map((name) => {
    const sum = nodes?.items.reduce((total, { counters }) => total + (counters.outcome?.[name] ?? 0), 0)
    return `${sum ?? '?'} ${name}`
  })
  const [waiting, attempted, acknowledged] = ['waiting', 'attempted', 'acknowledged'].map((name) =>
    countOf(state, name),
  )
  return [
    line(width, [
      ['commands  ', paint.dim],
      [`${waiting} waiting > ${attempted} attempted > ${acknowledged} acknowledged`],
      [
        `   ${known(summary?.tracked_commands)} tracked, ${known(summary?.due_commands)} due, ${known(summary?.waiting_for_client)} waiting for client`,
        paint.dim,
      ],
    ]),
    line(width, [['ended since the nodes started  ', paint.dim], [ended.join(', ')]]),
  ]
}

interface Counters {
  outcome?: Record<string, number>
}

interface FindingRow {
  kind: string
  subject: Record<string, string>
}

function findings(state: TopState, frame: Frame): string {
  const { width, paint } = frame
  const answer = knownOf(state, '/findings?limit=100')
  const { value, problem } = answer
  const page = value as { items: FindingRow[]; has_more: boolean; completeness: { complete: boolean } } | null
  if (!page) return line(width, [[`findings  ${problem ?? 'asking'}`, problem ? paint.bad : paint.dim]])
  const { items, has_more, completeness } = page
  const whole = completeness.complete && !has_more
  const head: Span = ['findings  ', paint.dim]
  const [first] = items
  if (!first)
    return line(width, [head, ...dated(answer, [`none${whole ? '' : ' in what was read'}`, paint.dim], frame)])
  const said = `${first.kind.replaceAll('_', ' ')} (${Object.values(first.subject).join(' / ')})`
  const count = `${items.length}${has_more ? '+' : ''}`
  return line(width, [head, ...dated(answer, [`${count}  ${said}`, paint.bad], frame)])
}

export const headerOf = (state: TopState, frame: Frame): string[] => [
  title(state, frame),
  sources(state, frame),
  ...flow(state, frame),
  findings(state, frame),
]
