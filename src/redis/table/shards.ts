/** Queries all shards: if some are down, the results of the others are returned and marked as truncated. */
import type { InspectionContext, Versioned } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import type { Store } from '../store/store.js'

/** Returns the numbers of all shards of the deployment. */
export async function allShards(store: Store, ctx: InspectionContext): Promise<number[]> {
  return Array.from({ length: await store.shards(ctx) }, (_, shard) => shard)
}

/** Splits `bound` by `weights` into integers. Some are 0 if there is less than one for each. */
export function shareOut(bound: number, weights: readonly number[]): number[] {
  const all = weights.reduce((sum, weight) => sum + weight, 0)
  let before = 0
  return weights.map((weight) => {
    const share = Math.floor((bound * (before + weight)) / all) - Math.floor((bound * before) / all)
    before += weight
    return share
  })
}

/** Whether an error only means that a shard is unreachable. */
export function isLost(error: unknown, ctx: InspectionContext): boolean {
  return error instanceof Refusal && error.code === 'unavailable' && !ctx.signal.aborted
}

/**
 * Returns the results of `read` for all of `shards` that are reachable.
 *
 * @throws the first error if none is reachable, and any error other than `unavailable`.
 */
export async function readShards<T>(
  shards: readonly number[],
  ctx: InspectionContext,
  read: (shard: number) => Promise<T>,
): Promise<{ answers: T[]; truncated: boolean }> {
  const results = await Promise.allSettled(shards.map(read))
  const answers = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const failed = results.find((one) => one.status === 'rejected' && (answers.length === 0 || !isLost(one.reason, ctx)))
  if (failed?.status === 'rejected') throw failed.reason
  return { answers, truncated: answers.length < shards.length }
}

// Detects changes of a deployment's tables, for observers, who may neither subscribe nor run writing scripts.

/**
 * Maximum time that one version is valid, in ms. An expiry changes no key of the store: it becomes visible within this
 * time, because the data is read again.
 */
export const VERSION_HOLDS_MS = 5_000

/**
 * Returns the version of `tables`: the versions that scripts write, read with one `MGET` per shard. It is `null` if a
 * stored version is invalid, and throws if a shard is down.
 */
export function versioned(store: Store, tables: readonly string[]): Required<Versioned> {
  async function versionsIn(shard: number, ctx: InspectionContext): Promise<string | null> {
    const keys = tables.map((table) => store.key(shard, table, 'version'))
    const found = await store.command(['MGET', ...keys], keys[0] as string, ctx)
    return Array.isArray(found) && found.length === keys.length ? found.map((at) => at ?? '').join() : null
  }
  return {
    remoteVersion: true,
    async version(ctx) {
      const period = Math.floor(performance.now() / VERSION_HOLDS_MS)
      const shards = await allShards(store, ctx)
      const versions = await Promise.all(shards.map((shard) => versionsIn(shard, ctx)))
      return versions.includes(null) ? null : [period, ...versions].join(' ')
    },
  }
}
