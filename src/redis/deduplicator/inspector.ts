/** Reads the deduplicator of a shared store. */
import type { DeduplicatorInspector } from '../../internal/contract/deduplicator.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { shardOf } from '../store/keys.js'
import { count, type StoreReply, scored, sumCounts } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { BadRow, Millis, readIndex } from '../table/rows.js'
import { allShards } from '../table/shards.js'

// Reads timestamps that an index stores as scores.

/**
 * Returns the scores in the reply of `key`, in epoch ms. Invalid scores are skipped and reported to `onError`.
 *
 * @param except Members to leave out.
 */
function timestampsOf(
  store: Store,
  key: string,
  reply: StoreReply,
  ctx: InspectionContext,
  except = new Set<string>(),
): number[] {
  const members = scored(reply).filter(({ member }) => !except.has(member))
  const read = members.map(({ score }) => Millis.safeParse(score))
  if (read.some(({ success }) => !success))
    store.onError(new BadRow(`${key} holds a score that is not a timestamp in epoch ms`), ctx)
  return read.flatMap(({ data }) => (data === undefined ? [] : [data]))
}

const NAME = 'dedup'

/** Limits of a shard, as its writers stored them with their last claim. */
interface Stored {
  capacity: number | null
  ttlMs: number | null
}

/**
 * Creates the inspector.
 *
 * @param own Limits of a writer in this process, used until the first claim.
 */
export function createDeduplicatorInspector(
  store: Store,
  own: { capacity: number; ttlMs: number } | undefined = undefined,
): DeduplicatorInspector {
  async function fields(
    shard: number,
    user: string[],
    names: string[],
    ctx: InspectionContext,
  ): Promise<(number | null)[]> {
    const reply = await readIndex(store, ['HMGET', store.key(shard, NAME, 'counts', ...user), ...names], ctx)
    return names.map((_, i) => {
      const value = Array.isArray(reply) ? reply[i] : null
      return typeof value === 'string' ? count(value) : null
    })
  }

  async function limits(shard: number, ctx: InspectionContext): Promise<Stored> {
    const [capacity, ttlMs] = await fields(shard, [], ['capacity', 'ttl_ms'], ctx)
    return { capacity: capacity ?? own?.capacity ?? null, ttlMs: ttlMs ?? own?.ttlMs ?? null }
  }

  return {
    async summary(ctx) {
      const shards = await allShards(store, ctx)
      const now = store.time(ctx)
      now.catch(() => {})
      const parts = await Promise.all(
        shards.map(async (shard) => {
          const [limit, counters] = await Promise.all([
            limits(shard, ctx),
            fields(shard, [], ['accepted', 'duplicates', 'evicted'], ctx),
          ])
          const since = `(${(await now) - (limit.ttlMs ?? 0)}`
          const entries = await readIndex(store, ['ZCOUNT', store.key(shard, NAME, 'seen'), since, '+inf'], ctx)
          return { ...limit, counters, entries: count(entries) }
        }),
      )
      const sum = (of: (part: (typeof parts)[number]) => number | null) => sumCounts(parts.map((part) => of(part) ?? 0))
      // A shard without claims will get the same limit as the others.
      const known = Math.max(...parts.map((part) => part.capacity ?? 0))
      const capacity = sum((part) => part.capacity ?? known)
      const ttl_ms = Math.max(...parts.map((part) => part.ttlMs ?? 0))
      // No message was ever claimed, and no facility of this process claims any.
      if (capacity === 0) return {}
      return {
        entries: sum((part) => part.entries),
        capacity,
        ttl_ms: ttl_ms || null,
        accepted: sum((part) => part.counters[0] ?? 0),
        duplicates: sum((part) => part.counters[1] ?? 0),
        evicted: sum((part) => part.counters[2] ?? 0),
      }
    },

    async userSummary(userId, ctx) {
      const shard = shardOf(userId, await store.shards(ctx))
      const [now, { ttlMs }, [accepted, duplicates]] = await Promise.all([
        store.time(ctx),
        limits(shard, ctx),
        fields(shard, [userId], ['accepted', 'duplicates'], ctx),
      ])
      const key = store.key(shard, NAME, 'of', userId)
      const since = `(${now - (ttlMs ?? 0)}`
      const [entries, oldest] = await Promise.all([
        readIndex(store, ['ZCOUNT', key, since, '+inf'], ctx),
        readIndex(store, ['ZRANGE', key, since, '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES'], ctx),
      ])
      if (scored(oldest).length === 0) return null
      const [oldestAt] = timestampsOf(store, key, oldest, ctx)
      return {
        user_id: userId,
        entries: count(entries),
        accepted: accepted ?? 0,
        duplicates: duplicates ?? 0,
        oldest_at: oldestAt === undefined ? null : toTimestamp(oldestAt),
      }
    },
  }
}
