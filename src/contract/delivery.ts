/** The delivery family: admitted commands on their way to a client, without their payloads. */
import * as z from 'zod'
import type { Ending } from '../async/ending.js'
import type { Instance } from './connections.js'
import {
  AcknowledgementState,
  AdmissionState,
  AttemptOutcome,
  CommandState,
  Counters,
  RecoveryReason,
  TerminalReason,
  TerminalState,
} from './delivery-words.js'
import type { Family } from './family.js'
import { Id, Timestamp } from './ids.js'
import { JsonRecord, JsonValue } from './json.js'
import type { Ask, Awaitable, Page, PageQuery, Pingable } from './page.js'

export const DeploymentMode = z.enum(['direct', 'shared_store'])
export type DeploymentMode = z.infer<typeof DeploymentMode>

const Count = z.int().min(0)

/** Delivery as a whole. The oldest ages are taken from a sample of `sample_size` commands, not a global maximum. */
export const DeliverySummary = z.object({
  deployment_id: z.string().nullable(),
  mode: DeploymentMode,
  /** Admitted and not terminal. */
  tracked_commands: Count,
  /** Tracked, unacknowledged, and their next attempt is now or earlier. */
  due_commands: Count,
  oldest_deadline_at: Timestamp.nullable(),
  oldest_queued_age_ms: Count.nullable(),
  sample_size: Count,
  legacy_stream_depth: Count.nullable(),
  legacy_pending_depth: Count.nullable(),
  observed_at: Timestamp,
})
export type DeliverySummary = z.infer<typeof DeliverySummary>

/**
 * One node. `…_alive` is evidence of its last report; `null` where such a loop does not exist. Of a node that is silent
 * (`stale`) nobody knows what runs and who waits there: that is `null`, while `counters` stay as they were at
 * `updated_at`.
 */
export const DeliveryNode = z.object({
  node_id: z.string(),
  mailbox_listener_alive: z.boolean().nullable(),
  reconciliation_loop_alive: z.boolean().nullable(),
  /** Mailboxes that are being drained now. */
  active_drainers: Count.nullable(),
  /** Connections that wait for commands now. */
  connection_waiters: Count.nullable(),
  updated_at: Timestamp,
  stale: z.boolean(),
  staleness_ms: Count,
  counters: z.object({ recovery: Counters, outcome: Counters, acknowledgement: Counters, other: Counters }),
  /** What the host says of the node. */
  metadata: JsonRecord.optional(),
})
export type DeliveryNode = z.infer<typeof DeliveryNode>

/** One admission scope with reservations; it does not necessarily map to a commercial tenant. */
export const DeliveryTenant = z.object({
  scope_id: z.string(),
  reserved_commands: Count,
  oldest_deadline_at: Timestamp.nullable(),
  /** Most reservations, as the latest admission was held to; `null` where that is unknown or without a bound. */
  capacity: Count.nullable().optional(),
  /** What the host says of the scope. */
  metadata: JsonRecord.optional(),
})
export type DeliveryTenant = z.infer<typeof DeliveryTenant>

/** The evidence about one command. No single field of it means that an external effect happened. */
export const DeliveryStatus = z.object({
  user_id: z.string(),
  client_id: z.string(),
  command_id: z.string(),
  admission: z.object({
    state: AdmissionState,
    at: Timestamp,
    scope_id: z.string(),
    deadline_at: Timestamp.nullable(),
  }),
  /** An attempt is one claim for a waiter's `deliver`; its outcome says what became of the hand-over, not of the command. */
  attempts: z.object({
    /** Attempts that were claimed. */
    count: Count,
    /** Those of them whose `deliver` resolved: hand-overs that are known of. */
    confirmed: Count,
    last_at: Timestamp.nullable(),
    last_node_id: z.string().nullable(),
    last_outcome: AttemptOutcome.nullable(),
  }),
  acknowledgement: z.object({
    state: AcknowledgementState,
    at: Timestamp.nullable(),
    instance_id: z.string().nullable(),
  }),
  recovery: z.object({ count: Count, last_at: Timestamp.nullable(), reason: RecoveryReason.nullable() }),
  terminal: z.object({ state: TerminalState, at: Timestamp, reason: TerminalReason.nullable() }).nullable(),
})
export type DeliveryStatus = z.infer<typeof DeliveryStatus>

/**
 * One command as its list shows it: the evidence as it is recorded. A command whose deadline has passed and whose end
 * nobody has recorded yet is `overdue` and has no `terminal` here; asked for by its key it reads as expired.
 */
export const DeliveryCommand = DeliveryStatus.extend({ state: CommandState, overdue: z.boolean() })
export type DeliveryCommand = z.infer<typeof DeliveryCommand>

/** Filters of `/delivery/commands`, all of them optional. A client id is that of one user. */
export const CommandFilter = z.object({
  state: CommandState.optional(),
  user_id: Id.optional(),
  client_id: Id.optional(),
  scope_id: Id.optional(),
  overdue: z.boolean().optional(),
})
export type CommandFilter = z.infer<typeof CommandFilter>

/** What names a command: the same three everywhere. */
export const CommandKey = z.object({ user_id: Id, client_id: Id, command_id: Id })
export type CommandKey = z.infer<typeof CommandKey>

/** Reads a dispatcher. Never returns a payload. */
export interface DeliveryInspector extends Pingable {
  summary(ask: Ask): Awaitable<DeliverySummary>
  listNodes(page: PageQuery, ask: Ask): Awaitable<Page<DeliveryNode>>
  listTenants(page: PageQuery, ask: Ask): Awaitable<Page<DeliveryTenant>>
  /** A scope by its id; `null` when it has no reservations. Without it the list is looked through. */
  getTenant?(scopeId: string, ask: Ask): Awaitable<DeliveryTenant | null>
  /**
   * `null` when nothing is retained.
   *
   * @throws Refusal `invalid_identity` for an identity or combination that no command can have.
   */
  status(key: CommandKey, ask: Ask): Awaitable<DeliveryStatus | null>
  /**
   * Retained commands, the first admitted first; over several shards shard by shard. A command keeps its place while its
   * state changes. Mirrored by the operation `delivery_commands`.
   */
  listCommands?(filter: CommandFilter, page: PageQuery, ask: Ask): Awaitable<Page<DeliveryCommand>>
}

/** Longest time to the terminal state of a command. */
export const DEADLINE_MAX_MS = 86_400_000

/** A command as it is dispatched. */
export const DispatchInput = CommandKey.extend({
  action: Id,
  payload: JsonValue.optional(),
  /** Whose capacity it reserves. Default: the user. */
  scope_id: Id.optional(),
  /** To the terminal state. @default 30000 */
  deadlineMs: z.int().min(1).max(DEADLINE_MAX_MS).optional(),
  /** Attempts before it fails with `attempts_exhausted`. @default 5 */
  maxAttempts: z.int().min(1).max(100).optional(),
  /** Refuse at once when no connection waits for it. @default false */
  requireWaiter: z.boolean().optional(),
})
export type DispatchInput = z.input<typeof DispatchInput>

/** A client's word about a command; `refused` ends it. `reason` is a low-cardinality name, anything else is `other`. */
export const AcknowledgeInput = CommandKey.extend({
  instance_id: Id,
  /** @default 'acknowledged' */
  state: z.enum(['acknowledged', 'refused']).optional(),
  reason: z.string().optional(),
})
export type AcknowledgeInput = z.input<typeof AcknowledgeInput>

/** The end of a command. With `instance_id` it counts only from the current instance. */
export const SettleInput = CommandKey.extend({
  state: z.enum(['resulted', 'failed']),
  reason: z.string().optional(),
  instance_id: Id.optional(),
})
export type SettleInput = z.input<typeof SettleInput>

/** A command to end, and why. */
export const CancelInput = CommandKey.extend({ reason: z.string().optional() })
export type CancelInput = z.input<typeof CancelInput>

/** A command as a waiter is given it. */
export interface Command {
  command_id: string
  user_id: string
  client_id: string
  action: string
  payload: unknown
  /** 1 for the first attempt: more means that the client may have seen it already. */
  attempt: number
  deadline_at: string
}

/**
 * Hands a command to the connection. Resolving says that it was handed over; rejecting, or neither within the
 * acknowledgement time, leads to another attempt. `signal` lives until the command is terminal and aborts when it is
 * cancelled or expires.
 */
export type Deliver = (command: Command, options: { signal: AbortSignal }) => Awaitable<void>

/** An attached connection. */
export interface Waiter {
  detach(): Promise<void>
}

/** The live dispatcher of commands: admission against a reservation, at least once to the connection, evidence kept. */
export interface CommandDispatcher {
  /**
   * Admits a command or rejects it; the answer says which. The same key again is the same command and answers the
   * retained record; a rejected admission is not sticky.
   *
   * @throws Refusal `invalid_input`, `invalid_identity`, `payload_too_large`, `command_conflict` (another action or
   * payload under the same key).
   */
  dispatch(input: DispatchInput): Promise<DeliveryStatus>
  /** Waits for the client's commands. A later attach of the client replaces this one. @throws Refusal `stale_instance`. */
  attach(instance: Instance, deliver: Deliver): Promise<Waiter>
  /**
   * The client's word that it has the command, fenced by instance; `refused` ends it. Whether it counted; a repeat
   * before the terminal state does.
   */
  acknowledge(input: AcknowledgeInput): Promise<boolean>
  /** The end of a command; works without an acknowledgement. False once it is terminal, unknown, or fenced. */
  settle(input: SettleInput): Promise<boolean>
  /** Ends a command and aborts its `deliver` signal. False once it is terminal or unknown. */
  cancel(input: CancelInput): Promise<boolean>
  /**
   * Ends the loops and every waiter, within 5 s whatever hooks and stores do. Tracked commands stay as they are, and a
   * `deliver` under way is not waited for. Resolves to how many waiters a store could not be told of.
   */
  close(): Promise<Ending>
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
