/** The delivery family: admitted commands on their way to a client, without their payloads. */
import * as z from 'zod'
import type { Family } from './family.js'
import { filterBy, idField, idInput, NAMES, Timestamp, toReason } from './ids.js'
import { HostMetadata } from './json.js'
import { COUNTER_NAMES, METADATA_BYTES } from './limits.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Pingable, Versioned } from './page.js'

// Every word that delivery's evidence is told in: outcomes and reasons, as closed lists of the contract.

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
const TerminalReason = z.preprocess(
  (value) => (typeof value === 'string' ? toReason(value) : value),
  z.union([z.enum(TERMINAL_REASONS), z.string().regex(/^[a-z][a-z0-9_]{0,63}$/)]),
)

/** Low-cardinality names to counts. A name of another form, and every name beyond the bound, is counted as `other`. */
export const Counters = z.record(z.string(), z.int().min(0)).overwrite((map) => {
  const kept: Record<string, number> = {}
  for (const [idInput, count] of Object.entries(map)) {
    const name = toReason(idInput) as string
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

export const DeploymentMode = z
  .enum(['direct', 'shared_store'])
  .describe('`direct`: one process that holds all of it. `shared_store`: several, over one store.')
export type DeploymentMode = z.infer<typeof DeploymentMode>

const Count = z.int().min(0)

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

const TrackedByState = z.object({
  waiting: Count.describe('No attempt was claimed.'),
  attempted: Count.describe('At least one attempt was claimed, and the client has not acknowledged.'),
  acknowledged: Count.describe('The client has acknowledged, and no end is recorded.'),
})

/** Delivery as a whole. */
export const DeliverySummary = z
  .object({
    deployment_id: z.string().nullable().describe(NAMES.deployment_id),
    mode: DeploymentMode.describe('How the deployment is made up.'),
    tracked_commands: Count.describe('Commands that are admitted and not terminal.'),
    tracked_by_state: TrackedByState.nullable().describe(
      'Tracked commands by where they stand, counted at the same moment: they add up to `tracked_commands`. `null` if not known.',
    ),
    due_commands: Count.nullable().describe(
      'Unacknowledged commands whose next attempt is now or earlier and whose client is attached; `null` if not known.',
    ),
    waiting_for_client: Count.nullable().describe(
      'Unacknowledged commands whose next attempt is now or earlier and whose client is not attached. `null` if not known: then `due_commands` may include them.',
    ),
    oldest_deadline_at: Timestamp.nullable().describe('The earliest deadline within the sample; `null` for none.'),
    oldest_queued_age_ms: Count.nullable().describe(
      'How long the oldest command of the sample has been queued, in ms; `null` for none.',
    ),
    sample_size: Count.describe('Commands that the two oldest ages are taken from: no global maximum.'),
    legacy_stream_depth: Count.nullable().describe('Entries in the legacy stream; `null` if not known.'),
    legacy_pending_depth: Count.nullable().describe(
      'Entries that its group was given and has not acknowledged; `null` if not known.',
    ),
    legacy_stream_lag: Count.nullable().describe('Entries that its group was never given; `null` if not known.'),
    legacy_reason: LegacyReason.nullable().describe(
      'Why a legacy number is `null`; `null` when all three are known. `not_configured`: no legacy stream is named. `stream_missing`, `group_missing`: it does not exist. `lag_unknown`: the store cannot tell the lag, because entries were deleted or the group started in the middle. `unreadable`: the store did not allow or answer the read.',
    ),
    observed_at: Timestamp.describe('When this was looked at.'),
  })
  .describe('Delivery as a whole.')
export type DeliverySummary = z.infer<typeof DeliverySummary>

const NodeCounters = z.object({
  recovery: Counters.describe('Further attempts, by why they were due.'),
  outcome: Counters.describe('Ends of commands and refused admissions, by outcome.'),
  acknowledgement: Counters.describe('Words of clients, by what they were.'),
  other: Counters.describe('Whatever else the node counts.'),
})

/**
 * One node, of a delivery system of ours or of another: what that one cannot know of its nodes is `null`. Of a node that
 * is silent (`stale`) nobody knows what runs and who waits there: that is `null`, while `counters` stay as they were at
 * `updated_at`.
 */
export const DeliveryNode = z
  .object({
    node_id: idField('node_id'),
    mailbox_listener_alive: z
      .boolean()
      .nullable()
      .describe('Whether it hears of commands at once; `null` if there is no such loop, or if unknown.'),
    reconciliation_loop_alive: z
      .boolean()
      .nullable()
      .describe('Whether its loop goes over what is due; `null` if there is no such loop, or if unknown.'),
    active_drainers: Count.nullable().describe('Clients that are being handed a command now; `null` if not known.'),
    connection_waiters: Count.nullable().describe('Connections that wait for commands now; `null` if not known.'),
    updated_at: Timestamp.nullable().describe('When it last said of itself; `null` where nodes do not report.'),
    stale: z.boolean().nullable().describe('Whether it has been silent for too long; `null` if unknown.'),
    staleness_ms: Count.nullable().describe('How long it has been silent, in ms; `null` if unknown.'),
    counters: NodeCounters.describe('What it has counted since its start, by low-cardinality names.'),
    metadata: HostMetadata.optional().describe(`What the host says of the node, at most ${METADATA_BYTES} bytes.`),
  })
  .describe('One node of delivery. What its system cannot know of it is `null`.')
export type DeliveryNode = z.infer<typeof DeliveryNode>

/** One admission scope with reservations; it does not necessarily map to a commercial tenant. */
export const DeliveryTenant = z
  .object({
    scope_id: idField('scope_id'),
    reserved_commands: Count.describe('Commands that hold a reservation.'),
    oldest_deadline_at: Timestamp.nullable().describe('Their earliest deadline; `null` for none.'),
    capacity: Count.nullable()
      .optional()
      .describe('Most reservations, as the latest admission was held to; `null` where unknown or without a bound.'),
    metadata: HostMetadata.optional().describe(`What the host says of the scope, at most ${METADATA_BYTES} bytes.`),
  })
  .describe('One admission scope with reservations; it does not necessarily map to a commercial tenant.')
export type DeliveryTenant = z.infer<typeof DeliveryTenant>

const Admission = z.object({
  state: AdmissionState.describe('Whether it was let in.'),
  at: Timestamp.describe('When that was decided.'),
  scope_id: idField('scope_id'),
  deadline_at: Timestamp.nullable().describe('When it expires; `null` where it does not.'),
})

const Attempts = z.object({
  count: Count.describe('Attempts that were claimed.'),
  confirmed: Count.describe('Those of them whose `deliver` resolved: hand-overs that are known of.'),
  last_at: Timestamp.nullable().describe('When the latest was claimed; `null` before the first.'),
  last_node_id: z.string().nullable().describe('The node that claimed it; `null` before the first.'),
  last_outcome: AttemptOutcome.nullable().describe(
    'What became of that hand-over; `null` before the first, and while it is under way.',
  ),
})

const Acknowledgement = z.object({
  state: AcknowledgementState.describe("The client's word, if it has given one."),
  at: Timestamp.nullable().describe('When it gave it; `null` without one.'),
  instance_id: z.string().nullable().describe('The instance that gave it; `null` without one.'),
})

const Recovery = z.object({
  count: Count.describe('How often another attempt was due.'),
  last_at: Timestamp.nullable().describe('When that was last so; `null` for never.'),
  reason: RecoveryReason.nullable().describe('Why it was so then; `null` for never.'),
})

const Terminal = z.object({
  state: TerminalState.describe('How it ended.'),
  at: Timestamp.describe('When it ended.'),
  reason: TerminalReason.nullable().describe('Why: a word of the library, or a low-cardinality one of the host.'),
})

/** The evidence about one command. No single field of it means that an external effect happened. */
export const DeliveryStatus = z
  .object({
    user_id: z.string().nullable().describe(`${NAMES.user_id} \`null\` where nobody knows.`),
    client_id: z.string().nullable().describe(`${NAMES.client_id} \`null\` where it is for none, or nobody knows.`),
    command_id: idField('command_id'),
    admission: Admission.describe('Whether it was let in, by when, and on whose account.'),
    attempts: Attempts.describe(
      "Attempts to hand it over. One is one claim for a waiter's `deliver`; its outcome says what became of the hand-over, not of the command.",
    ),
    acknowledgement: Acknowledgement.describe('What the client said of it.'),
    recovery: Recovery.describe('Further attempts, and why they were due.'),
    terminal: Terminal.nullable().describe('Its end; `null` while it is tracked.'),
  })
  .describe('The evidence about one command. No single field of it means that an external effect happened.')
export type DeliveryStatus = z.infer<typeof DeliveryStatus>

/**
 * One command as its list shows it: the evidence as it is recorded. A command whose deadline has passed and whose end
 * nobody has recorded yet is `overdue` and has no `terminal` here; asked for by its key it reads as expired.
 */
export const DeliveryCommand = DeliveryStatus.extend({
  state: CommandState.describe('Where it stands.'),
  overdue: z.boolean().describe('Whether its deadline has passed without a recorded end.'),
  action: z.string().nullable().optional().describe(`${NAMES.action} \`null\` where nobody knows.`),
}).describe('One command as its list shows it: the evidence as it is recorded.')
export type DeliveryCommand = z.infer<typeof DeliveryCommand>

/** Filters of `/delivery/commands`, all of them optional. A client id is that of one user, a command id that of one client. */
export const CommandFilter = z.object({
  state: CommandState.optional().describe('Only those that stand here.'),
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  command_id: filterBy('command_id'),
  scope_id: filterBy('scope_id'),
  overdue: z.boolean().optional().describe('Only those that are overdue, or only others.'),
})
export type CommandFilter = z.infer<typeof CommandFilter>

/**
 * What names a command: the same three everywhere. Of a command whose user or client nobody knows, its scope stands in
 * their place.
 */
export const CommandKey = z.object({
  user_id: idInput('user_id'),
  client_id: idInput('client_id'),
  command_id: idInput('command_id'),
})
export type CommandKey = z.infer<typeof CommandKey>

/** Reads a dispatcher. Never returns a payload. */
export interface DeliveryInspector extends Pingable, Versioned {
  summary(ctx: InspectionContext): Awaitable<DeliverySummary>
  listNodes(page: PageQuery, ctx: InspectionContext): Awaitable<Page<DeliveryNode>>
  listTenants(page: PageQuery, ctx: InspectionContext): Awaitable<Page<DeliveryTenant>>
  /** A scope by its id; `null` when it has no reservations. Without it the list is looked through. */
  getTenant?(scopeId: string, ctx: InspectionContext): Awaitable<DeliveryTenant | null>
  /**
   * `null` when nothing is retained.
   *
   * @throws Refusal `invalid_identity` for an identity or combination that no command can have.
   */
  status(key: CommandKey, ctx: InspectionContext): Awaitable<DeliveryStatus | null>
  /**
   * Retained commands, the first admitted first; over several shards shard by shard. A command keeps its place while its
   * state changes. Mirrored by the operation `delivery_commands`.
   */
  listCommands?(filter: CommandFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<DeliveryCommand>>
}

/** Delivery, for the table of families. */
export const DELIVERY_FAMILY = {
  facility: 'dispatcher',
  capability: 'delivery',
  methods: { summary: true, listNodes: true, listTenants: true, status: true },
  operations: {},
  listed: { delivery_commands: 'listCommands' },
  components: {
    CommandState,
    DeliveryCommand,
    DeliveryNode,
    DeliveryStatus,
    DeliverySummary,
    DeliveryTenant,
    DeploymentMode,
  },
} as const satisfies Family<DeliveryInspector>
