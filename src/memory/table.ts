/** Indexed records: paged lists, exact counts and users without a scan, for every family that keeps records in memory. */
import { compareIds } from '../contract/ids.js'
import { EXAMINED_MAX, OBSERVED_MAX } from '../contract/limits.js'
import { type IdPageQuery, type Page, type PageQuery, parseSequence } from '../contract/page.js'
import { type Counts, createCells, type Dimension } from './dimensions.js'
import type { Queued } from './expiry-queue.js'
import { Bucket, FieldIndex } from './field-index.js'
import { OrderedIndex } from './ordered-index.js'

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

/** What every record says: whose it is, and of which client unless it is the user's alone. */
interface Owned {
  user_id: string
  client_id?: string
}

type Filter = Readonly<Record<string, unknown>>

export interface TableOptions<R> {
  /** Fields that are filtered by and have many values; `user_id` is always among them. */
  fields: readonly (keyof R & string)[]
  /** Fields that are filtered by and counted, and have few values. */
  dimensions?: readonly Dimension<R>[]
}

/**
 * A table of records, each by its id. The cursor of a list is the sequence number of the last entry that was examined:
 * it survives deletion, and a page costs the same wherever it starts. An updated record keeps its place.
 */
export function createTable<R extends Owned, S = undefined, C = Counts>(options: TableOptions<R>) {
  const byId = new Map<string, Entry<R, S>>()
  const all = new Bucket<Entry<R, S>>()
  const cells = createCells<R, C>(options.dimensions ?? [])
  const fields = new Map(options.fields.map((field) => [field as string, new FieldIndex<Entry<R, S>>()]))
  const ofUser = new FieldIndex<Entry<R, S>>()
  fields.set('user_id', ofUser)
  const userIds = new OrderedIndex<string, string>((id) => id, compareIds)
  const clientsOf = new Map<string, Map<string, number>>()
  let arrivals = 0

  const fieldOf = (record: R, field: string) => record[field as keyof R] as string | null

  /** The index with the fewest entries that all entries under `filter` are in. */
  function narrowest(filter: Filter): { size: number; after(sequence: number): Iterable<Entry<R, S>> } {
    let size = all.entries.size
    let after = (sequence: number): Iterable<Entry<R, S>> => all.entries.after(sequence)
    for (const [field, index] of fields) {
      const value = filter[field]
      if (typeof value !== 'string' || index.size(value) > size) continue
      size = index.size(value)
      after = (sequence) => index.after(value, sequence)
    }
    return { size, after }
  }

  function countClient({ user_id, client_id }: R, by: 1 | -1): void {
    if (client_id === undefined) return
    const clients = clientsOf.get(user_id) ?? new Map<string, number>()
    if (clients.size === 0) clientsOf.set(user_id, clients)
    const count = (clients.get(client_id) ?? 0) + by
    if (count > 0) clients.set(client_id, count)
    else clients.delete(client_id)
    if (clients.size === 0) clientsOf.delete(user_id)
  }

  return {
    get size() {
      return byId.size
    },
    get: (id: string) => byId.get(id),
    /** All entries, for an end that concerns every one of them. */
    entries: () => [...byId.values()],

    add(id: string, record: R, state: S): Entry<R, S> {
      const cell = cells.cellOf(record)
      const sequence = ++arrivals
      const entry: Entry<R, S> = { id, sequence, record, cell, state, touchedAt: 0, older: null, newer: null }
      byId.set(id, entry)
      all.add(entry)
      if (!ofUser.has(record.user_id)) userIds.insert(record.user_id)
      countClient(record, 1)
      for (const [field, index] of fields) {
        const value = fieldOf(record, field)
        if (value !== null) index.add(value, entry)
      }
      return entry
    },

    /** Puts another record in the place of the entry's. Its id and user are the same. */
    replace(entry: Entry<R, S>, record: R): void {
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
      byId.delete(entry.id)
      all.remove(entry)
      for (const [field, index] of fields) {
        const value = fieldOf(entry.record, field)
        if (value !== null) index.remove(value, entry)
      }
      countClient(entry.record, -1)
      if (!ofUser.has(entry.record.user_id)) userIds.delete(entry.record.user_id)
    },

    /**
     * A page under `filter`, of which at most 10,000 entries are examined.
     *
     * @throws Refusal `invalid_cursor`.
     */
    list<T extends object>(filter: Filter, page: PageQuery, view: View<R, S, T>): Page<T> {
      const items: T[] = []
      let last = parseSequence(page.cursor)
      let examined = 0
      const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
      for (const entry of narrowest(filter).after(last)) {
        if (items.length === page.limit || examined === EXAMINED_MAX)
          return { items, next_cursor: String(last), has_more: true }
        examined++
        last = entry.sequence
        const record = view(entry)
        if (record && wanted.every(([name, value]) => record[name as keyof T] === value)) items.push(record)
      }
      return { items, next_cursor: null, has_more: false }
    },

    /**
     * Exact counts under `filter`, or `null` where neither a tally nor 10,000 entries can tell. `settled`: no entry's
     * view differs from its record, so tallies hold.
     */
    count(filter: Filter, view: View<R, S>, settled: boolean): C | null {
      const others = Object.keys(filter).filter((name) => filter[name] !== undefined && !cells.has(name))
      const [only = ''] = others
      if (settled && others.length === 0) return cells.count(all.tally, filter)
      const index = fields.get(only)
      if (settled && others.length === 1 && index) return cells.count(index.cells(String(filter[only])), filter)
      const { size, after } = narrowest(filter)
      if (size > EXAMINED_MAX) return null
      const found: [number, number][] = []
      for (const entry of after(0)) {
        const record = view(entry)
        if (record && others.every((name) => record[name as keyof R] === filter[name]))
          found.push([cells.cellOf(record), 1])
      }
      return cells.count(found, filter)
    },

    /** User ids in the order of their UTF-8 bytes. */
    userIds({ after, limit }: IdPageQuery): string[] {
      const ids: string[] = []
      for (const id of userIds.after(after)) if (ids.push(id) >= limit) break
      return ids
    },

    /** How many entries have `value` in an indexed field. */
    sizeOf: (field: string, value: string) => fields.get(field)?.size(value) ?? 0,

    knowsUser: (userId: string) => ofUser.has(userId),

    /** Clients that the user's records name, sorted; of more than 100, any 100 and `cut`. */
    clientIds(userId: string): { ids: string[]; cut: boolean } {
      const clients = clientsOf.get(userId)
      const ids: string[] = []
      for (const id of clients?.keys() ?? []) if (ids.push(id) >= OBSERVED_MAX) break
      return { ids: ids.sort(compareIds), cut: (clients?.size ?? 0) > ids.length }
    },
  }
}

export type Table<R extends Owned, S = undefined, C = Counts> = ReturnType<typeof createTable<R, S, C>>
