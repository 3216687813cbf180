/** What `top` shows of a state, line by line: as many as there are rows, none wider than the terminal. */
import { recordLines, tableOf } from '../text/table.js'
import { padTo, visible, widthOf } from '../text/visible.js'
import { type Known, rowsOf, type TopState, tableOfState, UNKNOWN } from './state.js'
import { TABLES } from './tables.js'

/** How a line is drawn; without colours what matters is still bold, inverse, or said. */
export interface Paint {
  bad(text: string): string
  warn(text: string): string
  ok(text: string): string
  dim(text: string): string
  bold(text: string): string
  chosen(text: string): string
}

const sgr = (code: string) => (text: string) => (text === '' ? '' : `\x1b[${code}m${text}\x1b[0m`)
const plain = (text: string) => text

export const COLOURS: Paint = {
  bad: sgr('1;31'),
  warn: sgr('33'),
  ok: sgr('32'),
  dim: sgr('2'),
  bold: sgr('1'),
  chosen: sgr('7'),
}
/** For NO_COLOR: weight and inversion are none. */
export const NO_COLOURS: Paint = { ...COLOURS, bad: sgr('1'), warn: plain, ok: plain }
/** For what is no terminal. */
export const PLAIN: Paint = { bad: plain, warn: plain, ok: plain, dim: plain, bold: plain, chosen: plain }

export interface Frame {
  readonly width: number
  /** `null`: as many lines as there are. */
  readonly height: number | null
  readonly paint: Paint
  readonly url: string
  readonly now: number
}

/** What has not been confirmed for so long is shown as old. */
const LATE_MS = 5_000

const clock = (at: number) => new Date(at).toTimeString().slice(0, 8)

const known = ({ known }: TopState, route: string): Known => known.get(route) ?? UNKNOWN

/** A line of parts, each with how it is drawn, cut where the terminal ends. */
function line(width: number, parts: readonly (readonly [text: string, paint?: (text: string) => string])[]): string {
  let left = width
  let drawn = ''
  for (const [text, paint = plain] of parts) {
    const shown = visible(text)
    const own = widthOf(shown)
    if (own <= left) {
      drawn += paint(shown)
      left -= own
    } else {
      drawn += paint(padTo(shown, left))
      break
    }
  }
  return drawn
}

function title(state: TopState, { width, paint, url, now }: Frame): string {
  const { value, at, problem } = known(state, '/capabilities')
  const { deployment_id, mode } = (value as { extensions?: Record<string, unknown> } | null)?.extensions ?? {}
  const isLate = problem !== null || (at !== null && now - at > LATE_MS)
  const fresh = at === null ? (problem ?? 'asking') : isLate ? `NO ANSWER, as of ${clock(at)}` : `as of ${clock(at)}`
  return line(width, [
    [`${deployment_id ?? 'relayscope'}  `, paint.bold],
    [`${mode ?? url}  `, paint.dim],
    state.isPaused ? ['PAUSED ', paint.warn] : [''],
    [fresh, isLate ? paint.bad : paint.ok],
    ...(isLate && problem !== null && at !== null ? [[`  ${problem}`, paint.bad] as const] : []),
  ])
}

interface SourceRow {
  source: string
  answered: boolean
  code: string | null
}

function sources(state: TopState, { width, paint }: Frame): string {
  const { value, problem } = known(state, '/sources')
  const items = (value as { items?: SourceRow[] } | null)?.items
  if (!items) return line(width, [[`sources: ${problem ?? 'asking'}`, problem ? paint.bad : paint.dim]])
  const mute = items.filter(({ answered }) => !answered)
  if (mute.length === 0) return line(width, [[`all ${items.length} sources answer`, paint.dim]])
  return line(width, [
    [`no answer from ${mute.map(({ source, code }) => `${source} (${code})`).join(', ')}`, paint.bad],
  ])
}

/** `12`, `100+` where more follow, `?` where nobody knows. */
function countOf(state: TopState, name: string): string {
  const { value, problem } = known(state, `/delivery/commands?state=${name}&limit=100`)
  const page = value as { items: unknown[]; has_more: boolean } | null
  if (!page || problem !== null) return '?'
  return `${page.items.length}${page.has_more ? '+' : ''}`
}

function flow(state: TopState, { width, paint }: Frame): string {
  const summary = known(state, '/delivery/summary').value as Record<string, unknown> | null
  const nodes = known(state, TABLES[0]?.route as string).value as { items: { counters: Counters }[] } | null
  const ended = ['resulted', 'failed', 'expired', 'cancelled', 'rejected'].map((name) => {
    const sum = nodes?.items.reduce((total, { counters }) => total + (counters.outcome?.[name] ?? 0), 0)
    return `${sum ?? '?'} ${name}`
  })
  return line(width, [
    ['commands  ', paint.dim],
    [
      `${countOf(state, 'waiting')} waiting > ${countOf(state, 'attempted')} attempted > ${countOf(state, 'acknowledged')} acknowledged`,
    ],
    [` > ${ended.join(', ')}`],
    [`   ${summary?.tracked_commands ?? '?'} tracked, ${summary?.due_commands ?? '?'} due`, paint.dim],
  ])
}

interface Counters {
  outcome?: Record<string, number>
}

interface FindingRow {
  kind: string
  subject: Record<string, string>
}

function findings(state: TopState, { width, paint }: Frame): string {
  const { value, problem } = known(state, '/findings?limit=100')
  const page = value as { items: FindingRow[]; has_more: boolean; completeness: { complete: boolean } } | null
  if (!page) return line(width, [[`findings  ${problem ?? 'asking'}`, problem ? paint.bad : paint.dim]])
  const { items, has_more, completeness } = page
  const whole = completeness.complete && !has_more
  if (items.length === 0) return line(width, [[`findings  none${whole ? '' : ' in what was read'}`, paint.dim]])
  const [first] = items as [FindingRow]
  const said = `${first.kind.replaceAll('_', ' ')} (${Object.values(first.subject).join(' / ')})`
  return line(width, [
    ['findings  ', paint.dim],
    [`${items.length}${has_more ? '+' : ''}`, paint.bad],
    [`  ${said}`, paint.bad],
  ])
}

function tabs(state: TopState, { width, paint }: Frame): string {
  return line(
    width,
    TABLES.flatMap(({ name }, i) => [
      [` ${i + 1} ${name} `, i === state.table ? paint.chosen : paint.dim] as const,
      [' '] as const,
    ]),
  )
}

/** A row with the fields of its table first, in their order; whatever else it has is for its own page. */
function shownOf(row: object, fields: readonly string[]): object {
  const at = (field: string): unknown =>
    field.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], row)
  return Object.fromEntries(fields.map((field) => [field, at(field) ?? null]))
}

function extent(state: TopState, rows: number, { paint, width }: Frame): string {
  const { value, at, problem } = known(state, tableOfState(state).route)
  const { has_more, completeness } = (value ?? {}) as { has_more?: boolean; completeness?: { complete?: boolean } }
  return line(width, [
    [`${rows} rows`, paint.dim],
    [has_more ? ', and more follow' : '', paint.warn],
    [completeness?.complete === false ? ', a sample' : '', paint.warn],
    [at === null ? '' : `, as of ${clock(at)}`, paint.dim],
    [state.sort === null ? '' : `, by ${state.sort}${state.isDescending ? ' down' : ''}`, paint.dim],
    [state.filter === '' && !state.isTyping ? '' : `, with "${state.filter}${state.isTyping ? '_' : ''}"`, paint.warn],
    [problem === null ? '' : `  ${problem}`, paint.bad],
  ])
}

const HELP = [
  '1-6, Tab, < >   which table',
  'j k, arrows     which row; PgUp, PgDn, Home, End',
  'Enter           the record, in which j and k scroll; Esc goes back',
  's, r            sort by the next field; the other way round',
  '/               only rows with these letters; Esc takes them away',
  'p               pause, and go on',
  'q, Ctrl-C       end',
]

/** Rows around the one that is chosen. */
function windowOf(
  lines: readonly string[],
  selected: number,
  height: number | null,
): { from: number; shown: string[] } {
  if (height === null || lines.length <= height) return { from: 0, shown: [...lines] }
  const from = Math.max(0, Math.min(selected - Math.floor(height / 2), lines.length - height))
  return { from, shown: lines.slice(from, from + height) }
}

function body(state: TopState, frame: Frame, height: number | null): string[] {
  const { width, paint } = frame
  if (state.isHelping) return HELP
  const rows = rowsOf(state)
  const selected = Math.min(state.selected, rows.length - 1)
  if (state.isOpen && rows[selected]) {
    const lines = recordLines(rows[selected])
    // The last line stays at the foot, however far somebody goes on.
    return lines.slice(Math.min(state.scrolled, Math.max(0, lines.length - (height ?? lines.length))))
  }
  const { fields } = tableOfState(state)
  const { lines } = tableOf(
    rows.map((row) => shownOf(row, fields)),
    width,
  )
  const [head = '', ...drawn] = rows.length === 0 ? [] : lines
  const { from, shown } = windowOf(drawn, selected, height === null ? null : Math.max(1, height - 1))
  return [
    paint.bold(head),
    ...shown.map((text, i) => (from + i === selected ? paint.chosen(padTo(text, width)) : text)),
  ]
}

/** All of it. */
export function frameOf(state: TopState, frame: Frame): string[] {
  const { width, height, paint } = frame
  const head = [
    title(state, frame),
    sources(state, frame),
    flow(state, frame),
    findings(state, frame),
    tabs(state, frame),
    extent(state, rowsOf(state).length, frame),
  ]
  const left = height === null ? null : height - head.length - 1
  const drawn = body(state, frame, left).map((text) =>
    widthOf(text) > width && !text.includes('\x1b') ? padTo(text, width) : text,
  )
  const foot = line(width, [['? help  p pause  / filter  s sort  Enter record  q end', paint.dim]])
  if (left === null) return [...head, ...drawn]
  const space = Array.from({ length: Math.max(0, left - drawn.length) }, () => '')
  return [...head, ...drawn.slice(0, Math.max(0, left)), ...space, foot].slice(0, height as number)
}
