/** The command dispatcher that a host uses, and its inputs. */
import * as z from 'zod'
import type { CloseResult } from '../async/deadline.js'
import type { Instance } from './connections.js'
import { CommandKey, type DeliveryStatus } from './delivery.js'
import { Id, Traceparent } from './ids.js'
import { JsonValue } from './json.js'
import { inputObject } from './options.js'
import type { Awaitable } from './page.js'

/** Longest time to the terminal state of a command. */
export const DEADLINE_MAX_MS = 86_400_000

/** A command as it is dispatched. */
export const DispatchInput = inputObject({
  ...CommandKey.shape,
  /** Name of the action. */
  action: Id,
  /** Payload of the command: JSON. @default none */
  payload: JsonValue.optional(),
  /** Scope whose capacity the command reserves. @default the user */
  scope_id: Id.optional(),
  /** Maximum time until the command ends, in ms; after that it expires. @default 30000 */
  deadline_ms: z.int().min(1).max(DEADLINE_MAX_MS).optional(),
  /** Maximum number of attempts, 1 to 100; then it fails with `attempts_exhausted`. @default 5 */
  max_attempts: z.int().min(1).max(100).optional(),
  /** Reject the command if no connection is attached for it. @default false */
  require_waiter: z.boolean().optional(),
  /**
   * W3C `traceparent` of the host's trace: lists show it and filter by its trace id. Another one for a known command is
   * ignored. @default none
   */
  trace: Traceparent.optional(),
})
export type DispatchInput = z.input<typeof DispatchInput>

/**
 * A client's acknowledgement of a command; `refused` ends it. `reason` is a low-cardinality name, other values become
 * `other`.
 */
export const AcknowledgeInput = inputObject({
  ...CommandKey.shape,
  /** Id of the client instance: a new one per process or page load. */
  instance_id: Id,
  /** Whether the client accepts or refuses the command. @default 'acknowledged' */
  state: z.enum(['acknowledged', 'refused']).optional(),
  /** A low-cardinality reason; anything else is stored as `other`. @default none */
  reason: z.string().optional(),
})
export type AcknowledgeInput = z.input<typeof AcknowledgeInput>

/** The end of a command. With `instance_id` it counts only from the current instance. */
export const SettleInput = inputObject({
  ...CommandKey.shape,
  /** Whether the command succeeded or failed. */
  state: z.enum(['resulted', 'failed']),
  /** A low-cardinality reason; anything else is stored as `other`. @default none */
  reason: z.string().optional(),
  /** Id of the client instance. If given, the end counts only if the instance is current. @default none */
  instance_id: Id.optional(),
  /** Whether this also acknowledges the command, if the client has not; needs `instance_id`. @default false */
  acknowledge: z.boolean().optional(),
}).refine(({ acknowledge, instance_id }) => !acknowledge || instance_id !== undefined, {
  path: ['instance_id'],
  error: 'must be given with acknowledge, which is fenced by it',
})
export type SettleInput = z.input<typeof SettleInput>

/** A command to end, and why. */
export const CancelInput = inputObject({
  ...CommandKey.shape,
  /** A low-cardinality reason; anything else is stored as `other`. @default none */
  reason: z.string().optional(),
})
export type CancelInput = z.input<typeof CancelInput>

/** A command as a waiter is given it. */
export interface Command {
  /** Id of the command. */
  command_id: string
  /** Id of the user. */
  user_id: string
  /** Id of the client. */
  client_id: string
  /** Name of the action. */
  action: string
  /** Payload of the command, as it was dispatched. */
  payload: unknown
  /** 1 for the first attempt: more means that the client may have seen it already. */
  attempt: number
  /** When the command expires, in ISO 8601, by the clock of the dispatcher's store. */
  deadline_at: string
  /** Time in milliseconds until then, at the delivery: an application goes by this, because its clock may differ. */
  remaining_ms: number
  /** The W3C `traceparent` that `dispatch` was given; absent without one. */
  trace?: string
}

/**
 * Delivers a command to the connection. Resolving means that it was delivered to the connection; a rejection, or
 * neither within the acknowledgement timeout, leads to another attempt. It may be called again before an earlier call
 * has settled, up to `maxDeliveriesPerClient` calls per client, so the order of a client's commands is not guaranteed.
 * `signal` aborts when the command is cancelled or expires.
 */
export type Deliver = (command: Command, options: { signal: AbortSignal }) => Awaitable<void>

/** An attached connection. */
export interface Waiter {
  /** Stops deliveries to this connection. */
  detach(): Promise<void>
}

/** The live dispatcher of commands: admission against a reservation, at least once to the connection, evidence kept. */
export interface CommandDispatcher {
  /**
   * Admits or rejects a command; the result says which. The same key again is the same command and returns the retained
   * record; a rejected admission may be retried.
   *
   * @throws Refusal `invalid_input`, `invalid_identity`, `payload_too_large`, `command_conflict` (another action or
   * payload under the same key).
   */
  dispatch(input: DispatchInput): Promise<DeliveryStatus>
  /** Waits for the client's commands. A later attach of the client replaces this one. @throws Refusal `stale_instance`. */
  attach(instance: Instance, deliver: Deliver): Promise<Waiter>
  /**
   * Records the client's acknowledgement, fenced by instance; `refused` ends the command, and replaces an earlier
   * acknowledgement.
   *
   * @returns whether it counted; a repeat before the end counts.
   */
  acknowledge(input: AcknowledgeInput): Promise<boolean>
  /**
   * The end of a command; works without an acknowledgement, or with `acknowledge` as one, in one step. False, and nothing
   * changed, once it is terminal, unknown, or fenced.
   */
  settle(input: SettleInput): Promise<boolean>
  /** Ends a command and aborts its `deliver` signal. False once it is terminal or unknown. */
  cancel(input: CancelInput): Promise<boolean>
  /**
   * Stops the loops and detaches every consumer, within 5 s whatever hooks and stores do. Tracked commands are kept,
   * and pending `deliver` calls are not awaited. Resolves to how many consumers could not be detached from the store.
   */
  close(): Promise<CloseResult>
}
