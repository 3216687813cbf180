/** Pages over a table: an index read and an `MGET`, wherever the page starts and however many entries there are. */
import { PAGE_MAX } from '../../contract/limits.js'
import { type Ask, examinable, type Page, type PageQuery } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import { scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { readIndex, readRows, type TableReader } from './rows.js'
import { readSpan, SPAN_MAX } from './spans.js'

/** Where a page goes on: after the entry of that sequence in that shard. */
export interface IndexPosition {
  shard: number
  sequence: number
}

const TOKEN = /^(0|[1-9][0-9]?)\.(.{1,32})$/

/** @throws Refusal `invalid_cursor` for what no page of these shards handed out. */
export function parseToken(cursor: string, first: number, last: number): IndexPosition {
  const match = TOKEN.exec(cursor)
  const shard = Number(match?.[1])
  const sequence = Number(match?.[2])
  // Ours are whole numbers. A score that a foreign hand has set may be any; the next page goes on after it all the same.
  const isScore = sequence >= 0 && String(sequence) === match?.[2]
  if (!isScore || shard < first || shard > last) throw new Refusal('invalid_cursor')
  return { shard, sequence }
}

/** The token of a page that goes on after `position`. */
export const toToken = ({ shard, sequence }: IndexPosition) => `${shard}.${sequence}`

export type Filter = Readonly<Record<string, unknown>>

/** One entry of an index in its place; `record` is `undefined` where there is none that may be shown. */
interface Entry<R> {
  position: IndexPosition
  record: R | undefined
}

/**
 * A page under `filter`. Where entries are passed over (of a filter without an index of its own, or because they have
 * died) no more are looked at than may be; then the page is short and says that there is more.
 *
 * @throws Refusal `invalid_cursor`, `unavailable` (also where only the next shard is lost).
 */
export async function readPage<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  page: PageQuery,
  ask: Ask,
): Promise<Page<R>> {
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  const index = indexOf(table, filter)
  const shards = await store.shards(ask)
  // All records of a user are in one shard.
  const only = typeof filter.user_id === 'string' ? shardOf(filter.user_id, shards) : undefined
  const first = only ?? 0
  const last = only ?? shards - 1
  let at = page.cursor === null ? { shard: first, sequence: 0 } : parseToken(page.cursor, first, last)
  const isCovered = wanted.every(([field]) => field === index[0])
  const bound = examinable(ask)
  const items: R[] = []
  let examined = 0
  for (let round = 0; ; round++) {
    // The shard at hand first; where it ends, all that follow at once.
    const width = round === 0 ? 1 : Math.min(last - at.shard + 1, bound - examined)
    const group = Array.from({ length: width }, (_, i) => at.shard + i)
    const budget = Math.floor((bound - examined) / width)
    const most = isCovered && round < 2 ? page.limit - items.length : round === 0 ? PAGE_MAX : SPAN_MAX
    const runs = await Promise.allSettled(
      group.map((shard) => {
        const from = { shard, sequence: shard === at.shard ? at.sequence : 0 }
        const read = round === 0 ? readPrompt : readOn
        return read(store, table, index, from, Math.min(most, budget), ask)
      }),
    )
    // Looked at is what was read, whether the page has room for it or not.
    for (const run of runs) if (run.status === 'fulfilled') examined += run.value.entries.length
    const more = () => ({ items, next_cursor: toToken(at), has_more: true, examined })
    for (const settled of runs) {
      if (settled.status === 'rejected') {
        // What was read before the shard that is lost is an answer; the next page starts there and fails.
        if (items.length === 0 || ask.signal.aborted) throw settled.reason
        return more()
      }
      const run = settled.value
      for (const { position, record } of run.entries) {
        if (items.length === page.limit) return more()
        at = position
        if (record !== undefined && wanted.every(([field, value]) => record[field as keyof R] === value))
          items.push(record)
      }
      if (!run.isCut && run.shard === last) return { items, next_cursor: null, has_more: false, examined }
      if (!run.isCut) at = { shard: run.shard + 1, sequence: 0 }
      if (items.length === page.limit) return more()
      if (run.isCut) break
    }
    if (examined >= bound) return more()
  }
}

/** The parts of the smallest index of a table that holds all entries under `filter`. */
export function indexOf<R extends object, S extends object>(table: TableReader<R, S>, filter: Filter): string[] {
  const index = table.indexes.find((field) => typeof filter[field] === 'string')
  return index === undefined ? ['all'] : [index, filter[index] as string]
}

/** One stretch of one shard's index with its records. `isCut`: the index goes on. */
interface Run<R> {
  shard: number
  entries: Entry<R>[]
  isCut: boolean
}

/** By an index read and an `MGET`: what most pages are made of. */
async function readPrompt<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  index: readonly string[],
  { shard, sequence }: IndexPosition,
  most: number,
  ask: Ask,
): Promise<Run<R>> {
  const clock = store.time(ask)
  clock.catch(() => {})
  const key = store.key(shard, table.name, ...index)
  const range = ['ZRANGE', key, `(${sequence}`, '+inf', 'BYSCORE', 'LIMIT', '0', String(most + 1), 'WITHSCORES']
  const reached = scored(await readIndex(store, range, ask))
  const members = reached.slice(0, most)
  const ids = members.map(({ member }) => member)
  const [now, found] = await Promise.all([clock, readRows(store, table, shard, ids, ask)])
  const records = new Map(found.map(({ id, row }) => [id, table.read(row, now)]))
  const entries = members.map(({ member, score }) => ({
    position: { shard, sequence: score },
    record: records.get(member),
  }))
  return { shard, entries, isCut: reached.length > most }
}

/** By a single question, which may be a longer one. */
async function readOn<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  index: readonly string[],
  { shard, sequence }: IndexPosition,
  most: number,
  ask: Ask,
): Promise<Run<R>> {
  const now = await store.time(ask)
  const { entries, isCut } = await readSpan(store, table, shard, index, { from: `(${sequence}`, to: '+inf' }, most, ask)
  return {
    shard,
    isCut,
    entries: entries.map(({ score, row }) => ({
      position: { shard, sequence: score },
      record: row && table.read(row, now),
    })),
  }
}
