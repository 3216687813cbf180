/** The idempotency keys of a deployment: a call repeated at another relay gets the outcome of the first one. */
import {
  checkAnswer,
  IDEMPOTENCY_KEPT_MS,
  IDEMPOTENCY_KEYS_MAX,
  type IdempotencyClaim,
  type IdempotencyStore,
  Invocation,
  readClaim,
} from '../../internal/contract/invocations.js'
import { count, defineOptions, type Input, readParts } from '../../internal/contract/options.js'
import { claimHeld } from '../../internal/rules/idempotency.js'
import { shardOf } from '../store/keys.js'
import { ignoreReply, listOf } from '../store/reply.js'
import { defineScript, runScript } from '../store/script.js'
import { createStore, inStore, type StoreOptions } from '../store/store.js'
import { BadRow } from '../table/rows.js'
import { scripts } from './idempotency.lua'

// The scripts of the idempotency keys. Each may arrive twice, because every attempt has its own name.

const KEY_ARGS = ['user', 'session', 'name', 'attempt'] as const
/** Claims a key, or returns the one that is there. `max_keys`: maximum number of keys of this viewer in this session. */
export const CLAIM_KEY = defineScript(
  'idempotency.claim',
  {
    args: [...KEY_ARGS, 'fingerprint', 'lease', 'max_keys'],
    constants: { KEPT_MS: IDEMPOTENCY_KEPT_MS },
    answer: (reply) => {
      const [now, attempt, fingerprint, at, until, ended, answer] = listOf(reply)
      const held = { attempt: String(attempt), fingerprint: String(fingerprint), at: Number(at), until: Number(until) }
      return { now: Number(now), held, hasEnded: ended !== null, answer }
    },
  },
  scripts.claim,
)

/** Ends a key. `answer` may be ''; `max_bytes`: maximum size of the answers of this viewer. */
export const KEEP_ANSWER = defineScript(
  'idempotency.keep',
  { args: [...KEY_ARGS, 'answer', 'max_bytes'], constants: { KEPT_MS: IDEMPOTENCY_KEPT_MS }, answer: ignoreReply },
  scripts.keep,
)

/** Releases the key of an attempt that has not ended. */
export const RELEASE_KEY = defineScript('idempotency.release', { args: KEY_ARGS, answer: ignoreReply }, scripts.release)

const OfKeys = defineOptions({
  /** Maximum number of keys per viewer and session. @default 1000 */
  keysPerViewer: count(IDEMPOTENCY_KEYS_MAX),
  /**
   * Maximum size of one viewer's stored answers, in bytes. Above it the oldest answers are deleted, but not their keys.
   * @default 16777216
   */
  bytesPerViewer: count(16_777_216),
})
/** Options of `createRedisIdempotencyStore`. */
export interface RedisIdempotencyStoreOptions extends StoreOptions, Input<typeof OfKeys> {}

/**
 * Creates an idempotency store in Redis, for several relays of one deployment. The keys of a viewer are in the shard of
 * its user id, and only that viewer can evict them.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
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

  /** Returns the stored answer, or `null` if it is invalid: the outcome is unknown then. */
  function readAnswer(text: unknown): Invocation | null {
    if (typeof text !== 'string' || text === '') return null
    try {
      return Object.freeze(Invocation.parse(JSON.parse(text)))
    } catch (cause) {
      const detail = 'the stored answer of an idempotency key is not an invocation'
      store.onError(new BadRow(detail, undefined, { cause }))
      return null
    }
  }

  return {
    async claim(input) {
      const claim = readClaim(input)
      const { fingerprint, lease_ms: lease } = claim
      const given = { ...keyOf(claim), fingerprint, lease, max_keys: keysPerViewer }
      const { now, held, hasEnded, answer } = await runScript(store, CLAIM_KEY, await shardFor(claim), given)
      return claimHeld({ ...held, answer: hasEnded ? readAnswer(answer) : undefined }, claim, now)
    },
    async keep(input, answer) {
      const claim = readClaim(input)
      checkAnswer(answer)
      const given = { ...keyOf(claim), answer: answer ? JSON.stringify(answer) : '', max_bytes: bytesPerViewer }
      await runScript(store, KEEP_ANSWER, await shardFor(claim), given)
    },
    async release(input) {
      const claim = readClaim(input)
      await runScript(store, RELEASE_KEY, await shardFor(claim), keyOf(claim))
    },
  }
}
