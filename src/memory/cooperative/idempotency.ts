/** The idempotency keys of one process. */
import { IDEMPOTENCY_KEYS_MAX, type IdempotencyClaim, type IdempotencyStore } from '../../contract/invocations.js'
import { count, defineOptions, func, type Input, readOptions } from '../../contract/options.js'
import { createIdempotencyEntries } from './idempotency-entries.js'

export const IdempotencyStoreOptions = defineOptions({
  /** Keys of one viewer in one session. @default 1000 */
  keysPerViewer: count(IDEMPOTENCY_KEYS_MAX),
  /** Keys in all; beyond, whoever holds most loses its oldest that has ended. @default 100000 */
  maxKeys: count(100_000),
  /** Bytes of all that is kept; beyond, whoever holds most loses its oldest answers, not their keys. @default 67108864 */
  maxBytes: count(67_108_864),
  /** Epoch ms. @default a clock that no wall clock moves */
  now: func<() => number>().default(() => steadyNow),
})
export interface IdempotencyStoreOptions extends Input<typeof IdempotencyStoreOptions> {}

/** Whose wall clock is set back or ahead must not run a call twice. */
const steadyNow = () => performance.timeOrigin + performance.now()

/**
 * Keys in memory. A key that has been claimed stands for its call for ten minutes; its answer may be forgotten earlier
 * where too much is kept, and then the outcome reads as unknown: the call never runs twice for want of memory.
 *
 * @throws RangeError for a bound that is not a whole number from 1.
 * @example
 * createCooperativeSiteRouter({ ...ports, idempotency: createIdempotencyStore({ maxBytes: 16_777_216 }) })
 */
export function createIdempotencyStore(options: IdempotencyStoreOptions = {}): IdempotencyStore {
  const entries = createIdempotencyEntries(readOptions(IdempotencyStoreOptions, options))

  const ofAttempt = (claim: IdempotencyClaim) => {
    const entry = entries.find(claim)
    return entry?.attempt === claim.attempt && entry.answer === undefined ? entry : undefined
  }

  return {
    async claim(claim) {
      entries.forgetOld()
      const known = entries.find(claim)
      if (!known) return { state: 'claimed', at: entries.open(claim).at }
      if (known.fingerprint !== claim.fingerprint) return { state: 'reused' }
      if (known.answer !== undefined) return { state: 'ended', answer: known.answer }
      if (known.attempt === claim.attempt) return { state: 'claimed', at: known.at }
      return entries.hasEnded(known) ? { state: 'ended', answer: null } : { state: 'running' }
    },
    async keep(claim, answer) {
      const entry = ofAttempt(claim)
      if (entry) entries.keep(entry, answer)
    },
    async release(claim) {
      const entry = ofAttempt(claim)
      if (entry) entries.drop(entry)
    },
  }
}
