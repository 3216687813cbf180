/** Reads the reservations of a deployment, scope by scope. */
import type { DeliveryTenant } from '../../contract/delivery.js'
import { toTimestamp } from '../../contract/ids.js'
import type { Ask, Page, PageQuery } from '../../contract/page.js'
import { count, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { type Position, parseToken, toToken } from '../table/pages.js'
import { readIndex } from '../table/rows.js'
import { instantsOf } from '../table/scores.js'

/** Scopes asked about in one round, with two commands each: well below the bound on unanswered commands. */
const ROUND = 100

/** A scope in its place. */
interface Entry {
  position: Position
  scope: string
}

/**
 * Scopes with reservations, in the order in which they first reserved, shard by shard. One whose reservations have all
 * run out is left out whether or not a node has swept it, so a page may be short.
 */
export async function listScopes(store: Store, page: PageQuery, ask: Ask): Promise<Page<DeliveryTenant>> {
  const shards = await store.shards(ask)
  const at: Position = page.cursor === null ? { shard: 0, sequence: 0 } : parseToken(page.cursor, 0, shards - 1)
  const reached = await readIndexOf(store, at, page.limit, ask)
  if (reached.length <= page.limit && at.shard < shards - 1) {
    // The shard ends here: all that follow at once.
    const rest = Array.from({ length: shards - 1 - at.shard }, (_, i) => ({ shard: at.shard + 1 + i, sequence: 0 }))
    for (const entries of await Promise.all(rest.map((from) => readIndexOf(store, from, page.limit, ask))))
      reached.push(...entries)
  }
  const shown = reached.slice(0, page.limit)
  const items: DeliveryTenant[] = []
  for (let i = 0; i < shown.length; i += ROUND) {
    const round = shown.slice(i, i + ROUND).map((entry) => readScope(store, entry, ask))
    for (const tenant of await Promise.all(round)) if (tenant.reserved_commands > 0) items.push(tenant)
  }
  const last = shown.at(-1)
  if (!last || reached.length <= page.limit) return { items, next_cursor: null, has_more: false }
  return { items, next_cursor: toToken(last.position), has_more: true }
}

/** Scopes of one shard from `from` on: one more than a page, so that its end shows. */
async function readIndexOf(store: Store, from: Position, limit: number, ask: Ask): Promise<Entry[]> {
  const { shard, sequence } = from
  const key = store.key(shard, 'delivery', 'scopes')
  const range = ['ZRANGE', key, `(${sequence}`, '+inf', 'BYSCORE', 'LIMIT', '0', String(limit + 1), 'WITHSCORES']
  return scored(await readIndex(store, range, ask)).map(({ member, score }) => ({
    position: { shard, sequence: score },
    scope: member,
  }))
}

async function readScope(store: Store, { position, scope }: Entry, ask: Ask): Promise<DeliveryTenant> {
  const { shard } = position
  const now = await store.time(ask)
  const key = store.key(shard, 'delivery', 'scope', scope)
  const [size, first] = await Promise.all([
    readIndex(store, ['ZCOUNT', key, `(${now}`, '+inf'], ask),
    readIndex(store, ['ZRANGE', key, `(${now}`, '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES'], ask),
  ])
  const isHeld = scored(first).length > 0
  const [oldest] = instantsOf(store, key, first, ask)
  return {
    scope_id: scope,
    reserved_commands: isHeld ? Math.max(1, count(size)) : 0,
    oldest_deadline_at: oldest === undefined ? null : toTimestamp(oldest),
  }
}
