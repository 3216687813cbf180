/** Counts by reading: exact within the bound on examined entries, and nothing beyond it. */
import { EXAMINED_MAX, PAGE_MAX } from '../../contract/limits.js'
import type { Ask, Indexed, Page } from '../../contract/page.js'
import { count } from '../reply.js'
import type { Store } from '../store.js'
import { type Filter, indexKey, readPage, toToken } from './pages.js'
import { readIndex, type TableReader } from './rows.js'
import { allShards, readShards } from './shards.js'

/** All records under `filter` in the shards that can be reached, or `null` where that would be more than 10,000 entries. */
export async function countAll<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  ask: Ask,
): Promise<{ records: R[]; lost: Indexed } | null> {
  const shards =
    typeof filter.user_id === 'string' ? [await store.shardOf(filter.user_id, ask)] : await allShards(store, ask)
  const { answers, truncated } = await readShards(shards, ask, (shard) =>
    readShard(store, table, filter, { shard, bound: Math.floor(EXAMINED_MAX / shards.length) }, ask),
  )
  const records = answers.flatMap((answer) => answer ?? [])
  if (answers.includes(null)) return null
  return { records, lost: truncated ? { truncated } : {} }
}

/** The records of one shard, or `null` where more than `bound` entries would have to be examined. */
async function readShard<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  { shard, bound }: { shard: number; bound: number },
  ask: Ask,
): Promise<R[] | null> {
  const size = await readIndex(store, ['ZCARD', indexKey(store, table, filter, shard)], ask)
  if (count(size) > bound) return null
  const records: R[] = []
  let cursor = toToken({ shard, sequence: 0 })
  // New entries may come meanwhile; they are no reason to go on for ever.
  for (let pages = 0; pages <= EXAMINED_MAX / PAGE_MAX; pages++) {
    const page: Page<R> = await readPage(store, table, filter, { limit: PAGE_MAX, cursor }, ask, shard)
    records.push(...page.items)
    if (!page.has_more) return records
    cursor = page.next_cursor as string
  }
  return null
}

/** How many of `entries` there are of each value, every value present. */
export function tally<V extends string, T>(values: readonly V[], entries: readonly T[], of: (entry: T) => V) {
  const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<V, number>
  for (const entry of entries) counts[of(entry)]++
  return counts
}

/** What `of` says of the records, each once. */
export const distinct = <T, V>(records: readonly T[], of: (record: T) => V): V[] => [...new Set(records.map(of))]
