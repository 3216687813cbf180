/** Reads the reservations of each scope of a deployment. */
import type { DeliveryTenant } from '../../contract/delivery.js'
import { shownCapacity } from '../../contract/delivery-rules.js'
import { encodePart, toTimestamp } from '../../contract/ids.js'
import { type InspectionContext, type Page, type PageQuery, scanLimit } from '../../contract/page.js'
import { count, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { type IndexPosition, parseToken, toToken } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { Millis, readIndex } from '../table/rows.js'
import { CHUNK } from './library.js'
import { RECORD_TEXT_BYTES, withRecords } from './record.js'
import scopeLua from './scope.lua'

/** Number of scopes that are read at the same time, with one script each: well below the limit of unanswered calls. */
const ROUND = 100

/** A scope and its position in the list. */
interface Entry {
  position: IndexPosition
  scope: string
}

/**
 * Lists the scopes with reservations, shard by shard, in the order of their first reservation. Scopes whose reservations have
 * all expired are left out, even if no node has removed them yet, so a page may be short.
 */
export async function listScopes(store: Store, page: PageQuery, ctx: InspectionContext): Promise<Page<DeliveryTenant>> {
  const shards = await store.shards(ctx)
  let at: IndexPosition = page.cursor === null ? { shard: 0, sequence: 0 } : parseToken(page.cursor, 0, shards - 1)
  const bound = scanLimit(ctx)
  const shown: Entry[] = []
  let examined = 0
  let isTruncated = false
  // Read the current shard first. After its end, read all following shards in parallel.
  for (let round = 0; at.shard < shards && !isTruncated; round++) {
    const width = round === 0 ? 1 : Math.min(shards - at.shard, bound - examined)
    const most = width === 0 ? 0 : Math.min(page.limit - shown.length, Math.floor((bound - examined) / width))
    const first = at
    const starts = Array.from({ length: width }, (_, i) => (i === 0 ? first : { shard: first.shard + i, sequence: 0 }))
    const runs = await Promise.all(starts.map((from) => readIndexOf(store, from, most, ctx)))
    for (const entries of runs) examined += Math.min(most, entries.length)
    isTruncated = width === 0
    for (const entries of runs) {
      const fits = entries.slice(0, Math.min(most, page.limit - shown.length))
      shown.push(...fits)
      isTruncated = entries.length > fits.length
      at = isTruncated ? (fits.at(-1)?.position ?? at) : { shard: at.shard + 1, sequence: 0 }
      if (isTruncated) break
    }
  }
  const items: DeliveryTenant[] = []
  for (let i = 0; i < shown.length; i += ROUND) {
    const round = shown.slice(i, i + ROUND).map(({ position, scope }) => readScope(store, position.shard, scope, ctx))
    for (const tenant of await Promise.all(round)) if (tenant.reserved_commands > 0) items.push(tenant)
  }
  return { items, next_cursor: isTruncated ? toToken(at) : null, has_more: isTruncated, examined }
}

/** Returns a scope by its id; `null` if it has no reservations. */
export async function getScope(store: Store, scope: string, ctx: InspectionContext): Promise<DeliveryTenant | null> {
  const tenant = await readScope(store, await store.shardOf(scope, ctx), scope, ctx)
  return tenant.reserved_commands > 0 ? tenant : null
}

/** Reads the scopes of one shard after `from`: one more than `most`, to detect the end. */
async function readIndexOf(store: Store, from: IndexPosition, most: number, ctx: InspectionContext): Promise<Entry[]> {
  const { shard, sequence } = from
  const key = store.key(shard, 'delivery', 'scope-order')
  const range = ['ZRANGE', key, `(${sequence}`, '+inf', 'BYSCORE', 'LIMIT', '0', String(most + 1), 'WITHSCORES']
  return scored(await readIndex(store, range, ctx)).map(({ member, score }) => ({
    position: { shard, sequence: score },
    scope: decodeURIComponent(member),
  }))
}

/** Maximum number of commands, and of list entries, that are examined for one scope: a millisecond or two of the store. */
const RECORDS_MAX = 1_000
const ENTRIES_MAX = 20_000

const SCOPE = defineReadScript(
  {
    args: ['scope', 'at', 'max_records', 'max_entries'],
    constants: { CHUNK, RECORD_BYTES: RECORD_TEXT_BYTES },
    answer: ([live = null, earliest, capacity]) => ({
      live: count(live),
      earliest: earliest === '' ? undefined : Millis.safeParse(Number(earliest)).data,
      capacity: capacity === '' ? Number.NaN : Number(capacity),
    }),
  },
  withRecords(scopeLua),
)

async function readScope(store: Store, shard: number, scope: string, ctx: InspectionContext): Promise<DeliveryTenant> {
  const at = await store.time(ctx)
  const given = { scope: encodePart(scope), at, max_records: RECORDS_MAX, max_entries: ENTRIES_MAX }
  const { live, earliest, capacity } = await readShard(store, SCOPE, shard, given, ctx)
  return {
    scope_id: scope,
    reserved_commands: live,
    oldest_deadline_at: earliest === undefined ? null : toTimestamp(earliest),
    // An invalid value was written by another application.
    capacity: capacity >= 0 ? shownCapacity(capacity) : null,
  }
}
