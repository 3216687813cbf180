/** The deduplicator of a deployment in a shared store, for hosts. */
import {
  ClaimInput,
  ClaimOptions,
  type Deduplicator,
  type DeduplicatorInspector,
} from '../../internal/contract/deduplicator.js'
import type { Inspected } from '../../internal/contract/families.js'
import { parseInput, readParts } from '../../internal/contract/options.js'
import { shardOf } from '../store/keys.js'
import { parseFlag } from '../store/reply.js'
import { defineScript, runScript } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { scripts } from './deduplicator.lua'
import { createDeduplicatorInspector } from './inspector.js'

// The scripts of the deduplicator: claims by time, per shard and per user.

/** Returns whether the claim is the first. */
export const CLAIM_MESSAGE = defineScript(
  'deduplicator.claim',
  { args: ['attempt', 'user', 'message', 'ttl', 'capacity'], answer: parseFlag },
  scripts.claim,
)

/** Returns whether there was a claim that had not expired. */
const RELEASE_MESSAGE = defineScript(
  'deduplicator.release',
  { args: ['attempt', 'user', 'message', 'ttl'], answer: parseFlag },
  scripts.release,
)

/** Deletes expired claims, for the loop of a node. Returns whether there is more. */
export const SWEEP_CLAIMS = defineScript(
  'deduplicator.sweep',
  { args: ['ttl'], answer: parseFlag, freesMemory: true },
  scripts.sweep,
)

/** Options of `createRedisDeduplicator`. */
export type RedisDeduplicatorOptions = StoreOptions & ClaimOptions

/**
 * Creates a deduplicator in Redis: a claim is valid on every node. A duplicate does not extend it.
 *
 * @example
 * const deduplicator = createRedisDeduplicator({ client, deploymentId: 'prod' })
 */
export function createRedisDeduplicator(
  options: RedisDeduplicatorOptions,
): Inspected<Deduplicator, DeduplicatorInspector> {
  return deduplicatorOn(createStore(options, inStore(ClaimOptions)), options)
}

export function deduplicatorOn(store: Store, options: ClaimOptions): Inspected<Deduplicator, DeduplicatorInspector> {
  const { ttlMs, capacity } = readParts(ClaimOptions, options)

  async function read(given: ClaimInput) {
    const { user_id: user, stream, message_id } = parseInput(ClaimInput, given)
    const message = stream === undefined ? message_id : `${stream}\n${message_id}`
    return { shard: shardOf(user, await store.claimShards()), claim: { attempt: crypto.randomUUID(), user, message } }
  }

  return {
    inspector: createDeduplicatorInspector(store, { ttlMs, capacity }),
    async claim(given) {
      const { shard, claim } = await read(given)
      return runScript(store, CLAIM_MESSAGE, shard, { ...claim, ttl: ttlMs, capacity })
    },
    async release(given) {
      const { shard, claim } = await read(given)
      return runScript(store, RELEASE_MESSAGE, shard, { ...claim, ttl: ttlMs })
    },
  }
}
