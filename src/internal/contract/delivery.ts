/** The delivery family: admitted commands on their way to a client, without their payloads. */
import * as z from 'zod'
import { answerOf } from './answer.js'
import {
  AcknowledgementState,
  AdmissionState,
  AttemptOutcome,
  CommandState,
  Counters,
  DeliveryChurnAnswer,
  type DeliveryChurnFilter,
  type DeliveryChurnInput,
  DeliveryMinuteAnswer,
  DeliverySummaryAnswer,
  type DeliverySummaryInput,
  DeploymentMode,
  LatencyHistograms,
  NO_REASON,
  RecoveryReason,
  TerminalReason,
  TerminalState,
  WaitsFor,
} from './delivery-summary.js'
import type { Family } from './family.js'
import { byReason, byTraceId, filterBy, idField, idInput, NAMES, SPAN_FILTERS, Timestamp, TRACE_FIELDS } from './ids.js'
import { HostMetadata } from './json.js'
import { METADATA_BYTES } from './limits.js'
import type { Awaitable, InspectionContext, Page, PageQuery, Pingable, Versioned } from './page.js'

export * from './delivery-summary.js'

const Count = z.int().min(0)

const NodeCounters = z.object({
  recovery: Counters.describe('Further attempts, by reason.'),
  outcome: Counters.describe('Ended commands and rejected admissions, by outcome.'),
  acknowledgement: Counters.describe('Acknowledgements and results from clients, by kind.'),
  other: Counters.describe('Other events counted by the node.'),
})

/**
 * One node of this or another delivery system; facts that the system does not have are `null`. The running loops and
 * attached consumers of a silent (`stale`) node are `null`, while `counters` stay as of `updated_at`.
 */
export const DeliveryNode = z
  .object({
    node_id: idField('node_id'),
    mailbox_listener_alive: z
      .boolean()
      .nullable()
      .describe('Whether messages of the store reach it; `null` without such a listener, or if unknown.'),
    reconciliation_loop_alive: z
      .boolean()
      .nullable()
      .describe('Whether its reconciliation loop runs; `null` without such a loop, or if unknown.'),
    active_drainers: Count.nullable().describe(
      'Clients that a command is being delivered to now; `null` if not known.',
    ),
    connection_waiters: Count.nullable().describe('Attached connections; `null` if not known.'),
    updated_at: Timestamp.nullable().describe('When it last reported; `null` if nodes do not report.'),
    stale: z.boolean().nullable().describe('Whether its last report is too old; `null` if unknown.'),
    staleness_ms: Count.nullable().describe('Time since its last report, in ms; `null` if unknown.'),
    counters: NodeCounters.describe('Counters since its start, by low-cardinality names.'),
    latency: LatencyHistograms.nullable()
      .optional()
      .describe(
        'Durations of the steps of commands that ended at this node since it started, rejected admissions excluded. `null` or absent if not known.',
      ),
    metadata: HostMetadata.optional().describe(`Host-supplied metadata of the node, at most ${METADATA_BYTES} bytes.`),
  })
  .describe('One node of delivery. Facts that its system does not have are `null`.')
export type DeliveryNode = z.infer<typeof DeliveryNode>

/** `DeliveryNode` as routes answer it. */
export const DeliveryNodeAnswer = answerOf(DeliveryNode, ['node_id'], { counters: answerOf(NodeCounters, []) })
export type DeliveryNodeAnswer = z.output<typeof DeliveryNodeAnswer>
/** `DeliveryNode` as an inspector returns it: a field that is absent is not known. */
export type DeliveryNodeInput = z.input<typeof DeliveryNodeAnswer>

/** One admission scope with reservations; it does not necessarily map to a commercial tenant. */
export const DeliveryTenant = z
  .object({
    scope_id: idField('scope_id'),
    reserved_commands: Count.describe('Commands that hold a reservation: until their end is recorded.'),
    oldest_deadline_at: Timestamp.nullable().describe(
      'Their earliest deadline, which may have passed; `null` if unknown.',
    ),
    capacity: Count.nullable()
      .optional()
      .describe('Capacity that the latest admission was checked against; `null` if unknown or unlimited.'),
    metadata: HostMetadata.optional().describe(`Host-supplied metadata of the scope, at most ${METADATA_BYTES} bytes.`),
  })
  .describe('One admission scope with reservations; it does not necessarily map to a commercial tenant.')
export type DeliveryTenant = z.infer<typeof DeliveryTenant>

/** `DeliveryTenant` as routes answer it. */
export const DeliveryTenantAnswer = answerOf(DeliveryTenant, ['scope_id'])
export type DeliveryTenantAnswer = z.output<typeof DeliveryTenantAnswer>
/** `DeliveryTenant` as an inspector returns it: a field that is absent is not known. */
export type DeliveryTenantInput = z.input<typeof DeliveryTenantAnswer>

const Admission = z.object({
  state: AdmissionState.describe('Whether it was admitted.'),
  at: Timestamp.describe('When the decision was made.'),
  scope_id: idField('scope_id'),
  deadline_at: Timestamp.nullable().describe('When it expires; `null` where it does not.'),
})

/** Attempts of one command that its record keeps one by one. */
export const ATTEMPTS_KEPT = 16

const Attempt = z.object({
  number: z.int().min(1).describe('Number of the attempt, from 1.'),
  at: Timestamp.nullable().describe('When the attempt started; `null` if not known.'),
  node_id: z.string().nullable().describe('The node that made the attempt; `null` if not known.'),
  instance_id: z.string().nullable().describe('The instance of the client that it was for; `null` if not known.'),
  outcome: AttemptOutcome.nullable().describe('The outcome; `null` while the attempt is pending.'),
  ended_at: Timestamp.nullable().describe('When that was recorded; `null` while it is under way, or if not known.'),
  reason: RecoveryReason.nullable().describe(
    'Why it failed; `null` while pending, and for a delivered attempt that did not time out.',
  ),
})
export type Attempt = z.infer<typeof Attempt>

const Attempts = z.object({
  count: Count.describe('Number of attempts.'),
  confirmed: Count.describe('Number of attempts whose `deliver` resolved.'),
  handed_over_at: Timestamp.nullable().describe(
    'When `deliver` first resolved; `null` if it has not, or if not known.',
  ),
  last_at: Timestamp.nullable().describe('When the latest attempt started; `null` before the first.'),
  last_node_id: z.string().nullable().describe('The node of the latest attempt; `null` before the first.'),
  last_outcome: AttemptOutcome.nullable().describe(
    'The outcome of that attempt; `null` before the first, and while it is pending.',
  ),
  items: z.array(Attempt).max(ATTEMPTS_KEPT).describe(`The latest attempts, oldest first, at most ${ATTEMPTS_KEPT}.`),
  omitted: Count.describe('Number of earlier attempts, which are not listed.'),
})

const Acknowledgement = z.object({
  state: AcknowledgementState.describe("The client's acknowledgement, if any."),
  at: Timestamp.nullable().describe('When the client acknowledged or refused the command; `null` if it did not.'),
  instance_id: z
    .string()
    .nullable()
    .describe('The client instance that acknowledged or refused it; `null` if none did.'),
})

const Recovery = z.object({
  count: Count.describe('Number of further attempts that were scheduled.'),
  last_at: Timestamp.nullable().describe('When that was last the case; `null` if never.'),
  reason: RecoveryReason.nullable().describe('The reason at that time; `null` if never.'),
})

const Terminal = z.object({
  state: TerminalState.describe('How it ended.'),
  at: Timestamp.describe('When it ended.'),
  reason: TerminalReason.nullable().describe('The reason, from the library or a low-cardinality one of the host.'),
})

const PARTS = {
  admission: answerOf(Admission, []),
  attempts: answerOf(Attempts, [], {
    items: z.array(answerOf(Attempt, ['number'])).max(ATTEMPTS_KEPT),
  }),
  acknowledgement: answerOf(Acknowledgement, []),
  recovery: answerOf(Recovery, []),
  terminal: answerOf(Terminal, []),
}

/** The evidence about one command. No single field proves that an external effect happened. */
export const DeliveryStatus = z
  .object({
    user_id: z.string().nullable().describe(`${NAMES.user_id} \`null\` if unknown.`),
    client_id: z.string().nullable().describe(`${NAMES.client_id} \`null\` if there is none, or if unknown.`),
    command_id: idField('command_id'),
    admission: Admission.describe('Whether and when it was admitted, its deadline and its scope.'),
    attempts: Attempts.describe(
      "Attempts to deliver the command. An attempt is one call of a consumer's `deliver`; its outcome describes the delivery, not the command.",
    ),
    acknowledgement: Acknowledgement.describe("The client's acknowledgement."),
    recovery: Recovery.describe('Further attempts, and why they were scheduled.'),
    terminal: Terminal.nullable().describe('How it ended; `null` while no end is recorded.'),
    overdue: z.boolean().describe('Whether its deadline has passed without a recorded end.'),
    metadata: HostMetadata.optional().describe(
      `Host-supplied metadata of the command, at most ${METADATA_BYTES} bytes, such as what it waits for in a queue.`,
    ),
    ...TRACE_FIELDS,
  })
  .describe('The evidence about one command. No single field proves that an external effect happened.')
export type DeliveryStatus = z.infer<typeof DeliveryStatus>

/** `DeliveryStatus` as routes answer it. */
export const DeliveryStatusAnswer = answerOf(DeliveryStatus, ['command_id'], PARTS)
export type DeliveryStatusAnswer = z.output<typeof DeliveryStatusAnswer>
/** `DeliveryStatus` as an inspector returns it: a field that is absent is not known. */
export type DeliveryStatusInput = z.input<typeof DeliveryStatusAnswer>

/** A command in a list: its evidence, and what follows from it. */
export const DeliveryCommand = DeliveryStatus.extend({
  state: CommandState.describe('Current state.'),
  waits_for: WaitsFor.nullable().describe(
    'What the command waits for, from its record and its mailbox alone; `null` once it has ended.',
  ),
  action: z.string().nullable().optional().describe(`${NAMES.action} \`null\` if unknown.`),
}).describe('One command as its list shows it: the evidence as it is recorded.')
export type DeliveryCommand = z.infer<typeof DeliveryCommand>

/** `DeliveryCommand` as routes answer it. */
export const DeliveryCommandAnswer = answerOf(DeliveryCommand, ['command_id', 'state'], PARTS)
export type DeliveryCommandAnswer = z.output<typeof DeliveryCommandAnswer>
/** `DeliveryCommand` as an inspector returns it: a field that is absent is not known. */
export type DeliveryCommandInput = z.input<typeof DeliveryCommandAnswer>

/** Filters of `/delivery/commands`, all optional. A client id is unique per user, a command id per client. */
export const CommandFilter = z.object({
  state: z
    .enum(['open', ...CommandState.options])
    .optional()
    .describe('Only commands in this state; `open` for all that have not ended.'),
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  command_id: filterBy('command_id'),
  scope_id: filterBy('scope_id'),
  action: filterBy('action'),
  trace_id: byTraceId,
  overdue: z.boolean().optional().describe('Only overdue commands (`true`), or only others (`false`).'),
  reason: byReason
    .optional()
    .describe(`Only commands that ended for this reason; \`${NO_REASON}\` for those that ended without one.`),
  ...SPAN_FILTERS,
})
export type CommandFilter = z.infer<typeof CommandFilter>

/** One mailbox that a connection is attached to. */
export const DeliveryMailbox = z
  .object({
    user_id: idField('user_id'),
    client_id: idField('client_id'),
    instance_id: z.string().nullable().describe('The instance that is attached; `null` if not known.'),
    node_id: z.string().nullable().describe('The node where it is attached; `null` if not known.'),
    attached_at: Timestamp.nullable().describe('Since when it is attached; `null` if not known.'),
    waiting_commands: Count.nullable().describe(
      'Commands that wait for an attempt; one whose deadline has just passed may be included. `null` if not known.',
    ),
  })
  .describe('One mailbox that a connection is attached to, and how many commands wait in it.')
export type DeliveryMailbox = z.infer<typeof DeliveryMailbox>

/** `DeliveryMailbox` as routes answer it. */
export const DeliveryMailboxAnswer = answerOf(DeliveryMailbox, ['user_id', 'client_id'])
export type DeliveryMailboxAnswer = z.output<typeof DeliveryMailboxAnswer>
/** `DeliveryMailbox` as an inspector returns it: a field that is absent is not known. */
export type DeliveryMailboxInput = z.input<typeof DeliveryMailboxAnswer>

/** Filters of `/delivery/mailboxes`, all optional. */
export const MailboxFilter = z.object({
  user_id: filterBy('user_id'),
  client_id: filterBy('client_id'),
  node_id: filterBy('node_id'),
})
export type MailboxFilter = z.infer<typeof MailboxFilter>

/** The key of a command: the same three ids everywhere. The scope replaces an unknown user or client. */
export const CommandKey = z.object({
  user_id: idInput('user_id'),
  client_id: idInput('client_id'),
  command_id: idInput('command_id'),
})
export type CommandKey = z.infer<typeof CommandKey>

/** Reads a dispatcher. Never returns a payload. */
export interface DeliveryInspector extends Pingable, Versioned {
  /** Returns the state of delivery as a whole: counts, ages and latencies. */
  summary(ctx: InspectionContext): Awaitable<DeliverySummaryInput>
  /** Lists delivery nodes, one page at a time. */
  listNodes(page: PageQuery, ctx: InspectionContext): Awaitable<Page<DeliveryNodeInput>>
  /** Lists scopes with their capacity and reservations, one page at a time. */
  listTenants(page: PageQuery, ctx: InspectionContext): Awaitable<Page<DeliveryTenantInput>>
  /** A scope by its id; `null` when it has no reservations. Without it the list is looked through. */
  getTenant?(scopeId: string, ctx: InspectionContext): Awaitable<DeliveryTenantInput | null>
  /**
   * `null` when nothing is retained.
   *
   * @throws Refusal `invalid_identity` for an identity or combination that no command can have.
   */
  status(key: CommandKey, ctx: InspectionContext): Awaitable<DeliveryStatusInput | null>
  /**
   * Retained commands in order of admission, newest or oldest first as the page says; without an order the oldest
   * first, over several shards shard by shard. A command keeps its position while its state changes. Advertised as the
   * operation `delivery_commands`.
   */
  listCommands?(filter: CommandFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<DeliveryCommandInput>>
  /** Mailboxes that a connection is attached to at a living node. Mirrored by the operation `delivery_mailboxes`. */
  listMailboxes?(filter: MailboxFilter, page: PageQuery, ctx: InspectionContext): Awaitable<Page<DeliveryMailboxInput>>
  /** Commands that were admitted and ended in each of the last minutes. Advertised as `delivery_churn`. */
  deliveryChurn?(filter: DeliveryChurnFilter, ctx: InspectionContext): Awaitable<DeliveryChurnInput>
}

/** Delivery, for the table of families. */
export const DELIVERY_FAMILY = {
  facility: 'dispatcher',
  capability: 'delivery',
  methods: { summary: true, listNodes: true, listTenants: true, status: true },
  operations: {},
  listed: {
    delivery_churn: 'deliveryChurn',
    delivery_commands: 'listCommands',
    delivery_mailboxes: 'listMailboxes',
  },
  components: {
    CommandState,
    DeliveryChurn: DeliveryChurnAnswer,
    DeliveryCommand: DeliveryCommandAnswer,
    DeliveryMailbox: DeliveryMailboxAnswer,
    DeliveryMinute: DeliveryMinuteAnswer,
    DeliveryNode: DeliveryNodeAnswer,
    DeliveryStatus: DeliveryStatusAnswer,
    DeliverySummary: DeliverySummaryAnswer,
    DeliveryTenant: DeliveryTenantAnswer,
    DeploymentMode,
    WaitsFor,
  } as Family['components'],
} as const satisfies Family<DeliveryInspector>
