/** The attempts that a node has in hand, and the signals that live until their commands end. */

import type { Command, Deliver } from '../../contract/delivery-dispatch.js'
import { clientKey, commandKey, toTimestamp } from '../../contract/ids.js'
import { deepFreeze } from '../../contract/json.js'
import { Refusal } from '../../refusal.js'
import type { ClaimReply } from './script-claims.js'
import type { Held } from './waiters.js'

/** A command as it was claimed; instants are epoch ms on the store's clock. */
export interface Claimed {
  user_id: string
  client_id: string
  command_id: string
  action: string
  payload: unknown
  attempt: number
  deadlineAt: number
  /** When the patience for this attempt ends. */
  untilMs: number
}

/** What a claim for `client` answered. */
export function toClaimed(
  { user_id, client_id }: { user_id: string; client_id: string },
  { behind: _behind, payload, ...claimed }: Exclude<ClaimReply, string>,
): Claimed {
  return { user_id, client_id, ...claimed, payload: JSON.parse(payload) }
}

interface InFlight extends Held {
  client: string
  untilMs: number
}

/** Who is told of a hand-over. */
interface HandOver {
  /** It is about to begin. */
  held(held: Held): void
  /** Nobody waits for it any more: it has ended, or the attempt is over for another reason. */
  over(held: Held): void
  /** How it ended, however late, and whether the command is known to have ended before. */
  concluded(outcome: 'handed_over' | 'rejected', isLate: boolean): void
}

/** The signals of commands, by their refs, until the commands end. */
function createSignals() {
  const signals = new Map<string, { controller: AbortController; deadlineAt: number }>()

  return {
    /** Whether the command of `ref` has no known end. */
    has: (ref: string) => signals.has(ref),

    /** Returns the signal of a command, which all its attempts share. */
    get(ref: string, deadlineAt: number): AbortSignal {
      const known = signals.get(ref) ?? { controller: new AbortController(), deadlineAt }
      signals.set(ref, known)
      return known.controller.signal
    },

    /** Forgets the signal of a command that has ended in `state`, and aborts it unless the client settled the command. */
    end(state: string, ref: string) {
      const known = signals.get(ref)
      signals.delete(ref)
      if (state === 'expired') known?.controller.abort(new Refusal('timeout', 'the deadline of the command has passed'))
      if (state === 'cancelled') known?.controller.abort(new Refusal('cancelled'))
    },

    /** Returns at most `most` refs of users that `isOf` accepts, those first that were not returned for longest. */
    next(most: number, isOf: (user_id: string) => boolean): string[] {
      const next: string[] = []
      for (const ref of signals.keys()) {
        if (isOf(ref.slice(0, ref.indexOf('\n')))) next.push(ref)
        if (next.length === most) break
      }
      for (const ref of next) {
        const known = signals.get(ref)
        signals.delete(ref)
        if (known) signals.set(ref, known)
      }
      return next
    },

    /** Returns the refs of commands whose deadline has passed. */
    overdue: (now: number): string[] =>
      [...signals].filter(([, { deadlineAt }]) => deadlineAt <= now).map(([ref]) => ref),
  }
}

export type DeliveryAttempts = ReturnType<typeof createDeliveryAttempts>

/** @param onChange Told when the number of attempts in hand has changed. */
export function createDeliveryAttempts(onChange: () => void) {
  const inFlight = new Set<InFlight>()
  const byRef = new Map<string, Set<InFlight>>()
  /** By the clients that are being handed something, how much. */
  const byClient = new Map<string, number>()
  const signals = createSignals()

  function countOf(client: string, step: number) {
    const count = (byClient.get(client) ?? 0) + step
    if (count > 0) byClient.set(client, count)
    else byClient.delete(client)
  }

  /** Whether it was held until now. */
  function drop(held: InFlight): boolean {
    if (!inFlight.delete(held)) return false
    countOf(held.client, -1)
    const others = byRef.get(held.ref)
    others?.delete(held)
    if (others?.size === 0) byRef.delete(held.ref)
    onChange()
    return true
  }

  /** A command was acknowledged or has ended in `state`, wherever that was said. */
  function applyNotice(state: string, ref: string) {
    for (const held of [...(byRef.get(ref) ?? [])]) held.release()
    // Last, because listeners of the signal may call the dispatcher again.
    if (state !== 'acknowledged') signals.end(state, ref)
  }

  return {
    /** How many clients are being handed something. */
    get clients() {
      return byClient.size
    },

    /** Hands a command over. */
    handOver(claimed: Claimed, deliver: Deliver, { held: onHeld, over, concluded }: HandOver): void {
      const { deadlineAt, untilMs, ...rest } = claimed
      const ref = commandKey(claimed)
      const command = deepFreeze({ ...rest, deadline_at: toTimestamp(deadlineAt) }) as Command
      const signal = signals.get(ref, deadlineAt)
      const held: InFlight = {
        client: clientKey(claimed),
        ref,
        untilMs,
        release() {
          if (drop(held)) over(held)
        },
      }
      inFlight.add(held)
      countOf(held.client, 1)
      byRef.set(ref, (byRef.get(ref) ?? new Set()).add(held))
      onChange()
      onHeld(held)
      const finish = (outcome: 'handed_over' | 'rejected') => {
        concluded(outcome, !signals.has(ref))
        held.release()
      }
      const call = async () => deliver(command, { signal })
      call().then(
        () => finish('handed_over'),
        () => finish('rejected'),
      )
    },

    applyNotice,

    /** Commands whose end this node waits to hear of, those first that have not been named for longest. */
    toConfirm: signals.next,

    /** Ends waits whose patience is over, and signals whose command's deadline has passed without our being told. */
    pass(now: number) {
      for (const held of [...inFlight]) if (held.untilMs <= now) held.release()
      for (const ref of signals.overdue(now)) applyNotice('expired', ref)
    },
  }
}
