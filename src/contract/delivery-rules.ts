/** What every dispatcher keeps to, whatever it stands on: who can be addressed, how long it waits, what it calls stale. */
import { Refusal } from '../refusal.js'
import { DEADLINE_MAX_MS, type DeliveryStatus } from './delivery.js'
import { checkSegment } from './ids.js'
import { resolveBounds } from './options.js'

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

/** Patience for `deliver`, and from there for the acknowledgement. */
export const ACK_TIMEOUT_MS = 5_000
/** Attempts of a command that names none. */
export const ATTEMPTS_MAX = 5
/** Time to the terminal state of a command that names none. */
export const DEADLINE_MS = 30_000
/** Commands of one scope that are not terminal. */
export const SCOPE_CAPACITY = 1_000
/** How long a terminal record answers. */
export const RETENTION_MS = 3_600_000

/** Longest sleep of a reconciliation loop: its sign of life. */
export const HEARTBEAT_MS = 1_000
/** A loop without a pass for this long is not alive: five times its longest sleep. */
export const STALE_MS = 5_000
/** Commands that the oldest queued age is sampled from. */
export const AGE_SAMPLE = 100

/** What both dispatchers are given beside their own bounds. */
interface SharedBounds {
  deadlineMs?: number | undefined
  capacity?: number | ((scope_id: string) => number) | undefined
}

/**
 * The bounds of a dispatcher, each as `given` sets it, and the capacity of a scope.
 *
 * @throws RangeError as `resolveBounds`, and for a `deadlineMs` over the day that a command may name.
 */
export function resolveDispatcherBounds<N extends string>(
  given: SharedBounds & { readonly [name in NoInfer<N>]?: unknown },
  defaults: Readonly<Record<N | 'deadlineMs', number>>,
) {
  const { capacity = SCOPE_CAPACITY } = given
  const bounds = resolveBounds(given as Partial<Record<N | 'deadlineMs', number>>, defaults)
  if (bounds.deadlineMs > DEADLINE_MAX_MS)
    throw new RangeError(`deadlineMs must be a whole number from 1 to ${DEADLINE_MAX_MS}`)
  if (typeof capacity === 'function') return { ...bounds, capacityOf: capacity }
  const fixed = resolveBounds({ capacity }, { capacity })
  return { ...bounds, capacityOf: () => fixed.capacity }
}
