/** What `top` shows of a state, line by line: as many as there are rows, none wider than the terminal. */
import { CELL, padTo, recordLines, shorten, tableOf, visible, widthOf, wrap } from '../text/table.js'
import { type Known, lastKnown, rowsOf, type TopState, tableOfState } from './state.js'
import { FINDINGS_ROUTE, type Format, NODES_ROUTE, TABLES, type TopField, type TopTable } from './tables.js'

// How a line of `top` is drawn: its colours, and no wider than the terminal.

/** Without colours what matters is still bold, inverse, or said. */
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
/** For NO_COLOR: bold and inverse text are not colours. */
export const NO_COLOURS: Paint = { ...COLOURS, bad: sgr('1'), warn: plain, ok: plain }
/** For output that is not a terminal. */
export const PLAIN: Paint = { bad: plain, warn: plain, ok: plain, dim: plain, bold: plain, chosen: plain }

export interface Frame {
  readonly width: number
  /** `null`: as many lines as there are. */
  readonly height: number | null
  readonly paint: Paint
  readonly url: string
  readonly now: number
}

/** The time of day. */
const clock = (at: number) => new Date(at).toTimeString().slice(0, 8)

/** A text and its style. */
type Span = readonly [text: string, paint?: (text: string) => string]

/** A line of spans, cut where the terminal ends. */
function line(width: number, spans: readonly Span[]): string {
  let left = width
  let drawn = ''
  for (const [text, paint = plain] of spans) {
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

// The lines of `top` above its tables: connection status, commands in progress, findings.

/** What has not been confirmed for so long is shown as old. */
const LATE_MS = 5_000

/** Whether the latest read failed or is too long ago. */
const isLate = ({ at, problem }: Known, now: number) => problem !== null || (at !== null && now - at > LATE_MS)

/** `span`, with the time before it and the problem after it if the answer is late. */
function dated(answer: Known, span: Span, { paint, now }: Frame): Span[] {
  const { at, problem } = answer
  if (at === null || !isLate(answer, now)) return [span]
  return [[`as of ${clock(at)}  `, paint.bad], span, [problem === null ? '' : `  ${problem}`, paint.bad]]
}

function title(state: TopState, { width, paint, url, now }: Frame): string {
  const answer = lastKnown(state, '/capabilities')
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

/** How many nodes are silent; unknown ones may be. */
function silentNodes(state: TopState, { paint }: Frame): Span {
  const page = current(state, NODES_ROUTE) as { items: { stale: boolean | null }[]; has_more: boolean } | null
  if (!page) return ['silent nodes unknown', paint.dim]
  const { items, has_more } = page
  const silent = items.filter(({ stale }) => stale).length
  const isAll = !has_more && items.every(({ stale }) => stale !== null)
  if (!isAll && silent === 0) return ['silent nodes unknown', paint.dim]
  const count = `${silent}${isAll ? '' : '+'} of ${items.length}${has_more ? '+' : ''} nodes silent`
  return [count, silent > 0 ? paint.bad : paint.dim]
}

function sources(state: TopState, frame: Frame): string {
  const { width, paint } = frame
  const answer = lastKnown(state, '/sources')
  const { value, problem } = answer
  const items = (value as { items?: SourceRow[] } | null)?.items
  if (!items) return line(width, [[`sources: ${problem ?? 'asking'}`, problem ? paint.bad : paint.dim]])
  const unreachable = items.filter(({ answered }) => !answered)
  const span: Span =
    unreachable.length === 0
      ? [`all ${items.length} sources answer`, paint.dim]
      : [`no answer from ${unreachable.map(({ source, code }) => `${source} (${code})`).join(', ')}`, paint.bad]
  return line(width, [...dated(answer, span, frame), ['   '], silentNodes(state, frame)])
}

/** What is answered now: a number of before would be read as one of now. */
function current(state: TopState, route: string): unknown {
  const { value, problem } = lastKnown(state, route)
  return problem === null ? value : null
}

const known = (value: unknown) => `${value ?? '?'}`

function flow(state: TopState, { width, paint }: Frame): string[] {
  const summary = current(state, '/delivery/summary') as Record<string, unknown> | null
  const nodes = current(state, NODES_ROUTE) as { items: { counters: Counters }[] } | null
  // Read at the same moment as the sum next to them, if the summary has them.
  const byState = summary?.by_state as Record<string, number> | null | undefined
  const ended = ['resulted', 'failed', 'expired', 'cancelled', 'rejected'].map((name) => {
    const sum = nodes?.items.reduce((total, { counters }) => total + (counters.outcome?.[name] ?? 0), 0)
    return `${byState?.[name] ?? sum ?? '?'} ${name}`
  })
  const [waiting, attempted, acknowledged] = ['waiting', 'attempted', 'acknowledged'].map((name) =>
    known(byState?.[name]),
  )
  const waits = Object.entries((summary?.waits_for ?? {}) as Record<string, number>)
    .filter(([, count]) => count > 0)
    .sort(([, x], [, y]) => y - x)
    .map(([name, count]) => `${count} for ${name.replaceAll('_', ' ')}`)
  return [
    line(width, [
      ['commands  ', paint.dim],
      [`${waiting} waiting > ${attempted} attempted > ${acknowledged} acknowledged`],
      [
        `   ${known(summary?.tracked_commands)} in delivery, ${known(summary?.due_commands)} due, ${known(summary?.waiting_for_client)} waiting for client${waits.length > 0 ? `; waiting: ${waits.join(', ')}` : ''}`,
        paint.dim,
      ],
    ]),
    line(width, [[byState ? 'ended, still kept  ' : 'ended since the nodes started  ', paint.dim], [ended.join(', ')]]),
  ]
}

interface Counters {
  outcome?: Record<string, number>
}

interface FindingRow {
  kind: string
}

/** Findings by their kind, the most common first; the table has each of them. */
function findings(state: TopState, frame: Frame): string {
  const { width, paint } = frame
  const answer = lastKnown(state, FINDINGS_ROUTE)
  const { value, problem } = answer
  const page = value as { items: FindingRow[]; has_more: boolean; completeness: { complete: boolean } } | null
  if (!page) return line(width, [[`findings  ${problem ?? 'asking'}`, problem ? paint.bad : paint.dim]])
  const { items, has_more, completeness } = page
  const whole = completeness.complete && !has_more
  if (items.length === 0)
    return line(width, dated(answer, [`no findings${whole ? '' : ' in what was read'}`, paint.dim], frame))
  const kinds = new Map<string, number>()
  for (const { kind } of items) kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
  const counts = [...kinds]
    .sort(([, x], [, y]) => y - x)
    .map(([kind, count]) => `${count} ${kind.replaceAll('_', ' ')}`)
    .join(', ')
  const total = `${items.length}${whole ? '' : '+'} finding${whole && items.length === 1 ? '' : 's'}`
  return line(width, dated(answer, [`${total}: ${counts}`, paint.bad], frame))
}

/** In the order and with the words of the dashboard's overview. */
const headerOf = (state: TopState, frame: Frame): string[] => [
  title(state, frame),
  findings(state, frame),
  sources(state, frame),
  ...flow(state, frame),
]

function tabs(state: TopState, { width, paint }: Frame): string {
  return line(
    width,
    TABLES.map(({ name }, i) => [` ${i + 1}:${name} `, i === state.table ? paint.chosen : paint.dim] as const),
  )
}

/** One unit is enough for a table: `45 s`, `3 min`, `2 h`, `4 d`. */
function durationOf(ms: number): string {
  const s = Math.floor(ms / 1_000)
  if (s < 60) return `${s} s`
  const min = Math.floor(s / 60)
  if (min < 60) return `${min} min`
  const h = Math.floor(min / 60)
  return h < 48 ? `${h} h` : `${Math.floor(h / 24)} d`
}

/** By this machine's clock; what is still to come is `in 3 s`. */
function ageOf(value: unknown, now: number): string {
  const ms = now - Date.parse(String(value))
  return ms < 0 ? `in ${durationOf(-ms)}` : durationOf(ms)
}

/** Columns of an id: a quarter of the terminal, so that what comes after it fits. Enter shows all of it. */
const idWidth = (width: number) => Math.max(20, Math.min(CELL, Math.floor(width / 4)))

const WRITTEN: Record<Format, (value: unknown, frame: Frame) => unknown> = {
  id: (value, { width }) => shorten(visible(String(value)), idWidth(width)),
  words: (value) => String(value).replaceAll('_', ' '),
  age: (value, { now }) => ageOf(value, now),
  ms: (value) => durationOf(Number(value)),
  alive: (value) => (value ? 'alive' : 'not alive'),
  silent: (value) => (value ? 'SILENT' : 'active'),
}

const valueAt = (row: object, path: string): unknown =>
  path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | null | undefined)?.[name], row)

/** A row with the fields of its table in their order; whatever else it has is for its own page. `null` stays unknown. */
function shownOf(row: object, fields: readonly TopField[], frame: Frame): object {
  const written = ({ path, format, instead }: TopField): unknown => {
    const value = valueAt(row, path) ?? null
    if (value !== null) return format ? WRITTEN[format](value, frame) : value
    if (format === 'silent') return 'unknown'
    if (!instead) return null
    const other = valueAt(row, instead[0])
    return other == null ? null : instead[1] + WRITTEN.words(other, frame)
  }
  return Object.fromEntries(fields.map((field) => [field.head, written(field)]))
}

const isMarked = (row: object, { marks = {} }: TopTable) =>
  Object.entries(marks).some(([path, pattern]) => pattern.test(String(valueAt(row, path))))

const headOf = (state: TopState) => tableOfState(state).fields.find(({ path }) => path === state.sort)?.head

function extent(state: TopState, rows: number, { paint, width }: Frame): string {
  const { value, at, problem } = lastKnown(state, tableOfState(state).route)
  const { has_more, completeness } = (value ?? {}) as { has_more?: boolean; completeness?: { complete?: boolean } }
  return line(width, [
    [`${rows} row${rows === 1 ? '' : 's'}`, paint.dim],
    [state.open?.isGone ? ', this record no more among them: as it last was' : '', paint.warn],
    [has_more ? ', and more follow' : '', paint.warn],
    [completeness?.complete === false ? ', a sample' : '', paint.warn],
    [at === null ? '' : `, as of ${clock(at)}`, paint.dim],
    [state.sort === null ? '' : `, by ${headOf(state)}${state.isDescending ? ' down' : ''}`, paint.dim],
    [state.filter === '' && !state.isTyping ? '' : `, with "${state.filter}${state.isTyping ? '_' : ''}"`, paint.warn],
    [problem === null ? '' : `  ${problem}`, paint.bad],
  ])
}

/** Where a long value of an open record continues. */
const RECORD_INDENT = 4

const HELP = [
  `1-${TABLES.length}, Tab, < >   switch table`,
  'j k, arrows     select a row; PgUp, PgDn, Home, End',
  'Enter           show the record, scroll with j and k; Esc goes back',
  's, r            sort by the next field; reverse the order',
  '/               filter rows; Esc clears the filter',
  'p               pause, resume',
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
  if (state.open) {
    const lines = recordLines(state.open.row).flatMap((text) => wrap(text, width, RECORD_INDENT).split('\n'))
    // Scrolling stops when the last line is at the bottom.
    return lines.slice(Math.min(state.scrolled, Math.max(0, lines.length - (height ?? lines.length))))
  }
  const table = tableOfState(state)
  const { lines } = tableOf(
    rows.map((row) => shownOf(row, table.fields, frame)),
    width,
  )
  const [head = '', ...drawn] = rows.length === 0 ? [] : lines
  const { from, shown } = windowOf(drawn, selected, height === null ? null : Math.max(1, height - 1))
  return [
    paint.bold(head),
    ...shown.map((text, i) => {
      if (from + i === selected) return paint.chosen(padTo(text, width))
      return isMarked(rows[from + i] as object, table) ? paint.bad(padTo(text, Math.min(width, widthOf(text)))) : text
    }),
  ]
}

/** All of it. */
export function frameOf(state: TopState, frame: Frame): string[] {
  const { width, height, paint } = frame
  const head = [...headerOf(state, frame), tabs(state, frame), extent(state, rowsOf(state).length, frame)]
  const left = height === null ? null : height - head.length - 1
  const drawn = body(state, frame, left).map((text) =>
    widthOf(text) > width && !text.includes('\x1b') ? padTo(text, width) : text,
  )
  const foot = line(width, [['? help  p pause  / filter  s sort  Enter record  q end', paint.dim]])
  if (left === null) return [...head, ...drawn]
  const space = Array.from({ length: Math.max(0, left - drawn.length) }, () => '')
  return [...head, ...drawn.slice(0, Math.max(0, left)), ...space, foot].slice(0, height as number)
}
