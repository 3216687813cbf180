/** How the mailboxes that connections of this node wait at are drained, and what the node is told about them. */
import { createSemaphore } from '../../async/semaphore.js'
import { unref } from '../../async/timer.js'
import type { ConnectionRegistry } from '../../contract/connections.js'
import { clientKey } from '../../contract/ids.js'
import { type Claimed, type DeliveryAttempts, toClaimed } from './attempts.js'
import type { Claims } from './claims.js'
import type { Outcomes } from './outcomes.js'
import type { DeliveryRun } from './run.js'
import type { LocalWaiter, Waiters } from './waiters.js'

/** Steps of drains under way at once; the others wait for their turn, at most one of each waiter. */
const STEPS_MAX = 200
/**
 * A mailbox waits this long for a hand-over before it claims the next command beside it. Most end sooner, and then the
 * claim travels with what the node says of them, which saves the store a run.
 */
const HANDOVER_WAIT_MS = 50

interface MailboxesOptions {
  delivery: DeliveryRun
  attempts: DeliveryAttempts
  waiters: Waiters
  claims: Claims
  outcomes: Outcomes
  ackTimeoutMs: number
  maxDeliveriesPerClient: number
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  /** Told when something is to be done in `delayMs`. */
  nudge: (delayMs: number) => void
  onError: (error: unknown) => void
}

export type Mailboxes = ReturnType<typeof createMailboxes>

export function createMailboxes(options: MailboxesOptions) {
  const { delivery, attempts, waiters, claims, outcomes, connections, nudge, onError } = options
  const { ackTimeoutMs, maxDeliveriesPerClient } = options
  const { isWaiting } = waiters
  /** Whose last step failed: the next pass calls them again. */
  const failed = new Set<LocalWaiter>()
  const steps = createSemaphore(STEPS_MAX, Number.POSITIVE_INFINITY, () => undefined)
  /** Waits until fewer than the most steps are under way. A hand-over under way does not count as one. */
  const turn = () => new Promise<void>((resolve) => steps.acquire(1, resolve))

  /** Whether the waiter still speaks for its client. A fenced one is released: its instance attaches again if it returns. */
  async function isCurrent(waiter: LocalWaiter): Promise<boolean> {
    if (!connections) return true
    let current: string | null
    try {
      current = await connections.currentInstance(waiter)
    } catch (error) {
      delivery.count('other', 'fence_unavailable')
      throw error
    }
    if (current === waiter.instance_id || !isWaiting(waiter)) return isWaiting(waiter)
    delivery.count('other', 'waiter_fenced')
    await waiters.leave(waiter)
    return false
  }

  /** What the next claim of the mailbox comes to; nothing where its waiter does not speak for the client any more. */
  async function nextClaim(waiter: LocalWaiter) {
    waiter.isClaiming = true
    try {
      const answer = await claims.takeCarried(waiter)
      if (answer !== undefined) return answer
      if (!isWaiting(waiter) || !(await isCurrent(waiter))) return undefined
      return await claims.claim(waiter)
    } finally {
      waiter.isClaiming = false
    }
  }

  /**
   * Hands over what was claimed. Resolves when the mailbox may go on: when that has ended or has taken a while, and fewer
   * commands than the most are being handed over.
   */
  function handOver(waiter: LocalWaiter, claimed: Claimed, begunAt: number): Promise<void> {
    return new Promise((resolve) => {
      let isAwaited = true
      waiter.goOn = () => {
        if (isAwaited || waiter.held.size >= maxDeliveriesPerClient) return
        waiter.goOn = () => {}
        resolve()
      }
      const endWait = () => {
        isAwaited = false
        waiter.goOn()
      }
      const timer = unref(setTimeout(endWait, HANDOVER_WAIT_MS))
      attempts.handOver(claimed, waiter.deliver, {
        held: (held) => waiter.held.add(held),
        over(held) {
          waiter.held.delete(held)
          clearTimeout(timer)
          if (isAwaited) endWait()
          else waiter.goOn()
        },
        concluded(outcome, isLate) {
          if (isLate) delivery.count('other', 'late_outcome')
          else outcomes.conclude(claimed, waiter.shard, outcome, begunAt)
        },
      })
    })
  }

  /** One command further; whether there may be another. */
  async function step(waiter: LocalWaiter): Promise<boolean> {
    const begunAt = performance.now()
    const answer = await nextClaim(waiter)
    if (answer === undefined) return false
    if (answer === 'more') return true
    if (answer === 'empty') return false
    // `replaced` too may be old by now: the orders decide who is to wait.
    if (answer === 'missing' || answer === 'replaced') return waiters.reattach(waiter)
    if (waiter.returned !== null) return false
    waiter.isMore = answer.behind > 0
    const claimed = toClaimed(waiter, answer)
    nudge(ackTimeoutMs)
    steps.release()
    await handOver(waiter, claimed, begunAt)
    await turn()
    // Whatever has come since has called.
    return waiter.isMore || waiter.carried !== null
  }

  async function drain(waiter: LocalWaiter): Promise<void> {
    waiter.isDraining = true
    await turn()
    try {
      // What was claimed for one that was replaced meanwhile is handed over all the same.
      while ((waiter.isCalled && isWaiting(waiter)) || waiter.carried) {
        waiter.isCalled = false
        while ((isWaiting(waiter) || waiter.carried) && (await step(waiter)));
      }
    } catch (error) {
      if (isWaiting(waiter)) failed.add(waiter)
      onError(error)
    }
    steps.release()
    // In the same step as the last look at `isCalled`, or a call in between would be lost.
    waiter.isDraining = false
  }

  /** There is something in the mailbox, or may be. */
  function call(waiter: LocalWaiter) {
    waiter.isCalled = true
    if (!waiter.isDraining) void drain(waiter)
  }

  /** Waits again, and looks for what was missed. */
  async function restore(waiter: LocalWaiter) {
    try {
      if (await waiters.reattach(waiter)) call(waiter)
    } catch (error) {
      // Its next step finds out whether it still waits.
      failed.add(waiter)
      onError(error)
    }
  }

  return {
    call,
    /** Whether a step could begin now. */
    hasRoom: () => !steps.isFull,

    /** What the store of `shard`, or another node, has to say to this one. */
    notice(notice: string, shard: number) {
      const [kind, user_id, client_id, rest] = notice.split('\n') as [string, string, string, string]
      const client = { user_id, client_id }
      const waiter = waiters.find(client)
      if (kind === 'call') {
        if (waiter) call(waiter)
      } else if (kind === 'missing' || kind === 'replaced') {
        if (waiter?.token === rest) void restore(waiter)
      } else if (kind === 'held') {
        waiters.detachUnknown(user_id, client_id, rest, shard)
      } else attempts.applyNotice(kind, `${clientKey(client)}\n${rest}`)
    },

    /** The node's lease in `shard` had run out: whoever waits there says so again, and looks for what it missed. */
    renew: (shard: number) => waiters.each(shard, restore),

    /** Tries again what failed before. */
    pass() {
      for (const waiter of [...failed]) {
        failed.delete(waiter)
        if (isWaiting(waiter)) call(waiter)
      }
    },
  }
}
