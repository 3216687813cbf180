/** The reconciliation loop: expires deadlines, times out attempts, starts retries, and deletes old records. */

import { type Clock, createAlarm, sleep } from '../../internal/async/timer.js'
import { HEARTBEAT_MS } from '../../internal/contract/delivery-rules.js'
import { type DeliveryAttempts, PASS_MAX } from './attempts.js'
import type { DeliveryStore } from './commands.js'

export interface DeliveryLoopOptions {
  store: DeliveryStore
  clock: Clock
  attempts: DeliveryAttempts
}

export type DeliveryLoop = ReturnType<typeof createDeliveryLoop>

export function createDeliveryLoop({ store, clock, attempts }: DeliveryLoopOptions) {
  const alarm = createAlarm(wake, clock.steady)
  let lastPass = { at: clock.now(), steady: clock.steady() }
  let closed = false

  /** Does due work, within limits. Returns whether some remains. */
  function pass(): boolean {
    const steady = clock.steady()
    let remaining = PASS_MAX - attempts.expireDue()
    for (
      let next = store.attempted.first();
      next && remaining > 0 && next.wakeAt <= steady;
      next = store.attempted.first()
    ) {
      attempts.giveUp(next)
      remaining--
    }
    for (
      let next = store.backoff.first();
      next && remaining > 0 && next.wakeAt <= steady;
      next = store.backoff.first()
    ) {
      attempts.ready(next)
      remaining--
    }
    const swept = [store.ended, store.rejected].every((retention) => retention.sweep())
    lastPass = { at: clock.now(), steady }
    return remaining === 0 || !swept
  }

  function wake() {
    if (closed) return
    pass()
    const steady = clock.steady()
    const dueIn = [
      (store.deadlines.first()?.deadlineAt ?? Number.POSITIVE_INFINITY) - clock.now(),
      (store.attempted.first()?.wakeAt ?? Number.POSITIVE_INFINITY) - steady,
      (store.backoff.first()?.wakeAt ?? Number.POSITIVE_INFINITY) - steady,
    ]
    alarm.advance(Math.max(1, Math.min(HEARTBEAT_MS, ...dueIn)))
  }

  return {
    start() {
      try {
        alarm.advance(HEARTBEAT_MS)
      } catch {
        // Workers do not allow timers outside a request: there the first command starts the loop.
      }
    },

    /** Brings the next pass forward if the loop would sleep longer than `delayMs`. */
    nudge(delayMs: number) {
      if (!closed) alarm.advance(Math.min(HEARTBEAT_MS, Math.max(1, delayMs)))
    },

    /** Does everything that is due now; yields between passes. */
    async reconcile() {
      while (pass()) await sleep(0)
    },

    close() {
      closed = true
      alarm.clear()
    },

    /** Time of the last pass: of the wall clock, for display, and of the steady clock. */
    get lastPass() {
      return lastPass
    },
    get closed() {
      return closed
    },
  }
}
