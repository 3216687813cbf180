/** Delivery in numbers: the summary, latencies, and what happened minute by minute. */
import * as z from 'zod'
import { answerOf, OmittedFields } from './answer.js'
import { CHURN_MINUTES } from './connections.js'
import { filterBy, NAMES, Timestamp, toReason } from './ids.js'
import { HostMetadata } from './json.js'
import { LATENCY_BOUNDS_MS } from './latency.js'
import { COUNTER_NAMES, METADATA_BYTES } from './limits.js'

// States, outcomes, reasons and counters of delivery.

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

/** Whether the nodes of a deployment share a store or it is one process. */
export const DeploymentMode = z
  .enum(['direct', 'shared_store'])
  .describe('`direct`: a single process. `shared_store`: several processes over one store.')
export type DeploymentMode = z.infer<typeof DeploymentMode>

const Count = z.int().min(0)

/** A count for each of `names`. */
function countsOf<const Name extends string>(names: readonly Name[]) {
  return z.object(
    Object.fromEntries(names.map((name) => [name, Count.describe(`\`${name}\`.`)])) as Record<Name, typeof Count>,
  )
}

/** Reasons that are counted one by one; beyond, they are counted as `other`. */
export const REASONS_MAX = 100

/** Low-cardinality reasons to counts. Names of another form, and names beyond the bound, are counted as `other`. */
const Reasons = z.record(z.string(), Count).overwrite((map) => {
  const kept = new Map<string, number>()
  for (const [given, count] of Object.entries(map)) {
    const name = toReason(given) as string
    const own = kept.has(name) || kept.size < REASONS_MAX ? name : 'other'
    kept.set(own, Math.min((kept.get(own) ?? 0) + count, Number.MAX_SAFE_INTEGER))
  }
  return Object.fromEntries([...kept].sort())
})

/** The steps whose time is measured. */
export const LATENCY_STEPS = ['handover', 'acknowledgement', 'outcome', 'total'] as const
export type LatencyStep = (typeof LATENCY_STEPS)[number]

const STEP_WORDS: Record<LatencyStep, string> = {
  handover: 'From the admission to the first confirmed delivery.',
  acknowledgement: 'From that delivery to the acknowledgement or refusal of the client.',
  outcome: 'From the acknowledgement to the recorded end.',
  total: 'From the admission to the recorded end, however the command ended.',
}

/** Commands that the quantiles of the summary are taken from. */
export const LATENCY_SAMPLE = 100

const Quantiles = z.object({
  p50_ms: Count.nullable().describe('The median, in ms; `null` without a sample.'),
  p95_ms: Count.nullable().describe('95 % took at most this long, in ms; `null` without a sample.'),
  p99_ms: Count.nullable().describe('99 % took at most this long, in ms; `null` without a sample.'),
  sample_size: Count.describe('Number of commands measured: those of the sample that reached this step.'),
})

const Latency = z.object(
  Object.fromEntries(LATENCY_STEPS.map((step) => [step, Quantiles.describe(STEP_WORDS[step])])) as Record<
    LatencyStep,
    typeof Quantiles
  >,
)
export type Latency = z.infer<typeof Latency>

const Histogram = z.object({
  counts: z
    .array(Count)
    .length(LATENCY_BOUNDS_MS.length + 1)
    .describe('Commands in each bucket, in the order of `bounds_ms`, and one more for everything above.'),
  sum_ms: Count.describe('Sum of all measured times, in ms.'),
})

/** How long the steps of commands took that ended at one node, since the node started. */
export const LatencyHistograms = z.object({
  bounds_ms: z
    .array(z.int().min(1))
    .length(LATENCY_BOUNDS_MS.length)
    .describe('Upper bounds of the buckets, inclusive, in ms.'),
  ...(Object.fromEntries(LATENCY_STEPS.map((step) => [step, Histogram.describe(STEP_WORDS[step])])) as Record<
    LatencyStep,
    typeof Histogram
  >),
})
export type LatencyHistograms = z.infer<typeof LatencyHistograms>

/** Why a number of a legacy stream is `null`. */
export const LegacyReason = z.enum(['not_configured', 'stream_missing', 'group_missing', 'lag_unknown', 'unreadable'])
export type LegacyReason = z.infer<typeof LegacyReason>

/** The legacy fields of a summary without a legacy stream. */
export const NO_LEGACY = {
  legacy_stream_depth: null,
  legacy_pending_depth: null,
  legacy_stream_lag: null,
  legacy_reason: 'not_configured',
} as const

/** Delivery as a whole. */
export const DeliverySummary = z
  .object({
    deployment_id: z.string().nullable().describe(NAMES.deployment_id),
    mode: DeploymentMode.describe('Whether the deployment is one process or several over one store.'),
    tracked_commands: Count.describe(
      'Admitted commands without a recorded end, overdue ones included: the sum of the three open states of `by_state`.',
    ),
    by_state: countsOf(CommandState.options)
      .nullable()
      .describe(
        'Every retained command by its recorded state, counted at one moment: the sum is the number of retained commands. A command whose deadline has passed and whose end is not recorded is counted in its open state, and in `waits_for.expiry`. `null` if not known.',
      ),
    by_reason: Reasons.nullable().describe(
      `Retained commands that have ended, by the reason of their end; \`${NO_REASON}\` if none was given. The sum is that of the five ended states of \`by_state\`. \`null\` if not known.`,
    ),
    waits_for: countsOf(WaitsFor.options)
      .nullable()
      .describe(
        'Unfinished commands by what they wait for; their sum is that of the three open states of `by_state`. `unknown` counts commands that were not classified. `null` if not known.',
      ),
    due_commands: Count.nullable().describe(
      'Unacknowledged commands within their deadline whose next attempt is now or earlier and whose client is attached; `null` if not known.',
    ),
    waiting_for_client: Count.nullable().describe(
      'Unacknowledged commands within their deadline whose next attempt is now or earlier and whose client is not attached. `null` if not known: then `due_commands` may include them.',
    ),
    oldest_deadline_at: Timestamp.nullable().describe(
      'The earliest deadline of these, which may have passed; `null` for none or if unknown. In a store up to 250 ms late.',
    ),
    oldest_queued_age_ms: Count.nullable().describe(
      'How long the oldest command of the sample has been queued, in ms; `null` for none.',
    ),
    sample_size: Count.describe('Size of the sample behind `oldest_queued_age_ms`, which is not a global maximum.'),
    oldest_open_age_ms: Count.nullable().describe(
      'How long ago the oldest command that has not ended was admitted, acknowledged ones included, in ms; `null` for none, or if not known. The latencies leave it out, because it has not ended.',
    ),
    latency: Latency.nullable().describe(
      `Durations of the commands that ended last, at most ${LATENCY_SAMPLE}, rejected admissions excluded. \`null\` if not known.`,
    ),
    legacy_stream_depth: Count.nullable().describe('Entries in the legacy stream; `null` if not known.'),
    legacy_pending_depth: Count.nullable().describe(
      'Entries delivered to its group and not acknowledged; `null` if not known.',
    ),
    legacy_stream_lag: Count.nullable().describe('Entries never delivered to its group; `null` if not known.'),
    legacy_reason: LegacyReason.nullable().describe(
      'Why a legacy number is `null`; `null` when all three are known. `not_configured`: no legacy stream is configured. `stream_missing`, `group_missing`: it does not exist. `lag_unknown`: the store cannot compute the lag, because entries were deleted or the group started in the middle. `unreadable`: the read was denied or failed.',
    ),
    metadata: HostMetadata.optional().describe(
      `Host-supplied metadata of the whole, at most ${METADATA_BYTES} bytes, such as counts by states that are not those of \`by_state\`.`,
    ),
    observed_at: Timestamp.describe('When this was read.'),
  })
  .describe('Delivery as a whole.')
export type DeliverySummary = z.infer<typeof DeliverySummary>

/** `DeliverySummary` as routes answer it. */
export const DeliverySummaryAnswer = answerOf(DeliverySummary, [], {
  latency: answerOf(Latency, []),
})
  .extend({ omitted: OmittedFields })
  .describe(DeliverySummary.description as string)
export type DeliverySummaryAnswer = z.output<typeof DeliverySummaryAnswer>
/** `DeliverySummary` as an inspector returns it: a field that is absent is not known. */
export type DeliverySummaryInput = Omit<z.input<typeof DeliverySummaryAnswer>, 'omitted'>

const OpenCounts = countsOf(TRACKED_STATES)

/** What happened to commands in one minute. */
export const DeliveryMinute = z
  .object({
    minute: Timestamp.describe('When the minute began.'),
    admitted: Count.describe('Commands that were admitted.'),
    ended: countsOf(TerminalState.options).describe('Ended commands by outcome; `rejected` counts refused admissions.'),
    open: OpenCounts.nullable().describe(
      'Unfinished commands by state: in the running minute now, in an earlier one as last counted within it, usually in its last 5 s. `null` if they were not counted, and under a filter.',
    ),
  })
  .describe('What happened to commands in one observed minute.')
export type DeliveryMinute = z.infer<typeof DeliveryMinute>

/** `DeliveryMinute` as routes answer it. */
export const DeliveryMinuteAnswer = answerOf(DeliveryMinute, ['minute'])
export type DeliveryMinuteAnswer = z.output<typeof DeliveryMinuteAnswer>
/** `DeliveryMinute` as an inspector returns it: a field that is absent is not known. */
export type DeliveryMinuteInput = z.input<typeof DeliveryMinuteAnswer>

/** Commands per minute of the last hour. */
export const DeliveryChurn = z
  .object({
    items: z
      .array(DeliveryMinute)
      .max(CHURN_MINUTES)
      .describe('The observed minutes, oldest first. Nothing is known about a missing minute.'),
    observed_at: Timestamp.describe('When this was read.'),
  })
  .describe('How many commands were admitted and ended in each of the last sixty minutes.')
export type DeliveryChurn = z.infer<typeof DeliveryChurn>

/** `DeliveryChurn` as routes answer it. */
export const DeliveryChurnAnswer = answerOf(DeliveryChurn, ['items'], {
  items: z.array(DeliveryMinuteAnswer).max(CHURN_MINUTES),
})
export type DeliveryChurnAnswer = z.output<typeof DeliveryChurnAnswer>
/** `DeliveryChurn` as an inspector returns it: a field that is absent is not known. */
export type DeliveryChurnInput = z.input<typeof DeliveryChurnAnswer>

/** Filters of `/delivery/churn`. */
export const DeliveryChurnFilter = z.object({
  node_id: filterBy('node_id').describe(
    'Only what this node counted. Minutes in which it did not report are left out.',
  ),
})
export type DeliveryChurnFilter = z.infer<typeof DeliveryChurnFilter>
