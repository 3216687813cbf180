/** A command and its mailbox, as the memory dispatcher stores them; callers get a `DeliveryStatus`. */

import type {
  Attempt,
  AttemptOutcome,
  CommandKey,
  CommandState,
  DeliveryStatus,
  RecoveryReason,
  TerminalState,
} from '../../internal/contract/delivery.js'
import { ATTEMPTS_KEPT } from '../../internal/contract/delivery.js'
import type { Deliver, DispatchInput } from '../../internal/contract/delivery-dispatch.js'
import { type DeliveryStep, type StepInstants, shownAttempts } from '../../internal/contract/delivery-rules.js'
import { clientKey, toTimestamp, traceFields } from '../../internal/contract/ids.js'
import type { Json } from '../../internal/contract/json.js'
import { type Queued, unqueued } from '../table/expiry-queue.js'
import { type Indexed, NOT_COUNTED } from '../table/field-index.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'

/**
 * Phase of a command: `ready` for an attempt, `attempted` (a timer waits for its acknowledgement), in `backoff` before
 * the next attempt, `acknowledged`, or `ended`.
 */
export type Phase = 'ready' | 'attempted' | 'backoff' | 'acknowledged' | 'ended'

/** Fields for ordering commands by an instant; equal instants are ordered by admission. */
export interface Scheduled {
  readonly sequence: number
  wakeAt: number
  deadlineAt: number
}

/** Returns the position after all commands whose deadline has passed at `now`, ordered by deadline. */
export const afterOverdue = (now: number): Scheduled => ({
  deadlineAt: now,
  sequence: Number.POSITIVE_INFINITY,
  wakeAt: 0,
})

/** One attempt. Times are epoch ms. */
interface MadeAttempt {
  number: number
  at: number
  node_id: string
  instance_id: string
  /** `null` while it is in progress. */
  outcome: AttemptOutcome | null
  endedAt: number | null
  reason: RecoveryReason | null
}

/** Shared by all commands without attempts, which are most of the waiting ones. */
const NO_ATTEMPTS: readonly MadeAttempt[] = Object.freeze([])

/**
 * A command with its evidence. Times are epoch ms, except for `queuedAt` and `wakeAt`, which are of the steady clock.
 */
export interface TrackedCommand extends CommandKey, Scheduled, Queued, Indexed {
  key: string
  /** The state under which it is listed. */
  listedAs: CommandState
  scope_id: string
  fingerprint: string
  admittedAt: number
  queuedAt: number
  maxAttempts: number
  /** `null` for a rejected command, which is in no mailbox. */
  mailbox: Mailbox | null
  phase: Phase
  action: string
  trace: string | undefined
  payload: Json
  payloadBytes: number
  attempts: number
  confirmed: number
  handedOverAt: number | null
  /** The latest attempts, oldest first. */
  made: readonly MadeAttempt[]
  /** Whether it is counted as a command whose `deliver` is in progress. */
  isDelivering: boolean
  acknowledged: 'none' | 'acknowledged' | 'refused'
  acknowledgedAt: number | null
  acknowledgedBy: string | null
  recoveries: number
  recoveredAt: number | null
  recoveryReason: RecoveryReason | null
  terminal: { state: TerminalState; at: number; reason: string | null } | null
  controller: AbortController | null
}

/** The connection that waits at a mailbox; `sequence` is greater than that of every attach that started earlier. */
export interface Waiter extends Indexed {
  instance_id: string
  mailbox: Mailbox
  attachedAt: number
  deliver: Deliver
}

/** The commands of one client of one user, and the connection that waits for them. */
export interface Mailbox {
  key: string
  user_id: string
  client_id: string
  waiter: Waiter | null
  /** The commands whose `deliver` is in progress. */
  handovers: Set<TrackedCommand>
  ready: OrderedIndex<number, TrackedCommand>
  /** Number of commands that are not terminal. */
  tracked: number
  /** Whether a drain is in progress. */
  draining: boolean
}

export function createMailbox(user_id: string, client_id: string): Mailbox {
  const ready = new OrderedIndex<number, TrackedCommand>((command) => command.sequence, byNumber)
  const key = clientKey({ user_id, client_id })
  return { key, user_id, client_id, waiter: null, handovers: new Set(), ready, tracked: 0, draining: false }
}

/** The fields of a command that are set at its admission. */
type Admission = Pick<
  TrackedCommand,
  | 'key'
  | 'sequence'
  | 'admittedAt'
  | 'queuedAt'
  | 'deadlineAt'
  | 'maxAttempts'
  | 'fingerprint'
  | 'payload'
  | 'payloadBytes'
>

export function createTrackedCommand(input: DispatchInput, admission: Admission): TrackedCommand {
  const { user_id, client_id, command_id, action, trace, scope_id = user_id } = input
  return {
    user_id,
    client_id,
    command_id,
    action,
    trace,
    scope_id,
    ...admission,
    ...unqueued(),
    cell: NOT_COUNTED,
    listedAs: 'waiting',
    mailbox: null,
    phase: 'ready',
    wakeAt: 0,
    attempts: 0,
    confirmed: 0,
    handedOverAt: null,
    made: NO_ATTEMPTS,
    isDelivering: false,
    acknowledged: 'none',
    acknowledgedAt: null,
    acknowledgedBy: null,
    recoveries: 0,
    recoveredAt: null,
    recoveryReason: null,
    terminal: null,
    controller: null,
  }
}

/** Adds an attempt to `command` and returns its number. */
export function addAttempt(command: TrackedCommand, at: number, node_id: string, instance_id: string): number {
  const number = ++command.attempts
  const attempt = { number, at, node_id, instance_id, outcome: null, endedAt: null, reason: null }
  command.made = command.made === NO_ATTEMPTS ? [attempt] : [...command.made.slice(1 - ATTEMPTS_KEPT), attempt]
  return number
}

export const latestAttempt = ({ made }: TrackedCommand): MadeAttempt | undefined => made.at(-1)

/** Returns the current state of `command`. */
export const stateOf = ({ terminal, acknowledged, attempts }: TrackedCommand): CommandState =>
  terminal?.state ?? (acknowledged !== 'none' ? 'acknowledged' : attempts > 0 ? 'attempted' : 'waiting')

const toTimestampOrNull = (at: number | null) => (at === null ? null : toTimestamp(at))

const toAttempt = ({ number, at, node_id, instance_id, outcome, endedAt, reason }: MadeAttempt): Attempt => ({
  number,
  at: toTimestamp(at),
  node_id,
  instance_id,
  outcome,
  ended_at: toTimestampOrNull(endedAt),
  reason,
})

/** Returns the evidence of `command` at `now` in its wire format. */
export function toDeliveryStatus(command: TrackedCommand, now: number): DeliveryStatus {
  const { user_id, client_id, command_id, scope_id, terminal } = command
  const rejected = terminal?.state === 'rejected'
  const last = latestAttempt(command)
  return {
    user_id,
    client_id,
    command_id,
    admission: {
      state: rejected ? 'rejected' : 'admitted',
      at: toTimestamp(command.admittedAt),
      scope_id,
      deadline_at: rejected ? null : toTimestamp(command.deadlineAt),
    },
    attempts: {
      count: command.attempts,
      confirmed: command.confirmed,
      handed_over_at: toTimestampOrNull(command.handedOverAt),
      last_at: toTimestampOrNull(last?.at ?? null),
      last_node_id: last?.node_id ?? null,
      last_outcome: last?.outcome ?? null,
      ...shownAttempts(command.made.map(toAttempt), command.attempts),
    },
    acknowledgement: {
      state: command.acknowledged,
      at: toTimestampOrNull(command.acknowledgedAt),
      instance_id: command.acknowledgedBy,
    },
    recovery: {
      count: command.recoveries,
      last_at: toTimestampOrNull(command.recoveredAt),
      reason: command.recoveryReason,
    },
    terminal: terminal && { ...terminal, at: toTimestamp(terminal.at) },
    overdue: terminal === null && command.deadlineAt <= now,
    ...traceFields(command.trace),
  }
}

/** Returns when the steps of `command` were made. */
export const stepInstantsOf = (command: TrackedCommand): StepInstants => ({
  admitted: command.admittedAt,
  handedOver: command.handedOverAt,
  acknowledged: command.acknowledgedAt,
  ended: command.terminal?.at ?? null,
})

/** Returns the step of the delivery of `command`, from which `waits_for` is derived. */
export const stepOf = ({ phase, mailbox }: TrackedCommand): DeliveryStep => ({
  step: phase === 'ready' || phase === 'attempted' ? phase : phase === 'backoff' ? 'pause' : null,
  isAttached: mailbox === null ? null : mailbox.waiter !== null,
})
