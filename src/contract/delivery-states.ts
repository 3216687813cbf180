/** States, outcomes, reasons and counters of delivery. */
import * as z from 'zod'
import { toReason } from './ids.js'
import { COUNTER_NAMES } from './limits.js'

/** Whether a command was admitted or rejected. */
export const AdmissionState = z.enum(['admitted', 'rejected']).describe('Whether a command was admitted.')
/** Whether the client acknowledged or refused a command. */
export const AcknowledgementState = z.enum(['none', 'acknowledged', 'refused'])
/** How a command ended. */
export const TerminalState = z.enum(['resulted', 'failed', 'expired', 'cancelled', 'rejected'])
export type TerminalState = z.infer<typeof TerminalState>

/** States of a command that has not ended. */
export const TRACKED_STATES = ['waiting', 'attempted', 'acknowledged'] as const

/** The state of a command. */
export const CommandState = z
  .enum([...TRACKED_STATES, ...TerminalState.options])
  .describe(
    'The state of the command. `waiting`: no attempt yet. `attempted`: at least one attempt, not acknowledged, including pauses between attempts. `acknowledged`: acknowledged, no end recorded. The others are ends.',
  )
export type CommandState = z.infer<typeof CommandState>

/** An enum of `words` and `other`. An unknown value is read as `other`, so that it never breaks a list. */
function vocabulary<const Words extends readonly string[]>(words: Words) {
  const known = new Set<unknown>(words)
  return z.preprocess(
    (value) => (typeof value !== 'string' || known.has(value) ? value : 'other'),
    z.enum([...words, 'other']),
  )
}

const ATTEMPT_OUTCOMES = ['handed_over', 'rejected', 'timed_out'] as const

/**
 * The outcome of the latest attempt. `handed_over`: `deliver` resolved. `rejected`: it rejected. `timed_out`: delivered
 * but not acknowledged in time, or the lease expired before a delivery was confirmed; `recovery.reason` says which.
 */
export const AttemptOutcome = vocabulary(ATTEMPT_OUTCOMES)
export type AttemptOutcome = z.infer<typeof AttemptOutcome>

const RECOVERY_REASONS = ['ack_timeout', 'deliver_rejected', 'deliver_timed_out', 'lease_expired'] as const

/**
 * Why another attempt was made. `ack_timeout`: delivered, not acknowledged in time. `deliver_rejected`: `deliver`
 * rejected. `deliver_timed_out`: it did not settle in time. `lease_expired`: the node went silent during the attempt.
 */
export const RecoveryReason = vocabulary(RECOVERY_REASONS)
export type RecoveryReason = z.infer<typeof RecoveryReason>

/** The library's reasons for the end of a command; hosts may use their own. */
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
 * Why a command ended. A host that settles, cancels or refuses one may give its own low-cardinality reason; other
 * values become `other`.
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

/** The counters of a node, by kind. */
export const NODE_COUNTERS = {
  /** Further attempts, by why they were due. */
  recovery: RECOVERY_REASONS,
  /** Ends, and refused admissions. */
  outcome: TerminalState.options,
  /** Acknowledgements by result; `late` and `fenced` were ignored. */
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

/** The reason counted for ended commands without one. */
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

/** What an unfinished command waits for. */
export const WaitsFor = z
  .enum(WAITS)
  .describe(
    "What the command waits for. `client_not_attached`: no connection of its client is attached to the mailbox; the client may be connected all the same. `turn`: its client is attached, and the command waits for its turn behind others, or is about to be delivered. `delivery`: `deliver` was called and has not returned. `acknowledgement`: it was delivered. `retry_pause`: the pause before another attempt. `outcome`: it was acknowledged, and no end is recorded. `expiry`: its deadline has passed, and a node has yet to record that. `unknown`: the source can't tell.",
  )
export type WaitsFor = z.infer<typeof WaitsFor>
