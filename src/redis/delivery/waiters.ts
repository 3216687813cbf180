/** The clients that are attached to this node, by mailbox and by user. */
import type { Deliver } from '../../internal/contract/delivery-dispatch.js'
import type { Held } from './attempts.js'

/** A client that is attached to this node. */
export interface LocalWaiter {
  readonly user_id: string
  readonly client_id: string
  readonly instance_id: string
  readonly mailbox: string
  readonly shard: number
  /** Greater than the order of every earlier attach in the shard. Identifies the waiter. */
  readonly order: string
  readonly deliver: Deliver
  /** Attempts that the store gave to it and that have not begun. */
  queue: Held[]
  /** Attempts whose `deliver` is running. */
  readonly open: Set<Held>
  isPumping: boolean
}

export type Waiters = ReturnType<typeof createWaiters>

export function createWaiters() {
  /** By mailbox, in the order of their last confirmation. */
  const all = new Map<string, LocalWaiter>()
  const perUser = new Map<string, number>()
  /** Waiters to synchronise: it is unknown which attempts the store has given to them. */
  const doubtful = new Set<LocalWaiter>()
  const has = (waiter: LocalWaiter) => all.get(waiter.mailbox) === waiter

  function countOf(user_id: string, step: number) {
    const count = (perUser.get(user_id) ?? 0) + step
    if (count > 0) perUser.set(user_id, count)
    else perUser.delete(user_id)
  }

  return {
    get size() {
      return all.size
    },
    of: (user_id: string) => perUser.get(user_id) ?? 0,
    find: (mailbox: string) => all.get(mailbox),
    has,
    all: () => [...all.values()],
    add(waiter: LocalWaiter) {
      all.set(waiter.mailbox, waiter)
      countOf(waiter.user_id, 1)
    },
    remove(waiter: LocalWaiter) {
      all.delete(waiter.mailbox)
      countOf(waiter.user_id, -1)
      doubtful.delete(waiter)
    },
    /** Notes that it is unknown which attempts the store has given to a waiter, unless it was removed. */
    doubt: (waiter: LocalWaiter) => void (has(waiter) && doubtful.add(waiter)),
    trust: (waiter: LocalWaiter) => void doubtful.delete(waiter),
    /** Returns the waiters to confirm next: doubtful ones, then those with the oldest confirmation. Others come first next time. */
    toConfirm(most: number): LocalWaiter[] {
      const next = [...doubtful].slice(0, most)
      for (const waiter of all.values()) {
        if (next.length >= most) break
        if (!doubtful.has(waiter)) next.push(waiter)
      }
      for (const waiter of next) {
        all.delete(waiter.mailbox)
        all.set(waiter.mailbox, waiter)
      }
      return next
    },
  }
}
