/** Records as an aligned table, as wide as a terminal is. */
import { nameOfUnseen, UNSEEN } from '../../internal/contract/unseen.js'

// Text of clients for a terminal: what would steer it, or turn the line around, shows itself; and how wide the rest is.

/** `text` on one line, with each unseen character as `<U+202E>`. */
export const visible = (text: string): string => text.replace(UNSEEN, (character) => `<${nameOfUnseen(character)}>`)

/**
 * Writes `text` and a line break to a terminal, its lines `visible`. Everything that the commands print goes through here,
 * except JSON lines (`safeJson`).
 */
export function print(out: { write(text: string): unknown }, text: string): void {
  out.write(`${text.split('\n').map(visible).join('\n')}\n`)
}

/** JSON that is as harmless on a terminal, and reads the same. */
export const safeJson = (value: unknown): string =>
  JSON.stringify(value).replace(UNSEEN, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  )

const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' })

// Two columns each: Hangul, CJK and its marks, kana, full-width forms, and what is drawn as a picture.
const WIDE =
  /^(?:[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}|.\ufe0f)/u
const ASCII = /^[\x20-\x7e]*$/

const widthOfOne = (grapheme: string) => (WIDE.test(grapheme) ? 2 : 1)

/** How many columns of a terminal `text` takes, which has no unseen characters. */
function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const { segment } of segmenter.segment(text)) width += widthOfOne(segment)
  return width
}

/** `text` in exactly `width` columns: filled up, or cut with an ellipsis. */
function padTo(text: string, width: number, atEnd = false): string {
  const own = widthOf(text)
  if (own <= width) return atEnd ? ' '.repeat(width - own) + text : text + ' '.repeat(width - own)
  let cut = ''
  let used = 0
  for (const { segment } of segmenter.segment(text)) {
    const next = widthOfOne(segment)
    if (used + next > width - 1) break
    cut += segment
    used += next
  }
  return `${cut}…${' '.repeat(Math.max(0, width - used - 1))}`.slice(0, width === 0 ? 0 : undefined)
}

/** `text` in at most `width` columns, cut with an ellipsis. */
export const clip = (text: string, width: number): string =>
  widthOf(text) <= width ? text : padTo(text, width).trimEnd()

const graphemesOf = (text: string): string[] => [...segmenter.segment(text)].map(({ segment }) => segment)

/** As many of `graphemes` as fit into `width` columns, one at least. */
function taken(graphemes: readonly string[], width: number): string[] {
  let used = 0
  const end = graphemes.findIndex((grapheme) => {
    used += widthOfOne(grapheme)
    return used > width
  })
  return graphemes.slice(0, end < 0 ? graphemes.length : Math.max(1, end))
}

/**
 * `text` in lines of at most `width` columns, broken at its spaces, and within a word that is longer than a line. All lines but the
 * first begin with `indent` spaces.
 */
export function wrap(text: string, width: number, indent: number): string {
  const lines: string[] = []
  const margin = ' '.repeat(Math.min(indent, Math.floor(width / 2)))
  const [first = '', ...words] = text.split(' ')
  let line = first
  const cut = () => {
    while (widthOf(line) > width) {
      const head = taken(graphemesOf(line), width)
      lines.push(head.join(''))
      line = margin + line.slice(head.join('').length)
    }
  }
  for (const word of words) {
    const longer = `${line} ${word}`
    if (line.trim() !== '' && widthOf(longer) > width) {
      lines.push(line)
      line = margin + word
    } else line = longer
    cut()
  }
  cut()
  return [...lines, line].join('\n')
}

/** Most columns of one cell. */
const CELL = 40
const GAP = '  '

/** A value on one line. `null` is `-`, and never 0. */
export function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '-'
  if (typeof value === 'string') return visible(value)
  if (typeof value !== 'object') return String(value)
  return visible(JSON.stringify(value))
}

/**
 * What one record says, fields of its objects among them: `admission.at`. Lists and deeper objects stay whole. Names are as a
 * terminal may show them: those of metadata are a client's own.
 */
function flatten(record: object): Map<string, unknown> {
  const flat = new Map<string, unknown>()
  for (const [name, value] of Object.entries(record))
    if (value !== null && typeof value === 'object' && !Array.isArray(value))
      for (const [inner, part] of Object.entries(value)) flat.set(visible(`${name}.${inner}`), part)
    else flat.set(visible(name), value)
  return flat
}

export interface TextTable {
  lines: string[]
  /** Fields that found no place. */
  hidden: string[]
}

/**
 * `rows` with a heading, in at most `width` columns. Those of `first` stand first, fields that no row has a value of last; those that
 * find no place are named.
 */
export function tableOf(rows: readonly object[], width: number, first: readonly string[] = []): TextTable {
  const flat = rows.map(flatten)
  const all = [...new Set(flat.flatMap((row) => [...row.keys()]))]
  const isKnown = (name: string) => flat.some((row) => row.get(name) !== null && row.get(name) !== undefined)
  const names = [...new Set([...first.filter(isKnown), ...all.filter(isKnown), ...all])]
  const shown: { name: string; width: number; isNumber: boolean }[] = []
  let used = 0
  const hidden: string[] = []
  for (const name of names) {
    const own = Math.min(CELL, Math.max(widthOf(name), ...flat.map((row) => widthOf(cellOf(row.get(name))))))
    const needs = own + (shown.length > 0 ? GAP.length : 0)
    if (hidden.length > 0 || (shown.length > 0 && used + needs > width)) {
      hidden.push(name)
      continue
    }
    used += needs
    const isNumber = flat.every((row) => typeof (row.get(name) ?? 0) === 'number')
    shown.push({ name, width: Math.min(own, Math.max(1, width)), isNumber })
  }
  const line = (cell: (name: string) => string) =>
    shown
      .map(({ name, width, isNumber }) => padTo(cell(name), width, isNumber))
      .join(GAP)
      .trimEnd()
  return { lines: [line((name) => name), ...flat.map((row) => line((name) => cellOf(row.get(name))))], hidden }
}

/** One record, a field a line. */
export function recordLines(record: object): string[] {
  const flat = [...flatten(record)]
  const width = Math.max(0, ...flat.map(([name]) => widthOf(name)))
  return flat.map(([name, value]) => `${padTo(name, width)}${GAP}${cellOf(value)}`)
}

// The width of a terminal.

interface Sized {
  readonly columns?: number
}

/** A terminal of unknown size reports 0. */
export const columnsOf = ({ columns }: Sized): number => columns || 80
