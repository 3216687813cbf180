/** How a mailbox is drained: one command after the other is handed to the waiter, and what becomes of the attempt. */

import type { Clock } from '../../async/clock.js'
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { Command } from '../../contract/delivery.js'
import { backoffMs } from '../../contract/delivery-rules.js'
import { toTimestamp } from '../../contract/ids.js'
import { deepFreeze } from '../../contract/json.js'
import { Refusal } from '../../refusal.js'
import type { Mailbox, TrackedCommand } from './command.js'
import type { DeliveryStore } from './commands.js'

/** Pause before a registry that could not say who is current is asked again. */
const FENCE_RETRY_MS = 1_000

export interface DeliveryDrainOptions {
  store: DeliveryStore
  clock: Clock
  nodeId: string
  ackTimeoutMs: number
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  /** Told when something is to be done in `delayMs`. */
  nudge: (delayMs: number) => void
}

export type DeliveryDrain = ReturnType<typeof createDeliveryDrain>

export function createDeliveryDrain({ store, clock, nodeId, ackTimeoutMs, connections, nudge }: DeliveryDrainOptions) {
  function wakeIn(delayMs: number, command: TrackedCommand, phase: 'attempted' | 'backoff') {
    store.move(command, phase, clock.steady() + delayMs)
    nudge(delayMs)
  }

  /** Ends a tracked command at its deadline; whether it was over. */
  function expire(command: TrackedCommand): boolean {
    if (command.deadlineAt > clock.now()) return false
    end(command, 'expired', 'deadline_passed', command.deadlineAt)
    return true
  }

  function end(
    command: TrackedCommand,
    state: 'resulted' | 'failed' | 'expired' | 'cancelled',
    reason: string | null,
    at = clock.now(),
  ) {
    const mailbox = command.mailbox as Mailbox
    store.end(command, state, reason, at)
    const { controller } = command
    command.controller = null
    kick(mailbox)
    // Last, because listeners of the signal may call the dispatcher again.
    if (state === 'expired') controller?.abort(new Refusal('timeout', 'the deadline of the command has passed'))
    if (state === 'cancelled') controller?.abort(new Refusal('cancelled'))
  }

  /** After an attempt that led to nothing: another one after a pause, or the end. */
  function recover(command: TrackedCommand, reason: 'ack_timeout' | 'deliver_rejected' | 'deliver_timed_out') {
    if (command.attempts >= command.maxAttempts) return end(command, 'failed', 'attempts_exhausted')
    command.recoveries++
    command.recoveredAt = clock.now()
    command.recoveryReason = reason
    store.count('recovery', reason)
    wakeIn(backoffMs(command.attempts), command, 'backoff')
  }

  /** The patience for an attempt is over: with `deliver` still out, or handed over and not acknowledged. */
  function giveUp(command: TrackedCommand) {
    const mailbox = command.mailbox as Mailbox
    const reason = command.lastOutcome === null ? 'deliver_timed_out' : 'ack_timeout'
    conclude(command, 'timed_out')
    recover(command, reason)
    kick(mailbox)
  }

  function conclude(command: TrackedCommand, outcome: 'handed_over' | 'rejected' | 'timed_out') {
    command.lastOutcome = outcome
    if (outcome === 'handed_over') command.confirmed++
    store.count('other', `attempt_${outcome}`)
  }

  /** `deliver` has settled. What comes after the end, after the patience or after a later attempt changes nothing. */
  function settled(command: TrackedCommand, attempt: number, outcome: 'handed_over' | 'rejected') {
    if (command.terminal || command.attempts !== attempt || command.lastOutcome !== null)
      return store.count('other', 'late_outcome')
    const mailbox = command.mailbox as Mailbox
    conclude(command, outcome)
    if (command.phase === 'attempted') {
      if (outcome === 'handed_over') wakeIn(ackTimeoutMs, command, 'attempted')
      else recover(command, 'deliver_rejected')
    }
    kick(mailbox)
  }

  function attempt(
    mailbox: Mailbox,
    command: TrackedCommand,
    { deliver, instance_id }: NonNullable<Mailbox['waiter']>,
  ) {
    const number = ++command.attempts
    command.lastAttemptAt = clock.now()
    command.lastNodeId = nodeId
    command.lastInstanceId = instance_id
    command.lastOutcome = null
    command.controller ??= new AbortController()
    wakeIn(ackTimeoutMs, command, 'attempted')
    store.setHandover(mailbox, command)
    const { user_id, client_id, command_id, action, payload, deadlineAt } = command
    const deadline_at = toTimestamp(deadlineAt)
    const handed: Command = { command_id, user_id, client_id, action, payload, attempt: number, deadline_at }
    const { signal } = command.controller
    const handOver = async () => deliver(deepFreeze(handed), { signal })
    handOver().then(
      () => settled(command, number, 'handed_over'),
      () => settled(command, number, 'rejected'),
    )
  }

  /** Whether the waiter still speaks for its client. A fenced one is let go: its instance attaches again if it returns. */
  async function isCurrent(mailbox: Mailbox, waiter: NonNullable<Mailbox['waiter']>): Promise<boolean> {
    if (!connections) return true
    let current: string | null
    try {
      current = await connections.currentInstance(mailbox)
    } catch {
      store.count('other', 'fence_unavailable')
      const command = mailbox.ready.first()
      if (command) wakeIn(FENCE_RETRY_MS, command, 'backoff')
      return false
    }
    if (mailbox.waiter !== waiter) return false
    if (current === waiter.instance_id) return true
    store.count('other', 'waiter_fenced')
    store.setWaiter(mailbox, null)
    return false
  }

  async function drain(mailbox: Mailbox) {
    while (mailbox.waiter && !mailbox.handover && mailbox.ready.size > 0) {
      const { waiter } = mailbox
      if (!(await isCurrent(mailbox, waiter))) continue
      const command = mailbox.ready.first()
      // Looked up after the wait: the command or the waiter may be gone by now.
      if (!command || mailbox.handover || mailbox.waiter !== waiter || expire(command)) continue
      attempt(mailbox, command, waiter)
    }
    // In the same step as the last look at the mailbox, or a kick in between would be lost.
    mailbox.draining = false
  }

  /** Sees to it that `mailbox` is drained, soon but never within the caller's own step. */
  function kick(mailbox: Mailbox) {
    if (mailbox.draining || !mailbox.waiter || mailbox.handover || mailbox.ready.size === 0) return
    mailbox.draining = true
    queueMicrotask(() => drain(mailbox))
  }

  return {
    kick,
    end,
    expire,
    giveUp,

    /** A pause is over: the command waits for its turn again. */
    ready(command: TrackedCommand) {
      store.move(command, 'ready')
      kick(command.mailbox as Mailbox)
    },
  }
}
