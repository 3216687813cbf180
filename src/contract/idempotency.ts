/** The idempotency family: which calls have run under which key, and what they came to. */
import type { Invocation } from './invocations.js'

/** How long a key stands for its call, from the claim on. */
export const IDEMPOTENCY_KEPT_MS = 600_000
/** Keys of one viewer in one session; beyond, the oldest of its own that has ended is forgotten. */
export const IDEMPOTENCY_KEYS_MAX = 1_000

/** One attempt at one call. */
export interface IdempotencyClaim {
  /** Keys belong to one viewer in one session: nobody else meets them, and nobody else can crowd them out. */
  session_id: string
  user_id: string
  key: string
  /** A digest of what is asked for; the same key with another one is another call. */
  fingerprint: string
  /** Names this attempt, so that asking twice is asking once. */
  attempt: string
  /** How long it may be under way; when it has not ended by then, nobody knows what it came to. */
  leaseMs: number
}

/**
 * What became of a claim: this attempt may run; another one is under way; the key belongs to another call; or the call
 * has ended, with its answer, `null` where nobody knows what it came to or the answer was too old to be kept.
 */
export type IdempotencyState =
  | { state: 'claimed' /** Epoch ms. */; at: number }
  | { state: 'running' }
  | { state: 'reused' }
  | { state: 'ended'; answer: Invocation | null }

/**
 * Where keys are kept. One per process is enough for one relay; several relays share one. What it cannot say for certain
 * it must not say: a claim that may have run is never free again before its time.
 */
export interface IdempotencyStore {
  /** @throws Refusal `capacity_exceeded` when all keys of this viewer in this session are under way; `unavailable`. */
  claim(claim: IdempotencyClaim): Promise<IdempotencyState>
  /** The attempt ran, or may have (`null`): this is what every repeat is answered. */
  keep(claim: IdempotencyClaim, answer: Invocation | null): Promise<void>
  /** The attempt did not run: the key is free again. */
  release(claim: IdempotencyClaim): Promise<void>
}
