/** Entries by the value of one field, each value with its own sequence index and tally, for filtered lists and counts. */

import { UNKNOWN } from '../../internal/contract/observation.js'
import type { Order } from '../../internal/contract/page.js'
import { byNumber, OrderedIndex } from './ordered-index.js'

// Cross tabulation: the number of records for each combination of a few enumerated fields, for exact counts.

/** A field with few values; `null` counts as `unknown`. `of` computes a value that is not a field of the record. */
export interface Dimension<R> {
  name: string
  values: readonly unknown[]
  of?: (record: R) => unknown
  /** Whether counts have a breakdown by it; otherwise it is only a filter. @default false */
  counted?: boolean
}

/** Returns the dimensions for the fields that a family is counted by. */
export const countedBy = (fields: Readonly<Record<string, { options: readonly string[] }>>) =>
  Object.entries(fields).map(([name, { options }]) => ({ name, values: options, counted: true }))

/** Numbers of records by cell. A cell is one combination of values. */
type Tally = Map<number, number>

/** Counts in their wire format: `total` and one `by_…` per counted dimension, with every value present. */
export type Counts = { total: number; [by: `by_${string}`]: Record<string, number> }

/** The cell of entries whose indexes are used for lists only. */
export const NOT_COUNTED = -1

/** Adds `by` to a cell; empty cells are removed. */
function tallyUp(tally: Tally, cell: number, by: 1 | -1): void {
  const count = (tally.get(cell) ?? 0) + by
  if (count === 0) tally.delete(cell)
  else tally.set(cell, count)
}

/** Creates the cells of `dimensions`, and counts over them as the family's type `C`. */
export function createCells<R extends object, C = Counts>(dimensions: readonly Dimension<R>[]) {
  const read = ({ name, of }: Dimension<R>, record: R) => (of ? of(record) : record[name as keyof R]) ?? UNKNOWN
  return {
    has: (name: string) => dimensions.some((dimension) => dimension.name === name),

    /** Returns the cell of a record, in mixed radix. */
    cellOf(record: R): number {
      let cell = 0
      for (const dimension of dimensions)
        cell = cell * dimension.values.length + dimension.values.indexOf(read(dimension, record))
      return cell
    },

    /** Returns the counts of the cells that match `filter`; only its dimensions are used. */
    count(cells: Iterable<readonly [number, number]>, filter: Readonly<Record<string, unknown>>): C {
      const counts: Counts = { total: 0 }
      for (const { name, values, counted } of dimensions)
        if (counted) counts[`by_${name}`] = Object.fromEntries(values.map((value) => [String(value), 0]))
      for (const [cell, count] of cells) {
        const values = valuesOf(cell)
        if (!dimensions.every(({ name }, i) => filter[name] === undefined || filter[name] === values[i])) continue
        counts.total += count
        dimensions.forEach(({ name, counted }, i) => {
          const by = counted ? counts[`by_${name}`] : undefined
          if (by) by[String(values[i])] = (by[String(values[i])] ?? 0) + count
        })
      }
      return counts as C
    },
  }

  function valuesOf(cell: number): unknown[] {
    const values: unknown[] = []
    for (let i = dimensions.length - 1, rest = cell; i >= 0; i--) {
      const of = (dimensions[i] as Dimension<R>).values
      values[i] = of[rest % of.length]
      rest = Math.floor(rest / of.length)
    }
    return values
  }
}

/** The fields that an index uses: position in the order of arrival, and the cell of the counts. */
export interface Indexed {
  readonly sequence: number
  cell: number
}

/** Returns the entries after `sequence` in `order`; `undefined` means the order of arrival. */
export const entriesFrom = <E>(
  index: OrderedIndex<number, E>,
  sequence: number,
  order: Order | undefined,
): Iterable<E> => (order === 'newest' ? index.before(sequence) : index.after(sequence))

const sequenceOf = (entry: Indexed) => entry.sequence

/** All entries with one value. */
export class Bucket<E extends Indexed> {
  readonly entries = new OrderedIndex<number, E>(sequenceOf, byNumber)
  readonly tally: Tally = new Map()

  add(entry: E): void {
    this.entries.insert(entry)
    tallyUp(this.tally, entry.cell, 1)
  }

  remove(entry: E): void {
    this.entries.delete(entry.sequence)
    tallyUp(this.tally, entry.cell, -1)
  }

  /** Moves `entry` to `cell` in the tally; called before the entry's own cell changes. */
  retally(entry: E, cell: number): void {
    tallyUp(this.tally, entry.cell, -1)
    tallyUp(this.tally, cell, 1)
  }
}

function bucketOf<E extends Indexed>(few: readonly E[]): Bucket<E> {
  const bucket = new Bucket<E>()
  for (const entry of few) bucket.add(entry)
  return bucket
}

/**
 * Up to this many entries are kept as a list: an index and a tally per user would take more memory than its
 * connections.
 */
const FEW = 16

/**
 * Returns a copy of `few` with `entry` at its position. A copy, because an array that grows reserves memory for sixteen
 * more.
 */
function inOrder<E extends Indexed>(few: readonly E[], entry: E): E[] {
  const after = few.filter(({ sequence }) => sequence > entry.sequence)
  return after.length === 0 ? [...few, entry] : [...few.slice(0, -after.length), entry, ...after]
}

/** Entries by value. A single entry is stored without a list: most users and clients have only one. */
export class FieldIndex<E extends Indexed> {
  readonly #byValue = new Map<string, E | E[] | Bucket<E>>()

  has(value: string): boolean {
    return this.#byValue.has(value)
  }

  /** Returns the number of entries with `value`. */
  size(value: string): number {
    const held = this.#byValue.get(value)
    if (held === undefined) return 0
    if (Array.isArray(held)) return held.length
    return held instanceof Bucket ? held.entries.size : 1
  }

  add(value: string, entry: E): void {
    const held = this.#byValue.get(value)
    if (held === undefined) this.#byValue.set(value, entry)
    else if (held instanceof Bucket) held.add(entry)
    else {
      const few = inOrder(Array.isArray(held) ? held : [held], entry)
      this.#byValue.set(value, few.length > FEW ? bucketOf(few) : few)
    }
  }

  remove(value: string, entry: E): void {
    const held = this.#byValue.get(value)
    if (held instanceof Bucket) held.remove(entry)
    else if (Array.isArray(held)) {
      const at = held.indexOf(entry)
      if (at >= 0) held.splice(at, 1)
    }
    if (held === entry || this.size(value) === 0) this.#byValue.delete(value)
  }

  /** Moves `entry` to `cell` in the tally; called before the entry's own cell changes. */
  retally(value: string, entry: E, cell: number): void {
    const held = this.#byValue.get(value)
    if (held instanceof Bucket) held.retally(entry, cell)
  }

  /** Returns the entries with `value` after `sequence` in `order`. */
  from(value: string, sequence: number, order: Order | undefined): Iterable<E> {
    const held = this.#byValue.get(value)
    if (held === undefined) return []
    if (held instanceof Bucket) return entriesFrom(held.entries, sequence, order)
    const isNewest = order === 'newest'
    const isBehind = (entry: E) => (isNewest ? entry.sequence < sequence : entry.sequence > sequence)
    if (!Array.isArray(held)) return isBehind(held) ? [held] : []
    const behind = held.filter(isBehind)
    return isNewest ? behind.reverse() : behind
  }

  /** Returns the entries with `value` after `sequence`, in order of arrival. */
  after(value: string, sequence: number): Iterable<E> {
    return this.from(value, sequence, 'oldest')
  }

  /** Returns the number of entries with `value` per cell. */
  cells(value: string): Iterable<readonly [number, number]> {
    const held = this.#byValue.get(value)
    if (held === undefined) return []
    if (held instanceof Bucket) return held.tally
    return Array.isArray(held) ? held.map(({ cell }) => [cell, 1] as const) : [[held.cell, 1]]
  }
}
