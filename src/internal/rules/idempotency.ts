/** What a claim gets for a key that is there already. Limits and evictions count many keys at once: each store has its own. */

import type { IdempotencyClaim, IdempotencyState, Invocation } from '../contract/invocations.js'

export interface HeldKey extends Pick<IdempotencyClaim, 'fingerprint' | 'attempt'> {
  /** When it was claimed, and when the lease of its call ends, in epoch ms. */
  readonly at: number
  readonly until: number
  /** `undefined` while the call runs; `null` if it is unknown. */
  readonly answer: Invocation | null | undefined
}

/** Whether the call of a key has ended, or its lease has, and then its outcome stays unknown. */
export const hasEnded = ({ answer, until }: Pick<HeldKey, 'answer' | 'until'>, now: number): boolean =>
  answer !== undefined || !(until > now)

export function claimHeld(held: HeldKey, claim: IdempotencyClaim, now: number): IdempotencyState {
  if (held.fingerprint !== claim.fingerprint) return { state: 'reused' }
  if (held.answer !== undefined) return { state: 'ended', answer: held.answer }
  if (held.attempt === claim.attempt) return { state: 'claimed', at: held.at }
  return hasEnded(held, now) ? { state: 'ended', answer: null } : { state: 'running' }
}
