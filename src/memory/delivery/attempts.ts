/** Attempts to deliver a command: their outcome, the pause before the next one, and the end of the command. */

import type { Clock } from '../../internal/async/timer.js'
import type { RecoveryReason, TerminalState } from '../../internal/contract/delivery.js'
import type { Command } from '../../internal/contract/delivery-dispatch.js'
import { backoffMs } from '../../internal/contract/delivery-rules.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { deepFreeze } from '../../internal/contract/json.js'
import { Refusal } from '../../internal/refusal.js'
import { addAttempt, latestAttempt, type Mailbox, type TrackedCommand, type Waiter } from './command.js'
import type { DeliveryStore } from './commands.js'

/** Maximum number of commands per pass: one or two milliseconds, after which requests get their turn. */
export const PASS_MAX = 1_000

interface DeliveryAttemptsOptions {
  store: DeliveryStore
  clock: Clock
  nodeId: string
  ackTimeoutMs: number
  /** Called when there will be work in `delayMs`. */
  nudge: (delayMs: number) => void
  /** Called with a mailbox from which another command can be delivered now. */
  kick: (mailbox: Mailbox) => void
}

/** Aborts the signal of a command that has ended in `state`, unless its client ended it. */
function abortFor(state: TerminalState, controller: AbortController): void {
  if (state === 'expired') controller.abort(new Refusal('timeout', 'the deadline of the command has passed'))
  if (state === 'cancelled') controller.abort(new Refusal('cancelled'))
}

/** Returns the signal of a command. It is created when it is read, because it costs more than the rest of an attempt. */
function signalOf(command: TrackedCommand): AbortSignal {
  const controller = command.controller ?? new AbortController()
  if (command.terminal) abortFor(command.terminal.state, controller)
  else command.controller = controller
  return controller.signal
}

export type DeliveryAttempts = ReturnType<typeof createDeliveryAttempts>

export function createDeliveryAttempts(options: DeliveryAttemptsOptions) {
  const { store, clock, nodeId, ackTimeoutMs, nudge, kick } = options

  function wakeIn(delayMs: number, command: TrackedCommand, phase: 'attempted' | 'backoff') {
    store.move(command, phase, clock.steady() + delayMs)
    nudge(delayMs)
  }

  /** Ends a tracked command if its deadline has passed. Returns whether it had. */
  function expire(command: TrackedCommand): boolean {
    if (command.deadlineAt > clock.now()) return false
    end(command, 'expired', 'deadline_passed', command.deadlineAt)
    return true
  }

  /** Ends commands past their deadline, at most `PASS_MAX`. Returns how many. */
  function expireDue(): number {
    let ended = 0
    for (let next = store.deadlines.first(); next && ended < PASS_MAX && expire(next); next = store.deadlines.first())
      ended++
    return ended
  }

  function end(command: TrackedCommand, state: TerminalState, reason: string | null, at = clock.now()) {
    const mailbox = command.mailbox as Mailbox
    store.end(command, state, reason, at)
    const { controller } = command
    command.controller = null
    kick(mailbox)
    // Last, because listeners of the signal may call the dispatcher again.
    if (controller) abortFor(state, controller)
  }

  /** After a failed attempt: schedules another one after a pause, or ends the command. */
  function recover(command: TrackedCommand, reason: 'ack_timeout' | 'deliver_rejected' | 'deliver_timed_out') {
    if (command.attempts >= command.maxAttempts) return end(command, 'failed', 'attempts_exhausted')
    command.recoveries++
    command.recoveredAt = clock.now()
    command.recoveryReason = reason
    store.count('recovery', reason)
    wakeIn(backoffMs(command.attempts), command, 'backoff')
  }

  /** Handles the timeout of an attempt: `deliver` is still running, or there was no acknowledgement. */
  function giveUp(command: TrackedCommand) {
    const mailbox = command.mailbox as Mailbox
    const reason = latestAttempt(command)?.outcome === null ? 'deliver_timed_out' : 'ack_timeout'
    conclude(command, 'timed_out', reason)
    recover(command, reason)
    kick(mailbox)
  }

  function conclude(
    command: TrackedCommand,
    outcome: 'handed_over' | 'rejected' | 'timed_out',
    reason: RecoveryReason | null,
  ) {
    const at = clock.now()
    const attempt = latestAttempt(command)
    if (attempt) {
      attempt.outcome = outcome
      attempt.endedAt = at
      attempt.reason = reason
    }
    if (outcome === 'handed_over') {
      command.confirmed++
      command.handedOverAt ??= at
    }
    store.count('other', `attempt_${outcome}`)
  }

  /**
   * Handles the end of `deliver`. After the end of the command, after the timeout or after a later attempt it has no
   * effect.
   */
  function handOverEnded(command: TrackedCommand, attempt: number, outcome: 'handed_over' | 'rejected') {
    if (command.terminal || command.attempts !== attempt || latestAttempt(command)?.outcome !== null)
      return store.count('other', 'late_outcome')
    const mailbox = command.mailbox as Mailbox
    conclude(command, outcome, outcome === 'rejected' ? 'deliver_rejected' : null)
    if (command.phase === 'attempted') {
      if (outcome === 'handed_over') wakeIn(ackTimeoutMs, command, 'attempted')
      else recover(command, 'deliver_rejected')
    }
    kick(mailbox)
  }

  /** Delivers `command` to the connection that waits at its mailbox. */
  function handOver(mailbox: Mailbox, command: TrackedCommand, { deliver, instance_id }: Waiter) {
    const number = addAttempt(command, clock.now(), nodeId, instance_id)
    wakeIn(ackTimeoutMs, command, 'attempted')
    store.beginHandover(mailbox, command)
    const { user_id, client_id, command_id, action, payload, deadlineAt, trace } = command
    const deadline_at = toTimestamp(deadlineAt)
    const remaining_ms = Math.max(0, deadlineAt - clock.now())
    const key = { command_id, user_id, client_id }
    const handed: Command = { ...key, action, payload, attempt: number, deadline_at, remaining_ms }
    if (trace !== undefined) handed.trace = trace
    let signal: AbortSignal | undefined
    const options = {
      get signal() {
        signal ??= signalOf(command)
        return signal
      },
    }
    const call = async () => deliver(deepFreeze(handed), options)
    call().then(
      () => handOverEnded(command, number, 'handed_over'),
      () => handOverEnded(command, number, 'rejected'),
    )
  }

  return {
    handOver,
    end,
    expire,
    expireDue,
    giveUp,

    /** Schedules the next attempt in `delayMs` at the earliest. */
    pause: (command: TrackedCommand, delayMs: number) => wakeIn(delayMs, command, 'backoff'),

    /** Ends a pause: the command waits for its turn again. */
    ready(command: TrackedCommand) {
      store.move(command, 'ready')
      kick(command.mailbox as Mailbox)
    },
  }
}
