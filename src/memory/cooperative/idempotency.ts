/** The idempotency keys of one process. */
import { IDEMPOTENCY_KEYS_MAX, type IdempotencyClaim, type IdempotencyStore } from '../../contract/invocations.js'
import { count, defineOptions, func, type Input, readOptions } from '../../contract/options.js'
import { createIdempotencyEntries } from './idempotency-entries.js'

/** Options of `createIdempotencyStore`. */
export const IdempotencyStoreOptions = defineOptions({
  /** Maximum number of keys per viewer and session. @default 1000 */
  keysPerViewer: count(IDEMPOTENCY_KEYS_MAX),
  /** Maximum number of keys. Above it, the largest share loses its oldest ended key. @default 100000 */
  maxKeys: count(100_000),
  /**
   * Maximum size of all entries in bytes. Above it, the largest share loses its oldest answers, but not their keys.
   * @default 67108864
   */
  maxBytes: count(67_108_864),
  /** Returns the current time in epoch ms. @default a clock that ignores changes of the wall clock */
  now: func<() => number>().default(() => steadyNow),
})
/** Options of `createIdempotencyStore`. */
export interface IdempotencyStoreOptions extends Input<typeof IdempotencyStoreOptions> {}

/** Changes of the wall clock must not cause a call to run twice. */
const steadyNow = () => performance.timeOrigin + performance.now()

/**
 * Creates an idempotency store in memory. A claimed key identifies its call for ten minutes. Its answer may be dropped
 * earlier for lack of space; the outcome is reported as unknown then. A call never runs twice for lack of memory.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
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
