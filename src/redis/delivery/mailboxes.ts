/** The connections that wait at this node, what they are handed, and how the node and the store agree on both. */
import { endWithin } from '../../async/ending.js'
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { Command, Deliver } from '../../contract/delivery-dispatch.js'
import { deepFreeze } from '../../contract/json.js'
import { Refusal, wasNotRun } from '../../refusal.js'
import { timestampOf } from '../table/timestamp.js'
import type { Attempt, Hand, Held } from './hand.js'
import { keyOfRef, mailboxOfRef, readRecord } from './record.js'
import type { DeliveryRun } from './run.js'

/** Waiters that say something at once: well below what a store takes at a time. */
const BATCH = 100
/** Waiters of which a pass asks whether the store holds the same: a few milliseconds of it in all. */
const CONFIRMED = 100

/** A connection that waits. */
export interface LocalWaiter {
  readonly user_id: string
  readonly client_id: string
  readonly instance_id: string
  readonly mailbox: string
  readonly shard: number
  /** Greater than that of every attach that was begun before; names the waiter. */
  readonly order: string
  readonly deliver: Deliver
  /** Given by the store and not begun. */
  queue: Held[]
  /** `deliver` runs. */
  readonly open: Set<Held>
  isPumping: boolean
}

interface MailboxesOptions {
  delivery: DeliveryRun
  hand: Hand
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxDeliveriesPerClient: number
  /** Whether the lease of this node in a shard is certain to hold. */
  holdsLease: (shard: number) => boolean
  onChange: () => void
  onError: (error: unknown) => void
}

export type Mailboxes = ReturnType<typeof createMailboxes>

/** `reference delivery,...` */
function* itemsOf(text: string): Generator<[ref: string, delivery: string]> {
  for (const item of text === '' ? [] : text.split(',')) {
    const [ref = '', delivery = ''] = item.split(' ')
    yield [ref, delivery]
  }
}

/** The attempt in a message of the store. */
function attemptOf([
  ,
  ref = '',
  delivery = '',
  attempt,
  deadline,
  order = '',
  action = '',
  ...payload
]: readonly string[]): Attempt {
  return {
    ref,
    delivery,
    attempt: Number(attempt),
    deadlineAt: Number(deadline),
    order,
    action,
    payload: payload.join('\t'),
  }
}

export function createMailboxes(options: MailboxesOptions) {
  const { delivery, hand, connections, maxDeliveriesPerClient, holdsLease, onChange, onError } = options
  /** By mailbox, in the order in which they were last confirmed. */
  const waiters = new Map<string, LocalWaiter>()
  const perUser = new Map<string, number>()
  /** By shard and order: attaches under way, and what came for them before their answer. */
  const attaching = new Map<string, Attempt[]>()
  /** Gone here, but the store could not be told yet. */
  const leaving = new Set<LocalWaiter>()
  /** Of which it is not known what the store has given them. */
  const doubtful = new Set<LocalWaiter>()
  /** Commands in hand, by reference and with their shards, that may have ended or been acknowledged unheard. */
  const unheard = new Map<string, number>()
  /** What could not be given back yet. */
  const returning = new Set<() => Promise<void>>()
  /** Whose last step failed. */
  const failed = new Set<LocalWaiter>()
  let clients = 0

  const isWaiting = (waiter: LocalWaiter) => waiters.get(waiter.mailbox) === waiter

  function countOf(user_id: string, step: number) {
    const count = (perUser.get(user_id) ?? 0) + step
    if (count > 0) perUser.set(user_id, count)
    else perUser.delete(user_id)
  }

  /** Gives an attempt back: one that was not begun was none. */
  async function giveBack(ref: string, number: string, shard: number): Promise<void> {
    const again = () => giveBack(ref, number, shard)
    try {
      await delivery.run('B', shard, [ref, number, ''], mailboxOfRef(ref))
    } catch (error) {
      returning.add(again)
      onError(error)
    }
  }

  /** What was not begun goes back; what a former waiter has in hand is left to its timeout. */
  function drop(waiter: LocalWaiter) {
    if (!isWaiting(waiter)) return
    waiters.delete(waiter.mailbox)
    doubtful.delete(waiter)
    failed.delete(waiter)
    countOf(waiter.user_id, -1)
    const { queue } = waiter
    waiter.queue = []
    for (const held of queue) {
      if (held.phase !== 'queued') continue
      hand.drop(held)
      void giveBack(held.ref, held.delivery, held.shard)
    }
    onChange()
  }

  async function runDetach(waiter: LocalWaiter): Promise<void> {
    const { mailbox, order, shard } = waiter
    try {
      const { answer } = await delivery.run('X', shard, [mailbox, order])
      leaving.delete(waiter)
      for (const [ref, number] of itemsOf(answer))
        if (!hand.knows(ref, Number(number))) void giveBack(ref, number, shard)
    } catch (error) {
      leaving.add(waiter)
      onError(error)
    }
  }

  async function leave(waiter: LocalWaiter): Promise<void> {
    drop(waiter)
    await runDetach(waiter)
  }

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
    await leave(waiter)
    return false
  }

  function begin(waiter: LocalWaiter, held: Held) {
    const { ref, action, attempt, deadlineAt } = held
    const { user_id, client_id, command_id } = keyOfRef(ref)
    const payload = deepFreeze(JSON.parse(held.payload))
    const deadline_at = timestampOf(deadlineAt)
    const command: Command = Object.freeze({ command_id, user_id, client_id, action, payload, attempt, deadline_at })
    if (waiter.open.size === 0) clients++
    waiter.open.add(held)
    held.onOver = () => {
      if (!waiter.open.delete(held)) return
      if (waiter.open.size === 0) clients--
      pump(waiter)
    }
    hand.begin(held, (options) => waiter.deliver(command, options), {
      // The store may have more for the client, and sees no free place before it is told.
      isFull: waiter.open.size + waiter.queue.length >= maxDeliveriesPerClient,
      onLate: () => delivery.count('other', 'late_outcome'),
    })
  }

  function beginAll(waiter: LocalWaiter) {
    while (waiter.queue.length > 0 && waiter.open.size < maxDeliveriesPerClient && isWaiting(waiter)) {
      const held = waiter.queue.shift()
      if (held?.phase === 'queued') begin(waiter, held)
    }
  }

  async function pumpCurrent(waiter: LocalWaiter) {
    waiter.isPumping = true
    try {
      while (waiter.queue.length > 0 && waiter.open.size < maxDeliveriesPerClient && isWaiting(waiter)) {
        if (!(await isCurrent(waiter))) return
        // The registry may have taken its time.
        if (!holdsLease(waiter.shard)) {
          doubtful.add(waiter)
          return
        }
        beginAll(waiter)
      }
    } catch (error) {
      if (isWaiting(waiter)) failed.add(waiter)
      onError(error)
    } finally {
      waiter.isPumping = false
    }
  }

  /** Hands over what waits in the queue, as far as there is a free place. */
  function pump(waiter: LocalWaiter) {
    if (waiter.isPumping || waiter.queue.length === 0 || !isWaiting(waiter)) return
    if (waiter.open.size >= maxDeliveriesPerClient) return
    // Another node may have been given what this one holds.
    if (!holdsLease(waiter.shard)) doubtful.add(waiter)
    else if (connections) void pumpCurrent(waiter)
    else beginAll(waiter)
  }

  /** The store has given an attempt to a waiter of this node. */
  function take(attempt: Attempt, shard: number) {
    const early = attaching.get(`${shard} ${attempt.order}`)
    if (early) {
      early.push(attempt)
      return
    }
    const waiter = waiters.get(mailboxOfRef(attempt.ref))
    if (waiter?.order !== attempt.order) {
      if (!hand.knows(attempt.ref, Number(attempt.delivery))) void giveBack(attempt.ref, attempt.delivery, shard)
      return
    }
    const held = hand.take(attempt, shard)
    if (!held) return
    waiter.queue.push(held)
    pump(waiter)
  }

  async function fetch(ref: string, number: string, shard: number) {
    const { answer } = await delivery.run('D', shard, [ref, number])
    if (answer[0] === 'c') take(attemptOf(answer.split('\t')), shard)
  }

  /** Agrees with the store on who waits and what it was given; whatever it says that is not so is put right. */
  async function sync(waiter: LocalWaiter): Promise<void> {
    const { mailbox, instance_id, order, shard } = waiter
    doubtful.delete(waiter)
    const mark = hand.mark()
    try {
      const { answer } = await delivery.run('W', shard, [mailbox, instance_id, order, maxDeliveriesPerClient])
      if (!isWaiting(waiter)) return
      if (answer[0] === 'L') {
        delivery.count('other', 'waiter_replaced')
        drop(waiter)
        return
      }
      const given = new Map(itemsOf(answer.slice(1)))
      for (const held of [...waiter.queue, ...waiter.open])
        if (held.arrival <= mark && given.get(held.ref) !== held.delivery) {
          hand.drop(held)
          unheard.set(held.ref, shard)
        }
      waiter.queue = waiter.queue.filter(({ phase }) => phase === 'queued')
      await Promise.all(
        [...given].map(async ([ref, number]) => {
          if (!hand.knows(ref, Number(number))) await fetch(ref, number, shard)
        }),
      )
      pump(waiter)
    } catch (error) {
      if (isWaiting(waiter)) doubtful.add(waiter)
      onError(error)
    }
  }

  /** Asks what became of a command whose end, or acknowledgement, this node may not have been told of. */
  async function lookUp(ref: string, shard: number): Promise<void> {
    unheard.delete(ref)
    try {
      const { answer } = await delivery.run('K', shard, [ref])
      const status = readRecord(answer, keyOfRef(ref))?.status
      if (!status || status.terminal) hand.apply(status?.terminal?.state ?? 'forgotten', ref)
      else if (status.acknowledgement.state !== 'none') hand.apply('acknowledged', ref)
    } catch (error) {
      unheard.set(ref, shard)
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
    /** How many clients are being handed something. */
    get clients() {
      return clients
    },
    of: (user_id: string) => perUser.get(user_id) ?? 0,
    find: (mailbox: string) => waiters.get(mailbox),
    isWaiting,
    leave,
    take,

    async order(shard: number): Promise<string> {
      return (await delivery.run('O', shard, [])).answer
    },

    /**
     * Waits at the mailbox in place of whoever did; not where a later one waits or has waited there.
     *
     * @throws Refusal `stale_instance` when that is another instance; `unavailable`, and then it does not wait.
     */
    async attach(waiter: LocalWaiter): Promise<void> {
      const { mailbox, instance_id, order, shard } = waiter
      const early: Attempt[] = []
      attaching.set(`${shard} ${order}`, early)
      let given = ''
      let waits = false
      try {
        const { answer } = await delivery.run('W', shard, [mailbox, instance_id, order, maxDeliveriesPerClient])
        const former = waiters.get(mailbox)
        const isLate = answer[0] === 'L' || (former && Number(former.order) > Number(order))
        if (answer[0] === 'L' && answer.slice(1) !== '' && answer.slice(1) !== instance_id)
          throw new Refusal('stale_instance')
        given = answer[0] === 'W' ? answer.slice(1) : ''
        if (!isLate) {
          if (former) drop(former)
          waiters.set(mailbox, waiter)
          countOf(waiter.user_id, 1)
          waits = true
          onChange()
        }
      } catch (error) {
        // It may have come through: then the store is told that nobody is there.
        if (!(error instanceof Refusal && error.code === 'stale_instance') && !wasNotRun(error)) leaving.add(waiter)
        throw error
      } finally {
        attaching.delete(`${shard} ${order}`)
        for (const attempt of early) take(attempt, shard)
        for (const [ref, number] of itemsOf(given)) {
          if (hand.knows(ref, Number(number))) continue
          if (waits) fetch(ref, number, shard).catch(() => doubtful.add(waiter))
          else void giveBack(ref, number, shard)
        }
      }
    },

    /** A message of the store about a mailbox of this node. */
    receive(message: string, shard: number) {
      const parts = message.split('\t')
      const [kind, one = '', two = '', three = ''] = parts
      if (kind === 'c') take(attemptOf(parts), shard)
      else if (kind === 'k') hand.apply('acknowledged', one)
      else if (kind === 'e') hand.apply(one, two)
      else if (kind === 'r') {
        const waiter = waiters.get(one)
        if (waiter?.order === two) {
          delivery.count('other', 'waiter_replaced')
          drop(waiter)
        }
        for (const [ref, number] of itemsOf(three))
          if (!hand.knows(ref, Number(number))) void giveBack(ref, number, shard)
      }
    },

    /** The reply to a word about a command was lost. */
    mayHaveEnded(ref: string, shard: number) {
      unheard.set(ref, shard)
    },

    /** A reply was lost: what it gave is asked for. */
    unsure(mailboxes: readonly string[]) {
      for (const mailbox of mailboxes) {
        const waiter = waiters.get(mailbox)
        if (waiter) void sync(waiter)
      }
    },

    /** All waiters of a shard agree with the store once more. */
    syncShard: (shard: number) =>
      inBatches(
        [...waiters.values()].filter((one) => one.shard === shard),
        sync,
      ),

    /** Tries again what failed, and confirms the waiters that were not confirmed for longest. */
    async pass(): Promise<void> {
      for (const waiter of [...leaving].slice(0, BATCH)) void runDetach(waiter)
      for (const again of [...returning]) {
        returning.delete(again)
        void again()
      }
      for (const waiter of [...failed]) {
        failed.delete(waiter)
        pump(waiter)
      }
      const next = [...doubtful].slice(0, BATCH)
      for (const waiter of waiters.values()) {
        if (next.length >= CONFIRMED) break
        if (!doubtful.has(waiter)) next.push(waiter)
      }
      for (const waiter of next) {
        waiters.delete(waiter.mailbox)
        waiters.set(waiter.mailbox, waiter)
      }
      await inBatches(next, sync)
      await Promise.all([...unheard].slice(0, BATCH).map(([ref, shard]) => lookUp(ref, shard)))
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
