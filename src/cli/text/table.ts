/** Records as an aligned table, as wide as a terminal is. */
import { padTo, visible, widthOf } from './visible.js'

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
export function flatten(record: object): Map<string, unknown> {
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
  left: string[]
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
  const left: string[] = []
  for (const name of names) {
    const own = Math.min(CELL, Math.max(widthOf(name), ...flat.map((row) => widthOf(cellOf(row.get(name))))))
    const needs = own + (shown.length > 0 ? GAP.length : 0)
    if (left.length > 0 || (shown.length > 0 && used + needs > width)) {
      left.push(name)
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
  return { lines: [line((name) => name), ...flat.map((row) => line((name) => cellOf(row.get(name))))], left }
}

/** One record, a field a line. */
export function recordLines(record: object): string[] {
  const flat = [...flatten(record)]
  const width = Math.max(0, ...flat.map(([name]) => widthOf(name)))
  return flat.map(([name, value]) => `${padTo(name, width)}${GAP}${cellOf(value)}`)
}
