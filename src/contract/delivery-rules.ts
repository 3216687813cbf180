/** What every dispatcher keeps to, whatever it stands on: who can be addressed, how long it waits, what it calls stale. */
import { Refusal } from '../refusal.js'
import { DEADLINE_MAX_MS, type DeliveryStatus } from './delivery.js'
import { checkSegment } from './ids.js'
import { defineBounds, resolveBounds, TIMER_MAX_MS } from './options.js'

/** @throws Refusal `invalid_identity` for ids that no command can have, because they are not one path segment. */
export function requireIdentity(ids: { client_id: string; command_id?: string }): void {
  const reason = checkSegment(ids.client_id) ?? checkSegment(ids.command_id ?? '')
  if (reason) throw new Refusal('invalid_identity', reason)
}

/** `status` as it is at `now`: past its deadline a command is over, whether or not anybody is left who brings it to its end. */
export function expiredAt(status: DeliveryStatus, now: number): DeliveryStatus {
  const { deadline_at } = status.admission
  if (status.terminal || deadline_at === null || Date.parse(deadline_at) > now) return status
  return { ...status, terminal: { state: 'expired', at: deadline_at, reason: 'deadline_passed' } }
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

/** What a dispatcher keeps and how long it waits unless it is told otherwise; in a shared store, of each shard or node. */
export const DELIVERY_BOUNDS = defineBounds({
  ackTimeoutMs: [5_000, TIMER_MAX_MS],
  maxAttempts: 5,
  deadlineMs: [30_000, DEADLINE_MAX_MS],
  capacity: 1_000,
  // About 1 KiB each without payloads, 1.5 KiB in a shared store: a process of 0.5 GB stands it.
  maxTracked: 100_000,
  maxTrackedPerUser: 10_000,
  maxWaiters: 100_000,
  maxWaitersPerUser: 10_000,
  retentionMs: 3_600_000,
  // 14 commands a second for the whole hour.
  maxRetained: 50_000,
})

/**
 * The bounds of a dispatcher, each as `given` sets it, and the capacity of a scope.
 *
 * @throws RangeError as `resolveBounds`.
 */
export function resolveDeliveryBounds(
  given: { capacity?: number | ((scope_id: string) => number) | undefined } & {
    readonly [name in keyof typeof DELIVERY_BOUNDS]?: unknown
  },
) {
  const { capacity } = given
  const numbers = typeof capacity === 'function' ? { ...given, capacity: undefined } : given
  const bounds = resolveBounds(numbers, DELIVERY_BOUNDS)
  return { ...bounds, capacityOf: typeof capacity === 'function' ? capacity : () => bounds.capacity }
}
