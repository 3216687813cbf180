/** Counts of records: exact within the scan limit; above it a sample that is marked as truncated. */
import { type Filter, type Indexed, type InspectionContext, matcherOf, scanLimit } from '../../contract/page.js'
import { count } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { indexOf } from './pages.js'
import { readIndex, type TableReader } from './rows.js'
import { allShards, readShards, shareOut } from './shards.js'
import { readSpans } from './spans.js'

/** Reads the records that match `filter` in all reachable shards; `truncated` if there are more than the scan limit. */
export async function countAll<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  ctx: InspectionContext,
): Promise<{ records: R[]; indexed: Indexed }> {
  const shards =
    typeof filter.user_id === 'string' ? [await store.shardOf(filter.user_id, ctx)] : await allShards(store, ctx)
  const now = await store.time(ctx)
  const index = indexOf(table, filter)
  const sized = await readShards(shards, ctx, async (shard) => {
    const size = count(await readIndex(store, ['ZCARD', store.key(shard, table.name, ...index)], ctx))
    return { shard, size }
  })
  const all = sized.answers.reduce((sum, { size }) => sum + size, 0)
  const bound = scanLimit(ctx)
  const sizes = sized.answers.map(({ size }) => size)
  // Too many: each shard is sampled in proportion to its size.
  const shares = all <= bound ? sizes : shareOut(bound, sizes)
  const parts = sized.answers
    .map(({ shard }, i) => ({ shard, share: shares[i] as number }))
    .filter(({ share }) => share > 0)
  const matches = matcherOf(filter)
  let examined = 0
  let isShort = false
  const read = await readShards(
    parts.map(({ shard }) => shard),
    ctx,
    async (shard) => {
      const { share } = parts.find((part) => part.shard === shard) as { share: number }
      const { entries, isTruncated } = await readSpans(store, table, shard, index, '-inf', share, ctx)
      examined += entries.length
      isShort ||= (isTruncated && entries.length < share) || entries.some(({ isBad }) => isBad)
      return entries.flatMap(({ row }) => {
        const record = row && table.read(row, now)
        return record !== undefined && matches(record) ? [record] : []
      })
    },
  )
  const isTruncated = sized.truncated || read.truncated || isShort || all > bound
  return { records: read.answers.flat(), indexed: { examined, ...(isTruncated ? { truncated: true } : {}) } }
}
