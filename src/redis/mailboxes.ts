/** The mailboxes that connections of this node wait at: who waits, and how commands are drained to them. */
import type { ConnectionRegistry } from '../contract/connections.js'
import type { Deliver } from '../contract/delivery.js'
import { backoffMs } from '../contract/delivery-rules.js'
import type { DeliveryAttempts } from './delivery-attempts.js'
import { clientRef, type DeliveryRun } from './delivery-run.js'
import { CLAIM, CONCLUDE } from './scripts/delivery.js'
import { ATTACH, DETACH } from './scripts/delivery-nodes.js'

/** Longer than the loop's sleep by far, and as long as a node may be silent before it counts as stale. */
export const LEASE_MS = 5_000
/** Waiters that renew themselves at once: well below the bound on unanswered commands. */
const RENEW_BATCH = 100
/** Steps of drains under way at once; the others wait for their turn. */
const STEPS_MAX = 200

/** A connection that waits. */
export interface LocalWaiter {
  readonly user_id: string
  readonly client_id: string
  readonly instance_id: string
  readonly token: string
  readonly shard: number
  readonly deliver: Deliver
  isCalled: boolean
  isDraining: boolean
  letGo: (() => void) | null
}

export interface MailboxesOptions {
  delivery: DeliveryRun
  attempts: DeliveryAttempts
  nodeId: string
  ackTimeoutMs: number
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  /** Told when something is to be done in `delayMs`. */
  nudge: (delayMs: number) => void
  onChange: () => void
  onError: (error: unknown) => void
}

export type Mailboxes = ReturnType<typeof createMailboxes>

export function createMailboxes(options: MailboxesOptions) {
  const { delivery, attempts, nodeId, ackTimeoutMs, connections, nudge, onChange, onError } = options
  const waiters = new Map<string, LocalWaiter>()
  /** Whose last step failed: the next pass calls them again. */
  const hungry = new Set<LocalWaiter>()
  /** Gone here, but the store could not be told yet. */
  const leaving = new Set<LocalWaiter>()
  const turns: (() => void)[] = []
  let steps = 0

  const isHere = (waiter: LocalWaiter) => waiters.get(clientRef(waiter)) === waiter

  function enter(waiter: LocalWaiter) {
    const former = waiters.get(clientRef(waiter))
    if (former) drop(former)
    waiters.set(clientRef(waiter), waiter)
    onChange()
  }

  /** What a former waiter has in hand is left to its patience: nobody waits for it here. */
  function drop(waiter: LocalWaiter) {
    if (!isHere(waiter)) return
    waiters.delete(clientRef(waiter))
    hungry.delete(waiter)
    waiter.letGo?.()
    onChange()
  }

  async function sayAttached(waiter: LocalWaiter, again: '' | 'again'): Promise<boolean> {
    const { user_id, client_id, token, instance_id, shard } = waiter
    const { answer } = await delivery.run(ATTACH, shard, user_id, client_id, token, instance_id, LEASE_MS, again)
    return answer === 1
  }

  async function leave(waiter: LocalWaiter): Promise<void> {
    drop(waiter)
    try {
      await delivery.run(DETACH, waiter.shard, waiter.user_id, waiter.client_id, waiter.token)
      leaving.delete(waiter)
    } catch (error) {
      leaving.add(waiter)
      onError(error)
    }
  }

  /** Whether the waiter still speaks for its client. A fenced one is let go: its instance attaches again if it returns. */
  async function isCurrent(waiter: LocalWaiter): Promise<boolean> {
    if (!connections) return true
    let current: string | null
    try {
      current = await connections.currentInstance(waiter)
    } catch (error) {
      delivery.count('other', 'fence_unavailable')
      throw error
    }
    if (current === waiter.instance_id || !isHere(waiter)) return isHere(waiter)
    delivery.count('other', 'waiter_fenced')
    await leave(waiter)
    return false
  }

  /** One command further; whether there may be another. */
  async function step(waiter: LocalWaiter): Promise<boolean> {
    if (!(await isCurrent(waiter))) return false
    const { user_id, client_id, shard, token } = waiter
    const { now, answer } = await delivery.run(CLAIM, shard, user_id, client_id, token, nodeId)
    const [kind, command_id, action, payload, attempt, deadlineAt, behind] = answer as [string, ...string[]]
    if (kind === 'more') return true
    if (kind === 'empty') return false
    if (kind !== 'command') {
      // Reaped while this node was silent, or lost by the store: as long as nobody else waits, it still does.
      if (kind === 'missing' && isHere(waiter) && (await sayAttached(waiter, 'again'))) return isHere(waiter)
      drop(waiter)
      return false
    }
    const claimed = {
      user_id,
      client_id,
      command_id: command_id as string,
      action: action as string,
      payload: JSON.parse(payload as string) as unknown,
      attempt: Number(attempt),
      deadlineAt: Number(deadlineAt),
      untilMs: now + ackTimeoutMs,
    }
    nudge(ackTimeoutMs)
    steps--
    takeTurn()
    await attempts.handOver(
      claimed,
      waiter.deliver,
      (outcome, isLate) => {
        if (isLate) return delivery.count('other', 'late_outcome')
        delivery
          .run(CONCLUDE, shard, user_id, client_id, claimed.command_id, claimed.attempt, outcome)
          // Left open, the attempt ends with its patience.
          .catch(onError)
        nudge(outcome === 'handed_over' ? ackTimeoutMs : backoffMs(claimed.attempt))
      },
      (letGo) => {
        waiter.letGo = letGo
      },
    )
    waiter.letGo = null
    await turn()
    // Whatever has come since has called.
    return Number(behind) > 0
  }

  function takeTurn() {
    while (steps < STEPS_MAX && turns.length > 0) {
      steps++
      turns.shift()?.()
    }
  }

  /** Waits until fewer than the most steps are under way. A hand-over under way is none. */
  function turn(): Promise<void> {
    return new Promise((resolve) => {
      turns.push(resolve)
      takeTurn()
    })
  }

  async function drain(waiter: LocalWaiter): Promise<void> {
    waiter.isDraining = true
    await turn()
    try {
      while (waiter.isCalled && isHere(waiter)) {
        waiter.isCalled = false
        while (isHere(waiter) && (await step(waiter)));
      }
    } catch (error) {
      if (isHere(waiter)) hungry.add(waiter)
      onError(error)
    }
    steps--
    takeTurn()
    // In the same step as the last look at `isCalled`, or a call in between would be lost.
    waiter.isDraining = false
  }

  /** There is something in the mailbox, or may be. */
  function call(waiter: LocalWaiter) {
    waiter.isCalled = true
    if (!waiter.isDraining) void drain(waiter)
  }

  return {
    get size() {
      return waiters.size
    },
    find: (client: { user_id: string; client_id: string }) => waiters.get(clientRef(client)),
    leave,

    /** Waits at the mailbox in place of whoever did. */
    async attach(waiter: LocalWaiter): Promise<void> {
      await sayAttached(waiter, '')
      enter(waiter)
      call(waiter)
    },

    /** What the store or another node has to say to this one. */
    notice(notice: string) {
      const [kind, user_id, client_id, rest] = notice.split('\n') as [string, string, string, string]
      const waiter = waiters.get(clientRef({ user_id, client_id }))
      if (kind === 'call') {
        if (waiter) call(waiter)
      } else if (kind === 'replaced') {
        if (waiter?.token === rest) drop(waiter)
      } else attempts.told(kind, `${user_id}\n${client_id}\n${rest}`)
    },

    /** The node's lease in `shard` had run out: whoever waits there says so again, and looks for what it missed. */
    async renew(shard: number): Promise<void> {
      const all = [...waiters.values()].filter((waiter) => waiter.shard === shard)
      for (let i = 0; i < all.length; i += RENEW_BATCH)
        await Promise.all(
          all.slice(i, i + RENEW_BATCH).map(async (waiter) => {
            try {
              if (await sayAttached(waiter, 'again')) call(waiter)
              else drop(waiter)
            } catch (error) {
              // Its next step finds out whether it still waits.
              hungry.add(waiter)
              onError(error)
            }
          }),
        )
    },

    /** Tries again what failed before. */
    pass() {
      for (const waiter of [...leaving]) void leave(waiter)
      for (const waiter of [...hungry]) {
        hungry.delete(waiter)
        call(waiter)
      }
    },

    async close(): Promise<void> {
      const all = [...waiters.values()]
      for (let i = 0; i < all.length; i += RENEW_BATCH)
        await Promise.all(all.slice(i, i + RENEW_BATCH).map((waiter) => leave(waiter)))
    },
  }
}
