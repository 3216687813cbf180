/** Pages over a table: an index read and an `MGET`, wherever the page starts and however many entries there are. */
import { EXAMINED_MAX, PAGE_MAX } from '../../contract/limits.js'
import type { Ask, Page, PageQuery } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../keys.js'
import { scored } from '../reply.js'
import type { Store } from '../store.js'
import { readIndex, readRows, type TableReader } from './rows.js'

/** Where a page goes on: after the entry of that sequence in that shard. */
export interface Position {
  shard: number
  sequence: number
}

const TOKEN = /^(0|[1-9][0-9]?)\.(.{1,32})$/

/** @throws Refusal `invalid_cursor` for what no page of these shards handed out. */
export function parseToken(cursor: string, first: number, last: number): Position {
  const match = TOKEN.exec(cursor)
  const shard = Number(match?.[1])
  const sequence = Number(match?.[2])
  // Ours are whole numbers. A score that a foreign hand has set may be any; the next page goes on after it all the same.
  const isScore = sequence >= 0 && String(sequence) === match?.[2]
  if (!isScore || shard < first || shard > last) throw new Refusal('invalid_cursor')
  return { shard, sequence }
}

/** The token of a page that goes on after `position`. */
export const toToken = ({ shard, sequence }: Position) => `${shard}.${sequence}`

export type Filter = Readonly<Record<string, unknown>>

/** One entry of an index in its place; `record` is `undefined` where there is none that may be shown. */
interface Entry<R> {
  position: Position
  record: R | undefined
}

/**
 * A page under `filter`. Of a filter without an index of its own at most 10,000 entries are examined; then the page is
 * short and says that there is more.
 *
 * @param within The one shard to keep to.
 * @throws Refusal `invalid_cursor`, `unavailable` (also where only the next shard is lost).
 */
export async function readPage<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  page: PageQuery,
  ask: Ask,
  within: number | undefined = undefined,
): Promise<Page<R>> {
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  const index = narrowest(table, filter)
  const shards = await store.shards(ask)
  // All records of a user are in one shard.
  const only = within ?? (typeof filter.user_id === 'string' ? shardOf(filter.user_id, shards) : undefined)
  const first = only ?? 0
  const last = only ?? shards - 1
  let at = page.cursor === null ? { shard: first, sequence: 0 } : parseToken(page.cursor, first, last)
  const isCovered = wanted.every(([field]) => field === index)
  const items: R[] = []
  let examined = 0
  let isFirst = true
  while (true) {
    // The shard at hand first; where it ends, all that follow at once.
    const group = isFirst ? [at.shard] : Array.from({ length: last - at.shard + 1 }, (_, i) => at.shard + i)
    isFirst = false
    const budget = Math.ceil((EXAMINED_MAX - examined) / group.length)
    const batch = isCovered ? page.limit - items.length : Math.min(PAGE_MAX, budget)
    const runs = await Promise.allSettled(
      group.map((shard) => {
        const from = { shard, sequence: shard === at.shard ? at.sequence : 0 }
        return readRun(store, table, filter, from, batch, ask)
      }),
    )
    const isDone = () => items.length === page.limit || examined >= EXAMINED_MAX
    const more = () => ({ items, next_cursor: toToken(at), has_more: true })
    for (const settled of runs) {
      if (settled.status === 'rejected') {
        // What was read before the shard that is lost is an answer; the next page starts there and fails.
        if (items.length === 0 || ask.signal.aborted) throw settled.reason
        return more()
      }
      const run = settled.value
      for (const { position, record } of run.entries) {
        if (isDone()) return more()
        examined++
        at = position
        if (record !== undefined && wanted.every(([field, value]) => record[field as keyof R] === value))
          items.push(record)
      }
      if (!run.isCut && run.shard === last) return { items, next_cursor: null, has_more: false }
      if (!run.isCut) at = { shard: run.shard + 1, sequence: 0 }
      if (isDone()) return more()
      if (run.isCut) break
    }
  }
}

function narrowest<R extends object, S extends object>(table: TableReader<R, S>, filter: Filter): string | undefined {
  return table.indexes.find((field) => typeof filter[field] === 'string')
}

/** The smallest index of a shard that holds all entries under `filter`. */
export function indexKey<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  shard: number,
): string {
  const index = narrowest(table, filter)
  return store.key(shard, table.name, ...(index === undefined ? ['all'] : [index, filter[index] as string]))
}

/** One stretch of one shard's index with its records. `isCut`: the index goes on. */
async function readRun<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  from: Position,
  batch: number,
  ask: Ask,
): Promise<{ shard: number; entries: Entry<R>[]; isCut: boolean }> {
  const { shard } = from
  const clock = store.time(ask)
  clock.catch(() => {})
  const key = indexKey(store, table, filter, shard)
  const range = ['ZRANGE', key, `(${from.sequence}`, '+inf', 'BYSCORE', 'LIMIT', '0', String(batch + 1), 'WITHSCORES']
  const reached = scored(await readIndex(store, range, ask))
  const members = reached.slice(0, batch)
  const ids = members.map(({ member }) => member)
  const [now, found] = await Promise.all([clock, readRows(store, table, shard, ids, ask)])
  const records = new Map(found.map(({ id, row }) => [id, table.read(row, now)]))
  const entries = members.map(({ member, score }) => ({
    position: { shard, sequence: score },
    record: records.get(member),
  }))
  return { shard, entries, isCut: reached.length > batch }
}
