/** The words of delivery: states, outcomes, reasons and counters, as closed lists. */
import * as z from 'zod'
import { toReason } from './ids.js'
import { COUNTER_NAMES } from './limits.js'

export const AdmissionState = z.enum(['admitted', 'rejected']).describe('Whether a command was let in.')
export const AcknowledgementState = z.enum(['none', 'acknowledged', 'refused'])
export const TerminalState = z.enum(['resulted', 'failed', 'expired', 'cancelled', 'rejected'])
export type TerminalState = z.infer<typeof TerminalState>

/** States of a command that has not ended. */
export const TRACKED_STATES = ['waiting', 'attempted', 'acknowledged'] as const

/** Where a command stands. */
export const CommandState = z
  .enum([...TRACKED_STATES, ...TerminalState.options])
  .describe(
    'Where a command stands. `waiting`: no attempt was claimed. `attempted`: one at least, and it is not acknowledged; pauses before another attempt included. `acknowledged`: and no end is recorded. The others are ends.',
  )
export type CommandState = z.infer<typeof CommandState>

/** `words` and `other`; a word that is not among them is read as `other`, so that a list never breaks over one. */
function vocabulary<const Words extends readonly string[]>(words: Words) {
  const known = new Set<unknown>(words)
  return z.preprocess(
    (value) => (typeof value !== 'string' || known.has(value) ? value : 'other'),
    z.enum([...words, 'other']),
  )
}

const ATTEMPT_OUTCOMES = ['handed_over', 'rejected', 'timed_out'] as const

/**
 * What became of the latest attempt. `handed_over`: `deliver` resolved. `rejected`: it rejected. `timed_out`: it was
 * handed over and not acknowledged in time, or the lease of the attempt ran out before anybody confirmed a hand-over;
 * which of them, `recovery.reason` says.
 */
export const AttemptOutcome = vocabulary(ATTEMPT_OUTCOMES)
export type AttemptOutcome = z.infer<typeof AttemptOutcome>

const RECOVERY_REASONS = ['ack_timeout', 'deliver_rejected', 'deliver_timed_out', 'lease_expired', 'requeued'] as const

/**
 * Why another attempt was due. `ack_timeout`: handed over, not acknowledged in time. `deliver_rejected`: `deliver`
 * rejected. `deliver_timed_out`: it did not end in time. `lease_expired`: the node fell silent with the attempt in
 * hand. `requeued`: the node did not learn what it had claimed, and put it back.
 */
export const RecoveryReason = vocabulary(RECOVERY_REASONS)
export type RecoveryReason = z.infer<typeof RecoveryReason>

/** The reasons that the library itself gives for the end of a command; a host's own stand beside them. */
export const TERMINAL_REASONS = [
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

/** Low-cardinality names to counts. A name of another form, and every name beyond the bound, is counted as `other`. */
export const Counters = z.record(z.string(), z.int().min(0)).overwrite((map) => {
  const kept: Record<string, number> = {}
  for (const [given, count] of Object.entries(map)) {
    const name = toReason(given) as string
    const known = Object.hasOwn(kept, name) || Object.keys(kept).length < COUNTER_NAMES - 1
    const under = known ? name : 'other'
    kept[under] = Math.min((kept[under] ?? 0) + count, Number.MAX_SAFE_INTEGER)
  }
  return kept
})

/** What a node counts, by kind: the names of its counters. */
export const NODE_COUNTERS = {
  /** Further attempts, by why they were due. */
  recovery: RECOVERY_REASONS,
  /** Ends, and refused admissions. */
  outcome: TerminalState.options,
  /** Words of clients; `late` and `fenced` ones did not count. */
  acknowledgement: ['acknowledged', 'refused', 'repeated', 'late', 'fenced'],
  other: [
    'admitted',
    'dispatch_repeated',
    'dispatch_conflict',
    'attempt_handed_over',
    'attempt_rejected',
    'attempt_timed_out',
    'late_outcome',
    'settle_fenced',
    'waiter_late',
    'waiter_replaced',
    'waiter_fenced',
    'fence_unavailable',
  ],
} as const
export type CounterKind = keyof typeof NODE_COUNTERS
export type CounterName<Kind extends CounterKind> = (typeof NODE_COUNTERS)[Kind][number]

/** What an ended command counts under that has no reason. */
export const NO_REASON = 'unspecified'

const WAITS = [
  'client_not_attached',
  'turn',
  'delivery',
  'acknowledgement',
  'retry_pause',
  'outcome',
  'expiry',
  'unknown',
] as const

/** What a command that has not ended waits for next. */
export const WaitsFor = z
  .enum(WAITS)
  .describe(
    "What the command waits for. `client_not_attached`: no connection of its client is attached to the mailbox; the client may be connected all the same. `turn`: its client is attached, and the command waits for its turn behind others, or is about to be delivered. `delivery`: `deliver` was called and has not returned. `acknowledgement`: it was handed over. `retry_pause`: the pause before another attempt. `outcome`: it was acknowledged, and no end is recorded. `expiry`: its deadline has passed, and a node has yet to record that. `unknown`: the source can't tell.",
  )
export type WaitsFor = z.infer<typeof WaitsFor>
