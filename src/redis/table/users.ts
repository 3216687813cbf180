/** How a reader lists the users of a table and what it holds of them: one read script a shard, however many they are. */
import { compareIds } from '../../contract/ids.js'
import { type Fold, foldAll, type UserIds, type UserPart, type UserParts } from '../../contract/observation.js'
import { type IdPageQuery, type InspectionContext, scanLimit } from '../../contract/page.js'
import { shardOf } from '../store/keys.js'
import { count, parseText, strings } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { gather } from './gather.js'
import { defineReadScript, readShard } from './read-script.js'
import type { TableReader } from './rows.js'
import { allShards, isLost, readShards, shareOut } from './shards.js'
import usersLua from './users.lua'

// Of `t` from `from` on: `max_users` with a row at `at`, among `max_examined` entries. A user whose rows have all run out
// stays in the index until a writer sweeps it.
const USERS = defineReadScript(
  {
    args: ['t', 'from', 'at', 'max_users', 'max_examined'],
    answer: ([users = null, examined = null, last, isEnd]) => ({
      users: strings(users),
      examined: count(examined),
      last: parseText(last),
      isEnd: isEnd === 1,
    }),
  },
  usersLua,
)

/** Users asked for beyond a shard's share of the page. */
const SPARE_USERS = 16

/** How far one shard's index of users has been read. */
interface Reach {
  readonly shard: number
  /** Users to look at, at most. */
  readonly bound: number
  /** Users with a row. */
  users: string[]
  examined: number
  /** The last one looked at, with a row or without. */
  last: string | null
  isEnd: boolean
}

/**
 * Users of a table after `page.after` that have a row now, by their UTF-8 bytes: the order of a sorted set without
 * scores. Of what may be looked at half is left for what they have; where that ends before the page does, `reached` says
 * how far all shards were read. `truncated`: a shard was lost, or not looked at at all.
 */
export async function listUserIds(
  store: Store,
  table: string,
  page: IdPageQuery,
  ctx: InspectionContext,
): Promise<UserIds> {
  const shards = await allShards(store, ctx)
  const now = await store.time(ctx)
  const bounds = shareOut(Math.ceil(scanLimit(ctx) / 2), Array(shards.length).fill(1))
  const readOn = async (reach: Reach, most: number): Promise<Reach> => {
    const from = reach.last === null ? '-' : `(${reach.last}`
    const given = { t: table, from, at: now, max_users: most, max_examined: reach.bound - reach.examined }
    const { users, examined, last, isEnd } = await readShard(store, USERS, reach.shard, given, ctx)
    reach.users.push(...users)
    reach.examined += examined
    if (last) reach.last = last
    reach.isEnd = isEnd
    return reach
  }
  // Users are spread evenly over the shards: twice a share of the page nearly always reaches to its end.
  const most = Math.min(page.limit, Math.ceil((2 * page.limit) / shards.length) + SPARE_USERS)
  const { answers, truncated } = await readShards(shards, ctx, (shard) =>
    readOn({ shard, bound: bounds[shard] as number, users: [], examined: 0, last: page.after, isEnd: false }, most),
  )
  const reached = () =>
    answers
      .flatMap(({ users }) => users)
      .sort(compareIds)
      .slice(0, page.limit)
  /** Shards that have not been read to the end of the page, and may have users in it. */
  const behind = () => {
    const end = reached().at(page.limit - 1)
    const isBehind = (id: string | null) => end === undefined || id === null || compareIds(id, end) < 0
    return answers.filter(({ isEnd, last }) => !isEnd && isBehind(last))
  }
  const unread = behind().filter(({ examined, bound }) => examined < bound)
  const retried = await Promise.allSettled(unread.map((reach) => readOn(reach, page.limit)))
  for (const one of retried) if (one.status === 'rejected' && !isLost(one.reason, ctx)) throw one.reason
  const unfinished = behind()
  const ends = unfinished.map(({ last }) => last)
  const [end = null] = ends.some((last) => last === page.after) ? [] : (ends as string[]).sort(compareIds)
  // Beyond the end of one shard its own users may come before those of others.
  const ids: UserIds & { reached?: string } = reached().filter((id) => end === null || compareIds(id, end) <= 0)
  if (end !== null) ids.reached = end
  if (truncated || unfinished.length > 0) ids.truncated = true
  ids.examined = answers.reduce((sum, { examined }) => sum + examined, 0)
  return ids
}

/**
 * What is told by the records of each user who has any, and of all users together of no more records than may be
 * looked at. A user whose records were not reached has a part without numbers.
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
      // What stands under a user's name in the index is somebody else's where its record says so.
      const records = found.rows.map((row) => row && table.read(row, now)).filter((record) => record !== undefined)
      const own = records.filter((record) => (record as { user_id?: string }).user_id === user_id)
      const cut = found.isTruncated || found.isBad ? { truncated: true } : {}
      // Of whom no record can be read it is not known whether there is such a user.
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
