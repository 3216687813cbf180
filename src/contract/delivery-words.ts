/** Every word that delivery's evidence is told in: outcomes and reasons, as closed lists of the contract. */
import * as z from 'zod'
import { toReason } from './ids.js'

/** `words` and `other`; a word that is not among them is read as `other`, so that a list never breaks over one. */
function vocabulary<const Words extends readonly string[]>(words: Words) {
  const known = new Set<unknown>(words)
  return z.preprocess(
    (value) => (typeof value !== 'string' || known.has(value) ? value : 'other'),
    z.enum([...words, 'other']),
  )
}

/**
 * What became of the latest attempt. `handed_over`: `deliver` resolved. `rejected`: it rejected. `timed_out`: it was
 * handed over and not acknowledged in time, or the lease of the attempt ran out before anybody confirmed a hand-over;
 * which of them, `recovery.reason` says.
 */
export const AttemptOutcome = vocabulary(['handed_over', 'rejected', 'timed_out'])
export type AttemptOutcome = z.infer<typeof AttemptOutcome>

/**
 * Why another attempt was due. `ack_timeout`: handed over, not acknowledged in time. `deliver_rejected`: `deliver`
 * rejected. `deliver_timed_out`: it did not settle in time. `lease_expired`: the node fell silent with the attempt in
 * hand. `requeued`: the node did not learn what it had claimed, and put it back.
 */
export const RecoveryReason = vocabulary([
  'ack_timeout',
  'deliver_rejected',
  'deliver_timed_out',
  'lease_expired',
  'requeued',
])
export type RecoveryReason = z.infer<typeof RecoveryReason>

/** The reasons that the library itself gives for the end of a command; a host's own stand beside them. */
const TERMINAL_REASONS = [
  'deadline_passed',
  'attempts_exhausted',
  'payload_missing',
  'refused',
  'no_waiter',
  'overloaded',
  'capacity_exceeded',
  'cancelled',
  'other',
] as const

/**
 * Why a command ended. A host that settles, cancels or refuses one may give a low-cardinality word of its own; what is
 * not such a word is `other`.
 */
export const TerminalReason = z.preprocess(
  (value) => (typeof value === 'string' ? toReason(value) : value),
  z.union([z.enum(TERMINAL_REASONS), z.string().regex(/^[a-z][a-z0-9_]{0,63}$/)]),
)
