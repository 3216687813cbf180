/** Pages over a table: one index read and one `MGET`, wherever the page starts and however many entries there are. */
import { PAGE_MAX } from '../../internal/contract/limits.js'
import {
  type Filter,
  type Indexed,
  type InspectionContext,
  matcherOf,
  omittedCount,
  type Page,
  type PageQuery,
  scanLimit,
  startOf,
} from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { shardOf } from '../store/keys.js'
import { count, listOf, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { type Place, readIndex, readRows, type TableReader } from './rows.js'
import { allShards, readShards, shareOut } from './shards.js'
import { readSpan, readSpans, type Scores, SPAN_MAX, scoresAfter } from './spans.js'

/**
 * The position after which a page continues: the entry with this sequence in this shard. A newest-first list starts at
 * Infinity.
 */
export interface IndexPosition {
  shard: number
  sequence: number
}

const TOKEN = /^(0|[1-9][0-9]?)\.(.{1,32})$/

/** Parses a cursor. @throws Refusal `invalid_cursor` for one that these shards did not issue. */
export function parseToken(cursor: string, first: number, last: number): IndexPosition {
  const match = TOKEN.exec(cursor)
  const shard = Number(match?.[1])
  const sequence = Number(match?.[2])
  // Sequences of this library are integers. A score that something else wrote may be any number; the next page
  // continues after it all the same.
  const isScore = sequence >= 0 && String(sequence) === match?.[2]
  if (!isScore || shard < first || shard > last) throw new Refusal('invalid_cursor')
  return { shard, sequence }
}

/** Returns the cursor of a page that continues after `position`. */
export const toToken = ({ shard, sequence }: IndexPosition) => `${shard}.${sequence}`

/** One entry of an index with its position; `record` is `undefined` if there is none to return. */
interface Entry<R> {
  position: IndexPosition
  record: R | undefined
  isBad: boolean
}

/** One range of a shard's index with its records. `isTruncated`: the index has more. */
export interface Run<R> {
  shard: number
  entries: Entry<R>[]
  examined: number
  isTruncated: boolean
}

/** Bounds of one read: how many records are wanted, and how many entries may be examined for them. */
export interface Stretch {
  /** 0 for the first read of a page, 1 for the next one. */
  round: number
  wanted: number
  budget: number
}

/**
 * Reads a page shard by shard from `first` to `last`, in the order of each shard. If the scan limit is reached because
 * entries were skipped, the page is short and has a cursor.
 *
 * @throws Refusal `invalid_cursor`, `unavailable` (also if only the next shard is down).
 */
export async function walkPage<R>(
  [first, last]: readonly [number, number],
  page: PageQuery,
  ctx: InspectionContext,
  read: (from: IndexPosition, stretch: Stretch) => Promise<Run<R>>,
): Promise<Page<R>> {
  const start = startOf(page.order)
  let at = page.cursor === null ? { shard: first, sequence: start } : parseToken(page.cursor, first, last)
  const bound = scanLimit(ctx)
  const items: R[] = []
  let examined = 0
  let omitted = 0
  for (let round = 0; ; round++) {
    // The current shard first; if it ends, all remaining shards at the same time.
    const width = round === 0 ? 1 : Math.min(last - at.shard + 1, bound - examined)
    const group = Array.from({ length: width }, (_, i) => at.shard + i)
    const stretch = { round, wanted: page.limit - items.length, budget: Math.floor((bound - examined) / width) }
    const runs = await Promise.allSettled(
      group.map((shard) => read({ shard, sequence: shard === at.shard ? at.sequence : start }, stretch)),
    )
    // Everything that was read counts as examined, even if the page has no room for it.
    for (const run of runs) if (run.status === 'fulfilled') examined += run.value.examined
    const more = () => ({ items, next_cursor: toToken(at), has_more: true, examined, ...omittedCount(omitted) })
    for (const result of runs) {
      if (result.status === 'rejected') {
        // Entries before the failed shard are returned; the next page starts there and fails.
        if (items.length + omitted === 0 || ctx.signal.aborted) throw result.reason
        return more()
      }
      const run = result.value
      for (const { position, record, isBad } of run.entries) {
        if (items.length === page.limit) return more()
        at = position
        if (isBad) omitted += 1
        if (record !== undefined) items.push(record)
      }
      if (!run.isTruncated && run.shard === last) {
        return { items, next_cursor: null, has_more: false, examined, ...omittedCount(omitted) }
      }
      if (!run.isTruncated) at = { shard: run.shard + 1, sequence: start }
      if (items.length === page.limit) return more()
      if (run.isTruncated) break
    }
    if (examined >= bound) return more()
  }
}

/** Number of entries to read from each shard beyond its share of a page. */
const SPARE = 16

/** One shard's progress: entries that were read but not returned so far. */
interface Head<R> {
  readonly shard: number
  /** The scores that remain to be read. */
  scores: Scores
  ahead: Run<R>['entries']
  isEnd: boolean
}

/**
 * Reads a page over the shards from `first` to `last`, ordered by score and then by shard (both descending for newest
 * first). Its cursor is the position of its last entry. At least one entry of each shard is examined, or no page could
 * make progress.
 *
 * @param read Reads a range of one shard; `wanted` is what a page of evenly distributed entries takes from it.
 * @throws Refusal `invalid_cursor`; `unavailable` if any shard is down when the page begins: its entries may come
 * before all others. A shard that fails later ends the page early.
 */
export async function mergePage<R>(
  [first, last]: readonly [number, number],
  page: PageQuery,
  ctx: InspectionContext,
  read: (shard: number, scores: Scores, stretch: Stretch) => Promise<Run<R>>,
): Promise<Page<R>> {
  const { order, cursor } = page
  const isNewest = order === 'newest'
  const begin = { shard: first, sequence: startOf(order) }
  let at: IndexPosition = cursor === null ? begin : parseToken(cursor, first, last)
  const heads = Array.from({ length: last - first + 1 }, (_, i): Head<R> => {
    const shard = first + i
    // Of a score that several shards have, the entries up to the shard of the cursor have been returned.
    const isIncluded = cursor === null || (isNewest ? shard < at.shard : shard > at.shard)
    return { shard, scores: scoresAfter(at.sequence, order, isIncluded), ahead: [], isEnd: false }
  })
  if (isNewest) heads.reverse()
  const bound = scanLimit(ctx)
  const items: R[] = []
  let examined = 0
  let omitted = 0
  const more = () => ({ items, next_cursor: toToken(at), has_more: true, examined, ...omittedCount(omitted) })

  for (let round = 0; ; round++) {
    const dry = heads.filter(({ isEnd, ahead }) => !isEnd && ahead.length === 0)
    const budget = Math.floor((bound - examined) / dry.length)
    if (dry.length > 0 && budget < 1 && round > 0) return more()
    const remaining = page.limit - items.length
    const wanted = Math.min(remaining, Math.ceil((2 * remaining) / heads.length) + SPARE)
    const stretch = { round, wanted, budget: Math.max(1, budget) }
    let runs: Run<R>[]
    try {
      runs = await Promise.all(dry.map((head) => read(head.shard, head.scores, stretch)))
    } catch (error) {
      // Entries before all remaining ones are returned; the next page starts with the failed shard and fails.
      if (items.length + omitted === 0 || ctx.signal.aborted) throw error
      return more()
    }
    for (const [i, { entries, isTruncated, examined: cost }] of runs.entries()) {
      const head = dry[i] as Head<R>
      const end = entries.at(-1)
      if (end) head.scores = scoresAfter(end.position.sequence, order)
      head.ahead = [...entries].reverse()
      head.isEnd = !isTruncated || !end
      examined += cost
    }
    while (heads.every(({ isEnd, ahead }) => isEnd || ahead.length > 0)) {
      const next = takeFirst(heads, isNewest)
      if (!next) return { items, next_cursor: null, has_more: false, examined, ...omittedCount(omitted) }
      at = next.position
      if (next.isBad) omitted += 1
      if (next.record !== undefined) items.push(next.record)
      if (items.length === page.limit && heads.some(({ isEnd, ahead }) => !isEnd || ahead.length > 0)) return more()
    }
  }
}

/** Removes and returns the first of all entries that were read ahead. */
function takeFirst<R>(heads: readonly Head<R>[], isNewest: boolean): Run<R>['entries'][number] | undefined {
  let best: Head<R> | undefined
  const placeOf = ({ ahead }: Head<R>) => (ahead.at(-1)?.position.sequence ?? 0) * (isNewest ? -1 : 1)
  for (const head of heads) if (head.ahead.length > 0 && (!best || placeOf(head) < placeOf(best))) best = head
  return best?.ahead.pop()
}

/** Returns the shards that may hold records of `userId`, or all shards without one. */
export function shardRange(userId: unknown, shards: number): readonly [first: number, last: number] {
  // All records of a user are in one shard.
  if (typeof userId !== 'string') return [0, shards - 1]
  const only = shardOf(userId, shards)
  return [only, only]
}

/**
 * Reads a page of a table under `filter` from its most selective index: in the order of the page across all shards, or
 * shard by shard if it has none.
 *
 * @throws Refusal as `walkPage`, or as `mergePage` if several shards are merged.
 */
export async function readPage<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<R>> {
  const { order } = page
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  const index = indexOf(table, filter)
  const isCovered = wanted.every(([field]) => field === index[0])
  const matches = matcherOf(filter)
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  const isMerged = order !== undefined && reach[0] < reach[1]
  const read = async (shard: number, scores: Scores, { round, wanted, budget }: Stretch) => {
    const most = isCovered && round < 2 ? wanted : round === 0 ? PAGE_MAX : SPAN_MAX
    // When several shards are merged, each is read with one command.
    const run = await (round === 0 && !isMerged ? readPrompt : readOn)(
      store,
      table,
      index,
      shard,
      scores,
      Math.min(most, budget),
      ctx,
    )
    for (const entry of run.entries) if (entry.record && !matches(entry.record)) entry.record = undefined
    return run
  }
  return isMerged
    ? mergePage(reach, page, ctx, read)
    : walkPage(reach, page, ctx, ({ shard, sequence }, stretch) =>
        read(shard, scoresAfter(sequence, order, page.cursor === null && stretch.round === 0), stretch),
      )
}

/** Returns the key parts of the smallest index of a table that contains all entries under `filter`. */
export function indexOf<R extends object, S extends object>(table: TableReader<R, S>, filter: Filter): string[] {
  for (const field of table.indexes) {
    const value = filter[field]
    if (typeof value === 'string' && (table.isIndexed?.(field, value) ?? true)) return [field, value]
  }
  return ['all']
}

/** Reads entries with one index read and one `MGET`, which is enough for most pages. */
async function readPrompt<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  index: readonly string[],
  shard: number,
  { from, to, order }: Scores,
  most: number,
  ctx: InspectionContext,
): Promise<Run<R>> {
  const clock = store.time(ctx)
  clock.catch(() => {})
  const key = store.key(shard, table.name, ...index)
  const by = order === 'newest' ? ['BYSCORE', 'REV'] : ['BYSCORE']
  const range = ['ZRANGE', key, from, to, ...by, 'LIMIT', '0', String(most + 1), 'WITHSCORES']
  const reached = scored(await readIndex(store, range, ctx))
  const members = reached.slice(0, most)
  const ids = members.map(({ member }) => member)
  const [now, found] = await Promise.all([clock, readRows(store, table, shard, ids, ctx)])
  const places = new Map(found.map((place) => [place.id, place]))
  const entries = members.map(({ member, score }) =>
    entryOf(table, { shard, sequence: score }, places.get(member) ?? NOTHING, now),
  )
  return { shard, entries, examined: entries.length, isTruncated: reached.length > most }
}

/** Reads entries with a single script, which may take longer. */
async function readOn<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  index: readonly string[],
  shard: number,
  scores: Scores,
  most: number,
  ctx: InspectionContext,
): Promise<Run<R>> {
  const now = await store.time(ctx)
  const { entries, isTruncated } = await readSpan(store, table, shard, index, scores, most, ctx)
  return {
    shard,
    isTruncated,
    examined: entries.length,
    entries: entries.map((place) => entryOf(table, { shard, sequence: place.score }, place, now)),
  }
}

const NOTHING = { row: undefined, isBad: false }

function entryOf<R extends object, S extends object>(
  table: TableReader<R, S>,
  position: IndexPosition,
  { row, isBad }: Place<S>,
  now: number,
): Entry<R> {
  return { position, record: row && table.read(row, now), isBad }
}

// Counts of records: exact within the scan limit; above it a sample that is marked as truncated.

/** Whether a record was ever written to a table, in any shard; `null` if not known, because a shard cannot be read. */
export async function wasEverWritten(store: Store, table: string, ctx: InspectionContext): Promise<boolean | null> {
  const { answers, truncated } = await readShards(await allShards(store, ctx), ctx, async (shard) => {
    const key = store.key(shard, table, 'seq')
    return listOf(await store.command(['MGET', key], key, ctx))[0] !== null
  })
  return answers.includes(true) || (truncated ? null : false)
}

/**
 * Reads the records that match `filter` in all reachable shards; `truncated` if there are more than the scan limit. Returns
 * `null` if no record was ever written: then their number is unknown, because no facility may report any.
 */
export async function countAll<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Filter,
  ctx: InspectionContext,
): Promise<{ records: R[]; indexed: Indexed } | null> {
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
  const isCut = sized.truncated || read.truncated || isShort || all > bound
  const isWritten = isCut || all > 0 || (await wasEverWritten(store, table.name, ctx))
  if (isWritten === false) return null
  const isTruncated = isCut || isWritten === null
  return { records: read.answers.flat(), indexed: { examined, ...(isTruncated ? { truncated: true } : {}) } }
}
