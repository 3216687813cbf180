/** Lists the users of a table and observes their records: one read script per shard, however many users there are. */
import { compareIds } from '../../internal/contract/ids.js'
import { type Fold, foldAll, type UserIds, type UserPart, type UserParts } from '../../internal/contract/observation.js'
import { type IdPageQuery, type InspectionContext, scanLimit } from '../../internal/contract/page.js'
import { shardOf } from '../store/keys.js'
import { count, listOf, parseText, strings } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from './read-script.js'
import { locateRows, type TableReader } from './rows.js'
import { allShards, isLost, readShards, shareOut } from './shards.js'
import { scripts } from './table.lua'

// Reads the rows under many values of an index (users, windows) of one shard with a single script.

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
  scripts.gather,
)

/** The rows under one value. Entries without a valid row count as examined. */
interface Gathered<S> {
  rows: (S | undefined)[]
  /** Whether some rows are invalid. */
  isBad: boolean
  /** Whether there are more entries than were read. */
  isTruncated: boolean
}

interface Values {
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

// Returns at most `max_users` users of `t` from `from` on that have a row at `at`, examining at most `max_examined`
// entries. A user whose rows have all expired stays in the index until a writer sweeps it.
const USERS = defineReadScript(
  {
    args: ['t', 'from', 'prefix', 'at', 'max_users', 'max_examined'],
    answer: ([users = null, examined = null, last, isEnd]) => ({
      users: strings(users),
      examined: count(examined),
      last: parseText(last),
      isEnd: isEnd === 1,
    }),
  },
  scripts.users,
)

/** Number of users to read beyond a shard's share of the page. */
const SPARE_USERS = 16

/** How far one shard's index of users has been read. */
interface Reach {
  readonly shard: number
  /** Maximum number of users to examine. */
  readonly bound: number
  /** Users with a row. */
  users: string[]
  examined: number
  /** The last user that was examined, with or without a row. */
  last: string | null
  isEnd: boolean
}

/**
 * Lists the users of a table after `page.after`, with the prefix of the page, that have a row now, ordered by UTF-8 bytes, like a sorted set without
 * scores. Half of the scan limit is reserved for reading their records. If the limit is reached before the page is
 * full, `reached` is the last id that all shards have read. `truncated`: a shard is down or was not read.
 *
 * @param at Rows that expire after it count, in epoch ms. @default now
 */
export async function listUserIds(
  store: Store,
  table: string,
  page: IdPageQuery,
  ctx: InspectionContext,
  at?: number,
): Promise<UserIds> {
  const { prefix = '' } = page
  const shards = await allShards(store, ctx)
  const now = at ?? (await store.time(ctx))
  const bounds = shareOut(Math.ceil(scanLimit(ctx) / 2), Array(shards.length).fill(1))
  const readOn = async (reach: Reach, most: number): Promise<Reach> => {
    const isBegun = reach.last !== null && compareIds(reach.last, prefix) >= 0
    const from = isBegun ? `(${reach.last}` : prefix === '' ? '-' : `[${prefix}`
    const given = { t: table, from, prefix, at: now, max_users: most, max_examined: reach.bound - reach.examined }
    const { users, examined, last, isEnd } = await readShard(store, USERS, reach.shard, given, ctx)
    reach.users.push(...users)
    reach.examined += examined
    if (last) reach.last = last
    reach.isEnd = isEnd
    return reach
  }
  // Users are spread evenly over the shards: twice a share of the page is nearly always enough.
  const most = Math.min(page.limit, Math.ceil((2 * page.limit) / shards.length) + SPARE_USERS)
  const { answers, truncated } = await readShards(shards, ctx, (shard) =>
    readOn({ shard, bound: bounds[shard] as number, users: [], examined: 0, last: page.after, isEnd: false }, most),
  )
  const reached = () =>
    answers
      .flatMap(({ users }) => users)
      .sort(compareIds)
      .slice(0, page.limit)
  /** Returns the shards that have not been read to the end of the page, and may have users in it. */
  const lagging = () => {
    const end = reached().at(page.limit - 1)
    const isBehind = (id: string | null) => end === undefined || id === null || compareIds(id, end) < 0
    return answers.filter(({ isEnd, last }) => !isEnd && isBehind(last))
  }
  const unread = lagging().filter(({ examined, bound }) => examined < bound)
  const retried = await Promise.allSettled(unread.map((reach) => readOn(reach, page.limit)))
  for (const one of retried) if (one.status === 'rejected' && !isLost(one.reason, ctx)) throw one.reason
  const unfinished = lagging()
  const ends = unfinished.map(({ last }) => last)
  const [end = null] = ends.some((last) => last === page.after) ? [] : (ends as string[]).sort(compareIds)
  // After the end of one shard, its remaining users may come before those of others.
  const ids: UserIds & { reached?: string } = reached().filter((id) => end === null || compareIds(id, end) <= 0)
  if (end !== null) ids.reached = end
  if (truncated || unfinished.length > 0) ids.truncated = true
  ids.examined = answers.reduce((sum, { examined }) => sum + examined, 0)
  return ids
}

/**
 * Folds the records of each user that has any, within the scan limit for all users together. A user whose records were
 * not read gets a part without numbers.
 */
export async function observeUsers<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  userIds: readonly string[],
  ctx: InspectionContext,
  fold: Fold<R>,
): Promise<UserParts> {
  if (userIds.length === 0) return []
  const shards = await store.shards(ctx)
  const now = await store.time(ctx)
  const byShard = new Map<number, string[]>()
  for (const user_id of userIds) {
    const shard = shardOf(user_id, shards)
    const users = byShard.get(shard) ?? []
    byShard.set(shard, users)
    users.push(user_id)
  }
  const shardsRead = [...byShard.keys()]
  const shares = shareOut(
    scanLimit(ctx),
    [...byShard.values()].map((users) => users.length),
  )
  let examined = 0
  let isUnsure = false
  const { answers, truncated } = await readShards(shardsRead, ctx, async (shard) => {
    const users = byShard.get(shard) as string[]
    const parts: UserPart[] = []
    const most = shares[shardsRead.indexOf(shard)] as number
    const wanted = { index: 'user_id', values: users, most, shards: shardsRead.length }
    await gather(store, table, shard, wanted, ctx, (user_id, found) => {
      examined += found.rows.length
      // A record under a user in the index that names another user was not written by this library.
      const records = found.rows.map((row) => row && table.read(row, now)).filter((record) => record !== undefined)
      const own = records.filter((record) => (record as { user_id?: string }).user_id === user_id)
      const cut = found.isTruncated || found.isBad ? { truncated: true } : {}
      // If no record is readable, it is unknown whether the user exists.
      isUnsure ||= found.isBad && own.length === 0
      if (own.length > 0) parts.push({ user_id, ...foldAll(fold, own), ...cut })
      else if (found.isTruncated) parts.push({ user_id, ...cut })
    })
    return parts
  })
  const parts: UserParts = answers.flat()
  if (truncated || isUnsure) parts.truncated = true
  parts.examined = examined
  return parts
}
