/** What `top` shows of a state, line by line: as many as there are rows, none wider than the terminal. */
import { recordLines, tableOf } from '../text/table.js'
import { padTo, widthOf } from '../text/visible.js'
import { headerOf } from './header.js'
import { clock, type Frame, line } from './paint.js'
import { knownOf, rowsOf, type TopState, tableOfState } from './state.js'
import { TABLES } from './tables.js'

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
  const { value, at, problem } = knownOf(state, tableOfState(state).route)
  const { has_more, completeness } = (value ?? {}) as { has_more?: boolean; completeness?: { complete?: boolean } }
  return line(width, [
    [`${rows} rows`, paint.dim],
    [state.open?.isGone ? ', this record no more among them: as it last was' : '', paint.warn],
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
  if (state.open) {
    const lines = recordLines(state.open.row)
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
