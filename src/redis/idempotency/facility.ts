/** The idempotency keys of a deployment: a call that was repeated at another relay is answered what it came to at the first. */
import {
  IDEMPOTENCY_KEYS_MAX,
  type IdempotencyClaim,
  type IdempotencyStore,
  Invocation,
} from '../../contract/invocations.js'
import { count, defineOptions, type Input, readParts } from '../../contract/options.js'
import { shardOf } from '../store/keys.js'
import { runScript } from '../store/script.js'
import { createStore, inStore, type StoreOptions } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import { CLAIM_KEY, KEEP_ANSWER, RELEASE_KEY } from './scripts.js'

const OfKeys = defineOptions({
  /** Keys of one viewer in one session. @default 1000 */
  keysPerViewer: count(IDEMPOTENCY_KEYS_MAX),
  /** Bytes of one viewer's answers; beyond, its oldest are forgotten, not their keys. @default 16777216 */
  bytesPerViewer: count(16_777_216),
})
export interface RedisIdempotencyStoreOptions extends StoreOptions, Input<typeof OfKeys> {}

/**
 * Keys in Redis, for several relays of one deployment. A viewer's keys lie in the shard of its user id, and nobody but
 * that viewer can crowd them out.
 *
 * @throws RangeError for a bound that is not a whole number from 1.
 * @example
 * createCooperativeSiteRouter({ ...ports, idempotency: createRedisIdempotencyStore({ client, deploymentId: 'prod' }) })
 */
export function createRedisIdempotencyStore(options: RedisIdempotencyStoreOptions): IdempotencyStore {
  const store = createStore(options, inStore(OfKeys))
  const { keysPerViewer, bytesPerViewer } = readParts(OfKeys, options)

  const shardFor = async ({ user_id }: IdempotencyClaim) => shardOf(user_id, await store.claimShards())
  const keyOf = ({ user_id: user, session_id: session, key: name, attempt }: IdempotencyClaim) => ({
    user,
    session,
    name,
    attempt,
  })

  /** What was kept, or `null`: unknown is what can be said of an answer that cannot be read. */
  function readAnswer(text: unknown): Invocation | null {
    if (typeof text !== 'string' || text === '') return null
    try {
      return Object.freeze(Invocation.parse(JSON.parse(text)))
    } catch (cause) {
      const told = 'the answer kept for an idempotency key should be an invocation, and is not'
      store.onError(new BadRow(told, undefined, { cause }))
      return null
    }
  }

  return {
    async claim(claim) {
      const { fingerprint, leaseMs: lease } = claim
      const given = { ...keyOf(claim), fingerprint, lease, max_keys: keysPerViewer }
      const { state, value } = await runScript(store, CLAIM_KEY, await shardFor(claim), given)
      if (state === 'claimed') return { state, at: Number(value) }
      if (state === 'ended') return { state, answer: readAnswer(value) }
      return state === 'reused' ? { state } : { state: 'running' }
    },
    async keep(claim, answer) {
      const given = { ...keyOf(claim), answer: answer ? JSON.stringify(answer) : '', max_bytes: bytesPerViewer }
      await runScript(store, KEEP_ANSWER, await shardFor(claim), given)
    },
    async release(claim) {
      await runScript(store, RELEASE_KEY, await shardFor(claim), keyOf(claim))
    },
  }
}
