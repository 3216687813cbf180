/** Indexed records: paged lists, exact counts and users without a scan, for every family that keeps records in memory. */
import {
  admitsValue,
  type Examined,
  type Filter,
  matcherOf,
  type Order,
  type Page,
  type PageQuery,
  parseSequence,
  withMetadata,
} from '../../contract/page.js'
import { type Counts, createCells, type Dimension } from './dimensions.js'
import type { Queued } from './expiry-queue.js'
import { Bucket, entriesFrom, FieldIndex } from './field-index.js'
import { createTableUsers, type Owned } from './users.js'
import { createVersion } from './version.js'

/** A record with its place in the order of arrival, and what its facility keeps beside it. */
export interface Entry<R, S = undefined> extends Queued {
  readonly id: string
  readonly sequence: number
  record: R
  cell: number
  readonly state: S
}

/** What an entry reads as now, or `undefined` when it should be gone already. Filters look at this. */
export type View<R, S, T = R> = (entry: Entry<R, S>) => T | undefined

export interface TableOptions<R> {
  /** Fields that are filtered by and have many values; `user_id` is always among them. */
  fields: readonly (keyof R & string)[]
  /** The same for what is not a field of the record itself; what `of` makes of a record never changes but with its fields. */
  derived?: readonly { name: string; of(record: R): string | null }[]
  /** Fields that are filtered by and counted, and have few values. */
  dimensions?: readonly Dimension<R>[]
}

/**
 * A table of records, each by its id. The cursor of a list is the sequence number of the last entry that was examined:
 * it survives deletion, and a page costs the same wherever it starts. An updated record keeps its place.
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

  /** The index with the fewest entries that all entries under `filter` are in. */
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
    /** The entry that came first. */
    first: (): Entry<R, S> | undefined => all.entries.first(),
    /** All entries, for an end that concerns every one of them. */
    entries: () => [...byId.values()],

    /** What a facility keeps beside a record has changed, and is shown with it. */
    raise: version.raise,
    /** Another text after every change of a record. */
    version: version.text,

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

    /** Puts another record in the place of the entry's. Its id and user are the same. */
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
     * A page under `filter`, of which at most `bound` entries are examined, the dead among them; oldest first unless the
     * page says otherwise.
     *
     * @throws Refusal `invalid_cursor`.
     */
    list<T extends object>(filter: Filter, page: PageQuery, view: View<R, S, T>, bound: number): Page<T> {
      const items: T[] = []
      const { order } = page
      let last = parseSequence(page.cursor, order)
      let examined = 0
      const matches = matcherOf(filter)
      for (const entry of narrowest(filter).from(last, order)) {
        if (items.length === page.limit || examined === bound)
          return { items, next_cursor: String(last), has_more: true, examined }
        examined++
        last = entry.sequence
        const record = view(entry)
        if (record && matches(record)) items.push(record)
      }
      return { items, next_cursor: null, has_more: false, examined }
    },

    /**
     * Exact counts under `filter`, or `null` where neither a tally nor `bound` entries can tell. `isSwept`: no entry's
     * view differs from its record, so tallies hold.
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

    /** Counts of these records alone. */
    tally: (records: readonly R[]): C =>
      cells.count(
        records.map((record) => [cells.cellOf(record), 1]),
        {},
      ),

    /** How many entries have `value` in an indexed field. */
    sizeOf: (field: string, value: string) => fields.get(field)?.size(value) ?? 0,

    users,
  }
}
