/** What every dispatcher keeps to, whatever it stands on: who can be addressed, how long it waits, what it calls stale. */
import { DEADLINE_MS, withTimeout } from '../async/time-limit.js'
import { Refusal } from '../refusal.js'
import type { ConnectionRegistry } from './connections.js'
import type { CommandFilter, CommandKey, DeliveryCommand, DeliveryStatus } from './delivery.js'
import { DEADLINE_MAX_MS } from './delivery-dispatch.js'
import { checkSegment } from './ids.js'
import type { JsonObject } from './json.js'
import {
  count,
  custom,
  defineOptions,
  duration,
  having,
  type Input,
  object,
  readParts,
  text,
  timer,
  whole,
} from './options.js'

/** @throws Refusal `invalid_identity` for ids that no command can have, because they are not one path segment. */
export function requireIdentity(ids: { client_id: string; command_id?: string }): void {
  for (const name of ['client_id', 'command_id'] as const) {
    const reason = checkSegment(ids[name] ?? '')
    if (reason) throw new Refusal('invalid_identity', `${name}: ${reason}, without "/"`)
  }
}

type CurrentInstances = Pick<ConnectionRegistry, 'currentInstance'>

/** `registry`, which answers in time or refuses: a question that nobody answers would hold up a mailbox for good. */
export function withDeadline(registry: CurrentInstances | undefined): CurrentInstances | undefined {
  if (!registry) return undefined
  const limit = { ms: DEADLINE_MS, code: 'unavailable' } as const
  return { currentInstance: (client) => withTimeout(() => registry.currentInstance(client), limit) }
}

/** `status` as it is at `now`: past its deadline a command is over, whether or not anybody is left who brings it to its end. */
export function expiredAt(status: DeliveryStatus, now: number): DeliveryStatus {
  const { deadline_at } = status.admission
  if (status.terminal || deadline_at === null || Date.parse(deadline_at) > now) return status
  return { ...status, terminal: { state: 'expired', at: deadline_at, reason: 'deadline_passed' } }
}

/** `status`, as it is recorded, in the list at `now` (epoch ms). */
export function toDeliveryCommand(status: DeliveryStatus, now: number, action: string | null): DeliveryCommand {
  const { terminal, acknowledgement, attempts, admission } = status
  const open =
    acknowledgement.state !== 'none' ? 'acknowledged' : attempts.count > 0 ? 'attempted' : ('waiting' as const)
  const { deadline_at } = admission
  const overdue = terminal === null && deadline_at !== null && Date.parse(deadline_at) <= now
  return { ...status, state: terminal?.state ?? open, overdue, action }
}

/** Whether `filter` admits `command`. */
export function admitsCommand(filter: CommandFilter, command: DeliveryCommand): boolean {
  const { state, overdue, user_id, client_id, command_id, admission } = command
  const values = { state, overdue, user_id, client_id, command_id, scope_id: admission.scope_id } satisfies {
    [Name in keyof Required<CommandFilter>]: unknown
  }
  const names = Object.keys(values) as (keyof CommandFilter)[]
  return names.every((name) => filter[name] === undefined || filter[name] === values[name])
}

/** What `status` is asked with about this command: its scope stands for a user or a client that nobody knows. */
export function addressOf(command: DeliveryStatus): CommandKey {
  const { user_id, client_id, command_id, admission } = command
  return { user_id: user_id ?? admission.scope_id, client_id: client_id ?? admission.scope_id, command_id }
}

/** A capacity as a host's function said it, in whole commands. What is not a number reserves nothing. */
function toCapacity(said: unknown): number {
  return typeof said === 'number' && !Number.isNaN(said) ? Math.floor(said) : 0
}

/** A capacity as it is shown: `null` without a bound. */
export function shownCapacity(capacity: number): number | null {
  const whole = Math.max(0, Math.floor(capacity))
  return whole < Number.MAX_SAFE_INTEGER ? whole : null
}

/** First pause before another attempt, doubled each time: five attempts of 5 s and their pauses end within 30 s. */
export const BACKOFF_MS = 200
/** Longest pause between two attempts: a client that comes back is served within it. */
export const BACKOFF_MAX_MS = 5_000

/** The pause after the attempt numbered `attempts`, from 1. */
export const backoffMs = (attempts: number) => Math.min(BACKOFF_MAX_MS, BACKOFF_MS * 2 ** (attempts - 1))

/** Longest sleep of a reconciliation loop: its sign of life. */
export const HEARTBEAT_MS = 1_000
/** A loop without a pass for this long is not alive: five times its longest sleep. */
export const STALE_MS = 5_000
/** Commands that the oldest queued age is sampled from. */
export const AGE_SAMPLE = 100

const isCapacity = (value: unknown) => typeof value === 'function' || whole().safeParse(value).success

/** What both dispatchers take. Bounds are whole numbers from 1; in a shared store they are those of one shard or node. */
export const DispatcherOptions = defineOptions({
  /** Name of this node in the records, unique in a deployment. @default 'local', over a shared store random */
  nodeId: text().optional(),
  /** Who is current. Without it the instance that attached last is. */
  connections: having<Pick<ConnectionRegistry, 'currentInstance'>>('currentInstance').optional(),
  /** Patience for `deliver`, and from there for the acknowledgement. @default 5000 */
  ackTimeoutMs: timer(5_000),
  /** Attempts of a command that names none. @default 5 */
  maxAttempts: count(5),
  /** Time to the terminal state of a command that names none, at most 24 h. @default 30000 */
  deadlineMs: duration(30_000, DEADLINE_MAX_MS),
  /** Most commands of one scope that are not terminal. @default 1000 */
  capacity: custom<number | ((scope_id: string) => number)>('an integer from 1, or a function', isCapacity).default(
    1_000,
  ),
  /** Most commands in all that are not terminal. @default 100000 */
  // About 1 KiB each without payloads, 1.5 KiB in a shared store: a process of 0.5 GB stands it.
  maxTracked: count(100_000),
  /** Most of them of one user, whatever their scopes. @default 10000 */
  maxTrackedPerUser: count(10_000),
  /** Most clients that wait at this node at once. @default 100000 */
  maxWaiters: count(100_000),
  /** Most of them of one user. @default 10000 */
  maxWaitersPerUser: count(10_000),
  /**
   * Maximum number of calls of `deliver` that may be open for one client at once; the client's other commands wait. A call
   * that timed out does not count. With 1, each command waits for the one before it. @default 8
   */
  maxDeliveriesPerClient: count(8),
  /** How long a terminal record answers. @default 3600000 */
  retentionMs: duration(3_600_000),
  /** Most terminal records kept, and as many of refused admissions beside them. @default 50000 */
  // 14 commands a second for the whole hour.
  maxRetained: count(50_000),
  /** What the host says of this node in the list of nodes: JSON of at most 4 KiB. */
  metadata: object<JsonObject>().optional(),
})
export interface DispatcherOptions extends Input<typeof DispatcherOptions> {}

/** The bounds of a dispatcher, each as `given` sets it, and the capacity of a scope. */
export function readDeliveryBounds(given: DispatcherOptions) {
  const { capacity, ...bounds } = readParts(DispatcherOptions, given)
  const capacityOf =
    typeof capacity === 'function' ? (scope_id: string) => toCapacity(capacity(scope_id)) : () => capacity
  return { ...bounds, capacityOf }
}
