/** Entries by the value of one field, each value with its own sequence index and tally, for filtered lists and counts. */
import type { Order } from '../../contract/page.js'
import { type Tally, tallyUp } from './dimensions.js'
import { byNumber, OrderedIndex } from './ordered-index.js'

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
