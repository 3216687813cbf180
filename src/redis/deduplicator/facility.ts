/** The live deduplicator of a deployment in a shared store, for the hosts that write to it. */
import { ClaimInput, type Deduplicator, type DeduplicatorInspector } from '../../contract/deduplicator.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { shardOf } from '../store/keys.js'
import { runScript, type Script } from '../store/script.js'
import { createStore, type Store, type StoreOptions } from '../store/store.js'
import { createDeduplicatorInspector } from './inspector.js'
import { CLAIM_MESSAGE, RELEASE_MESSAGE } from './scripts.js'

export interface DeduplicatorLimits {
  /** How long a message counts as seen. @default 600000 */
  ttlMs?: number
  /** Messages remembered in one shard; at capacity the oldest of whoever has most leaves. @default 100000 */
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

/** The bounds that hold unless the host says otherwise. */
export const claimBounds = ({ ttlMs = 600_000, capacity = 100_000 }: DeduplicatorLimits) => ({ ttlMs, capacity })

export function deduplicatorOn(
  store: Store,
  limits: DeduplicatorLimits,
): Inspected<Deduplicator, DeduplicatorInspector> {
  const { ttlMs, capacity } = claimBounds(limits)

  async function run(script: Script, given: ClaimInput, ...bounds: number[]): Promise<boolean> {
    const { user_id, stream, message_id } = parseInput(ClaimInput, given)
    const shard = shardOf(user_id, await store.claimShards())
    const attempt = crypto.randomUUID()
    const message = stream === undefined ? message_id : `${stream}\n${message_id}`
    return (await runScript(store, script, shard, attempt, user_id, message, ...bounds)) === 1
  }

  return {
    inspector: createDeduplicatorInspector(store, { ttlMs, capacity }),
    claim: (given) => run(CLAIM_MESSAGE, given, ttlMs, capacity),
    release: (given) => run(RELEASE_MESSAGE, given),
  }
}
