/** The calls of the store for the waiters of a node. What fails is tried again by the next pass. */
import type { Attempts } from './attempts.js'
import { keyOfRef, mailboxOfRef, readRecord } from './record.js'
import type { DeliveryRun } from './run.js'
import type { LocalWaiter } from './waiters.js'

/** Maximum number of waiters or commands with a call under way at the same time: well below the limit of unanswered calls. */
export const BATCH = 100

/** Parses a list of attempts, `reference delivery,...`. */
export function* itemsOf(text: string): Generator<[ref: string, delivery: string]> {
  for (const item of text === '' ? [] : text.split(',')) {
    const [ref = '', delivery = ''] = item.split(' ')
    yield [ref, delivery]
  }
}

interface WaiterCallsOptions {
  delivery: DeliveryRun
  attempts: Attempts
  maxDeliveriesPerClient: number
  onError: (error: unknown) => void
}

export type WaiterCalls = ReturnType<typeof createWaiterCalls>

export function createWaiterCalls({ delivery, attempts, maxDeliveriesPerClient, onError }: WaiterCallsOptions) {
  /** Waiters that are detached here, but still attached in the store, because the call failed. */
  const leaving = new Set<LocalWaiter>()
  /** Commands that may have been acknowledged or ended without a message to this node: their references and shards. */
  const unheard = new Map<string, number>()
  /** Attempts whose return to the store failed. */
  const returning = new Set<() => Promise<void>>()

  /** Returns an attempt that has not begun to the store, which does not count it. */
  async function giveBack(ref: string, number: string, shard: number): Promise<void> {
    const again = () => giveBack(ref, number, shard)
    try {
      await delivery.run('give_back', shard, { ref, delivery: number }, mailboxOfRef(ref))
    } catch (error) {
      returning.add(again)
      onError(error)
    }
  }

  /** Returns those attempts of the list that this node does not know. */
  function giveBackUnknown(list: string, shard: number) {
    for (const [ref, number] of itemsOf(list))
      if (!attempts.knows(ref, Number(number))) void giveBack(ref, number, shard)
  }

  async function detach(waiter: LocalWaiter): Promise<void> {
    const { mailbox, order, shard } = waiter
    try {
      const { answer } = await delivery.run('detach', shard, { mailbox, order })
      leaving.delete(waiter)
      giveBackUnknown(answer, shard)
    } catch (error) {
      leaving.add(waiter)
      onError(error)
    }
  }

  /** Reads a command that may have been acknowledged or ended without a message to this node. */
  async function lookUp(ref: string, shard: number): Promise<void> {
    unheard.delete(ref)
    try {
      const { answer, now } = await delivery.run('look_up', shard, { ref })
      const status = readRecord(answer, keyOfRef(ref), now)?.status
      if (!status || status.terminal) attempts.apply(status?.terminal?.state ?? 'forgotten', ref)
      else if (status.acknowledgement.state !== 'none') attempts.apply('acknowledged', ref)
    } catch (error) {
      unheard.set(ref, shard)
      onError(error)
    }
  }

  return {
    giveBack,
    giveBackUnknown,
    detach,

    /** Attaches a waiter in the store. Returns `attached` and the attempts of the waiter, or `late` and the instance that is attached instead. */
    async attach({ mailbox, instance_id, order, shard }: LocalWaiter): Promise<string[]> {
      const given = { mailbox, instance: instance_id, order, max_deliveries: maxDeliveriesPerClient }
      return (await delivery.run('attach', shard, given)).answer.split('\0')
    },

    /** Notes that a waiter may still be attached in the store, or a command may have ended: the next pass asks. */
    mayBeAttached: (waiter: LocalWaiter) => void leaving.add(waiter),
    mayHaveEnded: (ref: string, shard: number) => void unheard.set(ref, shard),

    /** Tries again to detach waiters and to return attempts. */
    retry() {
      for (const waiter of [...leaving].slice(0, BATCH)) void detach(waiter)
      const again = [...returning]
      returning.clear()
      for (const call of again) void call()
    },
    /** Reads the commands that may have ended. */
    lookUpAll: () => Promise.all([...unheard].slice(0, BATCH).map(([ref, shard]) => lookUp(ref, shard))),

    /** Number of waiters that are detached here, but still attached in the store. */
    get undetached() {
      return leaving.size
    },
  }
}
