/** Indexed records: paged lists, exact counts and users without a scan, for all families in memory. */
import {
  admitsValue,
  type Examined,
  type Filter,
  type Order,
  type Page,
  type PageQuery,
  withMetadata,
} from '../../internal/contract/page.js'
import type { Queued } from './expiry-queue.js'
import { Bucket, type Counts, createCells, type Dimension, entriesFrom, FieldIndex } from './field-index.js'
import { pageOf } from './listing.js'
import { createTableUsers, type Owned } from './users.js'
import { createVersion } from './version.js'

/** A record with its position in the order of arrival, and additional state of its facility. */
export interface Entry<R, S = undefined> extends Queued {
  readonly id: string
  readonly sequence: number
  record: R
  cell: number
  readonly state: S
}

/** Returns the record of an entry as of now, or `undefined` if it has expired. Filters apply to the result. */
export type View<R, S, T = R> = (entry: Entry<R, S>) => T | undefined

export interface TableOptions<R> {
  /** Filter fields with many values, with an index each; `user_id` is always included. */
  fields: readonly (keyof R & string)[]
  /** The same for computed values; the result of `of` must depend only on the record's fields. */
  derived?: readonly { name: string; of(record: R): string | null }[]
  /** Filter fields with few values, which are also counted. */
  dimensions?: readonly Dimension<R>[]
}

/**
 * Creates a table of records by id. The cursor of a list is the sequence number of the last examined entry: it stays
 * valid after deletions, and a page costs the same wherever it starts. An updated record keeps its position.
 */
export function createTable<R extends Owned, S = undefined, C extends object = Counts>(options: TableOptions<R>) {
  const byId = new Map<string, Entry<R, S>>()
  const all = new Bucket<Entry<R, S>>()
  const cells = createCells<R, C>(options.dimensions ?? [])
  const fields = new Map(options.fields.map((field) => [field as string, new FieldIndex<Entry<R, S>>()]))
  const ofUser = new FieldIndex<Entry<R, S>>()
  fields.set('user_id', ofUser)
  const users = createTableUsers<R, Entry<R, S>>(ofUser)
  let arrivals = 0
  const version = createVersion()

  const derived = new Map((options.derived ?? []).map(({ name, of }) => [name, of]))
  for (const name of derived.keys()) fields.set(name, new FieldIndex())

  const fieldOf = (record: R, field: string) => {
    const of = derived.get(field)
    return of ? of(record) : (record[field as keyof R] as string | null)
  }

  /** Returns the smallest index that contains all entries under `filter`. */
  function narrowest(filter: Filter) {
    let size = all.entries.size
    let from = (sequence: number, order?: Order): Iterable<Entry<R, S>> => entriesFrom(all.entries, sequence, order)
    for (const [field, index] of fields) {
      const value = filter[field]
      if (typeof value !== 'string' || index.size(value) > size) continue
      size = index.size(value)
      from = (sequence, order) => index.from(value, sequence, order)
    }
    return { size, from }
  }

  return {
    get size() {
      return byId.size
    },
    get: (id: string) => byId.get(id),
    /** Returns the oldest entry. */
    first: (): Entry<R, S> | undefined => all.entries.first(),
    /** Returns all entries, for example to end them all. */
    entries: () => [...byId.values()],

    /** Raises the version after a change of additional state that is part of the result. */
    raise: version.raise,
    /** Returns a new text after every change of a record. */
    version: version.text,

    /** A place in the order of arrival, for what comes after everything that has come. */
    arrive: (): number => ++arrivals,
    /** Entries before a place, the last one first. */
    before: (sequence: number): Iterable<Entry<R, S>> => all.entries.before(sequence),
    /** All entries of a user. */
    ofUser: (userId: string): Iterable<Entry<R, S>> => ofUser.after(userId, 0),

    add(id: string, record: R, state: S): Entry<R, S> {
      version.raise()
      const cell = cells.cellOf(record)
      const sequence = ++arrivals
      const entry: Entry<R, S> = { id, sequence, record, cell, state, touchedAt: 0, older: null, newer: null }
      byId.set(id, entry)
      all.add(entry)
      users.add(record)
      for (const [field, index] of fields) {
        const value = fieldOf(record, field)
        if (value !== null) index.add(value, entry)
      }
      return entry
    },

    /** Replaces the record of an entry. Its id and user must be the same. */
    replace(entry: Entry<R, S>, record: R): void {
      version.raise()
      const before = entry.record
      const cell = cells.cellOf(record)
      if (cell !== entry.cell) all.retally(entry, cell)
      const moved: [FieldIndex<Entry<R, S>>, string][] = []
      for (const [field, index] of fields) {
        const from = fieldOf(before, field)
        const to = fieldOf(record, field)
        if (from === to) {
          if (to !== null && cell !== entry.cell) index.retally(to, entry, cell)
          continue
        }
        if (from !== null) index.remove(from, entry)
        if (to !== null) moved.push([index, to])
      }
      entry.record = record
      entry.cell = cell
      for (const [index, value] of moved) index.add(value, entry)
    },

    remove(entry: Entry<R, S>): void {
      version.raise()
      byId.delete(entry.id)
      all.remove(entry)
      for (const [field, index] of fields) {
        const value = fieldOf(entry.record, field)
        if (value !== null) index.remove(value, entry)
      }
      users.remove(entry.record)
    },

    /**
     * Returns a page under `filter`, examining at most `bound` entries, including expired ones; oldest first by
     * default.
     *
     * @throws Refusal `invalid_cursor`.
     */
    list<T extends object>(filter: Filter, page: PageQuery, view: View<R, S, T>, bound: number): Page<T> {
      return pageOf(narrowest(filter).from, filter, page, view, bound)
    },

    /**
     * Returns exact counts under `filter`, or `null` if that needs more than `bound` entries. `isSwept`: every entry's
     * view equals its record, so tallies are correct.
     */
    count(filter: Filter, view: View<R, S>, isSwept: boolean, bound: number): (C & Examined) | null {
      const others = Object.keys(filter).filter((name) => filter[name] !== undefined && !cells.has(name))
      const [only = ''] = others
      const tallied = (tally: Iterable<readonly [number, number]>) =>
        withMetadata(cells.count(tally, filter), { examined: 0 })
      if (isSwept && others.length === 0) return tallied(all.tally)
      const index = fields.get(only)
      if (isSwept && others.length === 1 && index) return tallied(index.cells(String(filter[only])))
      const { size, from } = narrowest(filter)
      if (size > bound) return null
      const found: [number, number][] = []
      for (const entry of from(0)) {
        const record = view(entry)
        if (
          record &&
          others.every((name) => fieldOf(record, name) === filter[name] || admitsValue(record, name, filter[name]))
        )
          found.push([cells.cellOf(record), 1])
      }
      return withMetadata(cells.count(found, filter), { examined: size })
    },

    /** Returns the counts of these records only. */
    tally: (records: readonly R[]): C =>
      cells.count(
        records.map((record) => [cells.cellOf(record), 1]),
        {},
      ),

    /** Returns the number of entries with `value` in an indexed field. */
    sizeOf: (field: string, value: string) => fields.get(field)?.size(value) ?? 0,
    /** Returns the oldest entry with `value` in an indexed field. */
    firstOf: (field: string, value: string) => [...(fields.get(field)?.after(value, 0) ?? [])][0],

    users,
  }
}
