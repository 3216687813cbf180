/** Reads the reservations of a deployment, scope by scope. */
import type { DeliveryTenant } from '../../contract/delivery.js'
import { toTimestamp } from '../../contract/ids.js'
import type { Ask, Page, PageQuery } from '../../contract/page.js'
import { count, scored } from '../reply.js'
import type { Store } from '../store.js'
import { type Position, parseToken, toToken } from './pages.js'
import { readIndex } from './rows.js'
import { Millis } from './stored.js'

/** Scopes asked about in one round, with two commands each: well below the bound on unanswered commands. */
const ROUND = 100

/**
 * Scopes with reservations, in the order in which they first reserved, shard by shard. One that has run out is left out
 * whether or not a node has swept it, so a page may be short.
 */
export async function listScopes(store: Store, page: PageQuery, ask: Ask): Promise<Page<DeliveryTenant>> {
  const shards = await store.shards(ask)
  let at: Position = page.cursor === null ? { shard: 0, sequence: 0 } : parseToken(page.cursor, 0, shards - 1)
  const items: DeliveryTenant[] = []
  while (true) {
    const { shard } = at
    const wanted = page.limit - items.length
    const key = store.key(at.shard, 'delivery', 'scopes')
    const range = ['ZRANGE', key, `(${at.sequence}`, '+inf', 'BYSCORE', 'LIMIT', '0', String(wanted + 1), 'WITHSCORES']
    const [now, index] = await Promise.all([store.time(ask), readIndex(store, range, ask)])
    const reached = scored(index)
    const shown = reached.slice(0, wanted)
    for (let i = 0; i < shown.length; i += ROUND) {
      const some = shown.slice(i, i + ROUND).map(({ member }) => readScope(store, shard, member, now, ask))
      for (const tenant of await Promise.all(some)) if (tenant.reserved_commands > 0) items.push(tenant)
    }
    const last = shown.at(-1)
    if (last) at = { shard: at.shard, sequence: last.score }
    const isCut = reached.length > wanted
    if (!isCut && at.shard === shards - 1) return { items, next_cursor: null, has_more: false }
    if (!isCut) at = { shard: at.shard + 1, sequence: 0 }
    if (isCut || items.length >= page.limit) return { items, next_cursor: toToken(at), has_more: true }
  }
}

async function readScope(store: Store, shard: number, scope: string, now: number, ask: Ask): Promise<DeliveryTenant> {
  const key = store.key(shard, 'delivery', 'scope', scope)
  const [size, first] = await Promise.all([
    readIndex(store, ['ZCOUNT', key, `(${now}`, '+inf'], ask),
    readIndex(store, ['ZRANGE', key, `(${now}`, '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES'], ask),
  ])
  const [oldest] = scored(first)
  const isKnown = oldest !== undefined && Millis.safeParse(oldest.score).success
  return {
    scope_id: scope,
    reserved_commands: oldest === undefined ? 0 : Math.max(1, count(size)),
    oldest_deadline_at: isKnown ? toTimestamp(oldest.score) : null,
  }
}
