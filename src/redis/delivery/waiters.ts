/** The connections that wait at this node: who they are, that the store knows of them, and that it knows no others. */

import { endWithin } from '../../async/ending.js'
import type { Deliver } from '../../contract/delivery-dispatch.js'
import { clientKey } from '../../contract/ids.js'
import { Refusal, wasNotRun } from '../../refusal.js'
import type { DeliveryRun } from './run.js'
import type { ClaimReply } from './script-claims.js'
import { ATTACH, DETACH, ORDER } from './script-nodes.js'

/** Longer than the loop's sleep by far, and as long as a node may be silent before it counts as stale. */
export const LEASE_MS = 5_000
/** Waiters that say something at once: well below what a store takes at a time. */
const BATCH = 100
/** Waiters that one pass names to a shard: about a millisecond of it. */
const NAMED = 250

/** A command that is being handed over, and how to wait no longer for that. */
export interface Held {
  readonly ref: string
  release(): void
}

/** A connection that waits. */
export interface LocalWaiter {
  readonly user_id: string
  readonly client_id: string
  readonly instance_id: string
  readonly token: string
  readonly shard: number
  /** Greater than that of every attach that was begun before. */
  readonly order: string
  readonly deliver: Deliver
  /** The number of the latest claim; one whose answer did not come is made again under its number. */
  claim: number
  isUnanswered: boolean
  /** The latest claim where it travels with another call, until the mailbox has looked at what it came to. */
  carried: Promise<ClaimReply | undefined> | null
  /** The claim that was unanswered when it left: the store gives what that took to another, whenever it is told. */
  returned: number | null
  isCalled: boolean
  isDraining: boolean
  /** Behind the command that was claimed last there were others. */
  isMore: boolean
  /** Whether a step is claiming: no other call may carry a claim of this waiter meanwhile. */
  isClaiming: boolean
  /** What is being handed over. */
  readonly held: Set<Held>
  /** Has its mailbox go on, if it can. */
  goOn(): void
}

interface WaitersOptions {
  delivery: DeliveryRun
  onChange: () => void
  onError: (error: unknown) => void
}

export type Waiters = ReturnType<typeof createWaiters>

export function createWaiters({ delivery, onChange, onError }: WaitersOptions) {
  /** In the order in which they were last named to the store. */
  const waiters = new Map<string, LocalWaiter>()
  const perUser = new Map<string, number>()
  /** Gone here, but the store could not be told yet. */
  const leaving = new Set<LocalWaiter>()
  const attaching = new Set<string>()

  const find = (client: { user_id: string; client_id: string }) => waiters.get(clientKey(client))
  const isWaiting = (waiter: LocalWaiter) => find(waiter) === waiter

  function countOf(user_id: string, step: number) {
    const count = (perUser.get(user_id) ?? 0) + step
    if (count > 0) perUser.set(user_id, count)
    else perUser.delete(user_id)
  }

  /** What a former waiter has in hand is left to its patience: nobody waits for it here. */
  function drop(waiter: LocalWaiter) {
    if (!isWaiting(waiter)) return
    waiters.delete(clientKey(waiter))
    countOf(waiter.user_id, -1)
    for (const held of [...waiter.held]) held.release()
    onChange()
  }

  /** Answers the instance that waits there instead, `''` for none, or `null` when this one waits. */
  async function runAttach(waiter: LocalWaiter): Promise<string | null> {
    const { user_id, client_id, token, instance_id, shard, order } = waiter
    const about = { user: user_id, client: client_id, token, instance: instance_id }
    return (await delivery.run(ATTACH, shard, { ...about, lease_ms: LEASE_MS, own_order: order })).answer
  }

  async function runDetach(waiter: LocalWaiter): Promise<void> {
    const { user_id, client_id, token, shard, order, claim, isUnanswered } = waiter
    if (isUnanswered) waiter.returned ??= claim
    try {
      const about = { user: user_id, client: client_id, token }
      await delivery.run(DETACH, shard, { ...about, own_order: order, unsure: waiter.returned ?? '' })
      leaving.delete(waiter)
    } catch (error) {
      leaving.add(waiter)
      onError(error)
    }
  }

  async function inBatches<T>(all: readonly T[], work: (one: T) => Promise<void>) {
    for (let i = 0; i < all.length; i += BATCH) await Promise.all(all.slice(i, i + BATCH).map(work))
  }

  return {
    get size() {
      return waiters.size
    },
    of: (user_id: string) => perUser.get(user_id) ?? 0,
    find,
    isWaiting,
    drop,

    async order(shard: number): Promise<string> {
      return (await delivery.run(ORDER, shard, {})).answer
    },

    /**
     * Waits at the mailbox in place of whoever did, and calls `onWaits`; not where a later one waits or has waited there.
     *
     * @throws Refusal `stale_instance` when that is another instance; `unavailable`, and then it does not wait.
     */
    async attach(waiter: LocalWaiter, onWaits: (waiter: LocalWaiter) => void): Promise<void> {
      attaching.add(waiter.token)
      try {
        const instead = await runAttach(waiter)
        if (instead !== null && instead !== '' && instead !== waiter.instance_id) throw new Refusal('stale_instance')
        const former = find(waiter)
        if (instead !== null || (former && Number(former.order) > Number(waiter.order))) return
        if (former) drop(former)
        waiters.set(clientKey(waiter), waiter)
        countOf(waiter.user_id, 1)
        onChange()
        onWaits(waiter)
      } catch (error) {
        // It may have come through: then the store is told that nobody is there.
        if (!(error instanceof Refusal && error.code === 'stale_instance') && !wasNotRun(error)) leaving.add(waiter)
        throw error
      } finally {
        attaching.delete(waiter.token)
      }
    },

    async leave(waiter: LocalWaiter): Promise<void> {
      drop(waiter)
      await runDetach(waiter)
    },

    /** Lost by the store, reaped while this node was silent, or replaced: unless a later one waits, it still does. */
    async reattach(waiter: LocalWaiter): Promise<boolean> {
      if (!isWaiting(waiter)) return false
      if ((await runAttach(waiter)) === null) return isWaiting(waiter)
      if (isWaiting(waiter)) delivery.count('other', 'waiter_replaced')
      drop(waiter)
      return false
    },

    /** The store holds `token` for a client: whoever is not here is detached there. */
    detachUnknown(user_id: string, client_id: string, token: string, shard: number) {
      if (find({ user_id, client_id })?.token === token || attaching.has(token)) return
      const about = { user: user_id, client: client_id, token, own_order: '', unsure: '' }
      delivery.run(DETACH, shard, about).catch(onError)
    },

    /** Those of a shard that have not been named for longest: user, client and token of each. */
    toConfirm(shard: number): string[][] {
      const next: LocalWaiter[] = []
      for (const waiter of waiters.values()) {
        if (waiter.shard === shard) next.push(waiter)
        if (next.length === NAMED) break
      }
      for (const waiter of next) {
        waiters.delete(clientKey(waiter))
        waiters.set(clientKey(waiter), waiter)
      }
      return next.map(({ user_id, client_id, token }) => [user_id, client_id, token])
    },

    /** Every waiter of a shard. */
    async each(shard: number, work: (waiter: LocalWaiter) => Promise<void>): Promise<void> {
      await inBatches(
        [...waiters.values()].filter((waiter) => waiter.shard === shard),
        work,
      )
    },

    /** Says again what the store could not be told. */
    pass() {
      for (const waiter of [...leaving].slice(0, BATCH)) void runDetach(waiter)
    },

    /** Nobody waits here any more, and the store is told so as far as it can be within `ms`. */
    async close(ms: number): Promise<void> {
      const all = [...waiters.values()]
      for (const waiter of all) {
        drop(waiter)
        leaving.add(waiter)
      }
      let isLate = false
      const detaching = inBatches(all, async (waiter) => {
        if (!isLate) await runDetach(waiter)
      })
      await endWithin([detaching], ms)
      isLate = true
    },

    /** Those who do not wait any more and of whom the store could not be told. */
    get undetached() {
      return leaving.size
    },
  }
}
