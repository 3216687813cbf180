/** Reads the rows under many values of an index (users, windows) of one shard with a single script. */
import type { InspectionContext } from '../../contract/page.js'
import { count, listOf } from '../store/reply.js'
import type { Store } from '../store/store.js'
import gatherLua from './gather.lua'
import { defineReadScript, readShard } from './read-script.js'
import { locateRows, type TableReader } from './rows.js'

/** Maximum size of the rows in the replies of all shards together, in bytes. */
const GATHER_BYTES = 33_554_432
// Returns per value of `index` the number of entries, and the entries with their rows. If there are too many in all,
// small groups are returned completely.
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

/** The rows under one value. Entries without a valid row count as examined. */
interface Gathered<S> {
  rows: (S | undefined)[]
  /** Whether some rows are invalid. */
  isBad: boolean
  /** Whether there are more entries than were read. */
  isTruncated: boolean
}

export interface Values {
  index: string
  values: readonly string[]
  /** Maximum number of entries to read. */
  most: number
  /** Number of shards that are queried at the same time. */
  shards: number
}

/** Calls `visit` for each of `values`, in their order, with the rows under it. */
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
