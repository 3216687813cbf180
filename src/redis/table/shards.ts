/** Queries all shards: if some are down, the results of the others are returned and marked as truncated. */
import type { InspectionContext } from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
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
