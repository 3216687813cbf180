/** The rows behind many values of one index of a shard, in a single read: of users, or of windows. */
import type { InspectionContext } from '../../contract/page.js'
import { count, listOf } from '../store/reply.js'
import type { Store } from '../store/store.js'
import gatherLua from './gather.lua'
import { defineReadScript, readShard } from './read-script.js'
import { locateRows, type TableReader } from './rows.js'

/** Bytes of rows that the answers of all shards may have together. */
const GATHER_BYTES = 33_554_432
// Answers per value of `index` how many entries there are, and those that were read with their rows. Where all together
// are too many, those with few are read whole.
const GATHER = defineReadScript(
  {
    args: ['t', 'index', 'max_entries', 'max_bytes'],
    rest: 'values',
    answer: ([groups]) =>
      listOf(groups).map((group) => {
        const [size = 0, ...pairs] = listOf(group)
        const entries = Array.from({ length: pairs.length / 2 }, (_, j) => ({
          id: String(pairs[2 * j]),
          value: pairs[2 * j + 1] ?? null,
        }))
        return { entries, isTruncated: entries.length < count(size) }
      }),
  },
  gatherLua,
)

/** What there is under one value: entries without a good row count as looked at. */
interface Gathered<S> {
  rows: (S | undefined)[]
  /** Some of them cannot be read. */
  isBad: boolean
  /** There are more entries than were read. */
  isTruncated: boolean
}

export interface Values {
  index: string
  values: readonly string[]
  /** Entries to read at most. */
  most: number
  /** How many shards are asked at once. */
  shards: number
}

/** Calls `visit` for each of `values` with what is under it, in their order. */
export async function gather<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  { index, values, most, shards }: Values,
  ctx: InspectionContext,
  visit: (value: string, found: Gathered<S>) => void,
): Promise<void> {
  const bounds = { max_entries: most, max_bytes: Math.ceil(GATHER_BYTES / shards) }
  const found = await readShard(store, GATHER, shard, { t: table.name, index, values, ...bounds }, ctx)
  const all = found.flatMap(({ entries }) => entries)
  const places = await locateRows(store, table, shard, all, ctx)
  let at = 0
  for (const [i, value] of values.entries()) {
    const { entries, isTruncated } = found[i] ?? { entries: [], isTruncated: false }
    const under = places.slice(at, at + entries.length)
    visit(value, { rows: under.map(({ row }) => row), isBad: under.some(({ isBad }) => isBad), isTruncated })
    at += entries.length
  }
}
