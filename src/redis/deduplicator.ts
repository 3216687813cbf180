/** The live deduplicator of a deployment in a shared store, for the hosts that write to it. */
import { ClaimInput, type Deduplicator, type DeduplicatorInspector } from '../contract/deduplicator.js'
import { parseInput } from '../contract/input.js'
import type { Inspected } from '../contract/inspectors.js'
import { shardOf } from './keys.js'
import { createDeduplicatorInspector } from './observe/deduplicator.js'
import { runScript } from './script.js'
import { CLAIM_MESSAGE, RELEASE_MESSAGE } from './scripts/deduplicator.js'
import { createStore, type Store, type StoreOptions } from './store.js'

export interface DeduplicatorLimits {
  /** How long a message counts as seen. @default 600000 */
  ttlMs?: number
  /** Messages remembered in one shard; at capacity its oldest leaves. @default 100000 */
  capacity?: number
}

export type RedisDeduplicatorOptions = StoreOptions & DeduplicatorLimits

/**
 * A deduplicator in Redis: one claim holds on every node. A duplicate does not prolong it.
 *
 * @example
 * const deduplicator = createRedisDeduplicator({ client, deploymentId: 'prod' })
 */
export function createRedisDeduplicator(
  options: RedisDeduplicatorOptions,
): Inspected<Deduplicator, DeduplicatorInspector> {
  return deduplicatorOn(createStore(options), options)
}

export function deduplicatorOn(
  store: Store,
  { ttlMs = 600_000, capacity = 100_000 }: DeduplicatorLimits,
): Inspected<Deduplicator, DeduplicatorInspector> {
  const shardFor = async (userId: string) => shardOf(userId, await store.claimShards())
  return {
    inspector: createDeduplicatorInspector(store, { ttlMs, capacity }),
    async claim(given) {
      const { user_id, message_id } = parseInput(ClaimInput, given)
      const shard = await shardFor(user_id)
      return (await runScript(store, CLAIM_MESSAGE, shard, user_id, message_id, ttlMs, capacity)) === 1
    },
    async release(given) {
      const { user_id, message_id } = parseInput(ClaimInput, given)
      return (await runScript(store, RELEASE_MESSAGE, await shardFor(user_id), user_id, message_id)) === 1
    },
  }
}
