/** The clients that are attached to this node (its waiters): delivers their commands, and keeps node and store in sync. */
import { endWithin } from '../../async/deadline.js'
import type { ConnectionRegistry } from '../../contract/connections.js'
import type { Command, Deliver } from '../../contract/delivery-dispatch.js'
import { deepFreeze } from '../../contract/json.js'
import { Refusal, wasNotRun } from '../../refusal.js'
import { timestampOf } from '../table/rows.js'
import type { Attempt, Hand, Held } from './hand.js'
import { keyOfRef, mailboxOfRef, readRecord } from './record.js'
import type { DeliveryRun } from './run.js'

/** Maximum number of waiters with a call under way at the same time: well below the limit of unanswered calls. */
const BATCH = 100
/** Number of waiters that one pass confirms with the store: a few milliseconds of its time. */
const CONFIRMED = 100

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

interface MailboxesOptions {
  delivery: DeliveryRun
  hand: Hand
  connections: Pick<ConnectionRegistry, 'currentInstance'> | undefined
  maxDeliveriesPerClient: number
  /** Returns whether the lease of this node in a shard certainly holds. */
  holdsLease: (shard: number) => boolean
  /** Returns the time of the store, which set the deadlines. */
  storeNow: () => number
  onChange: () => void
  onError: (error: unknown) => void
}

export type Mailboxes = ReturnType<typeof createMailboxes>

/** Parses a list of attempts, `reference delivery,...`. */
function* itemsOf(text: string): Generator<[ref: string, delivery: string]> {
  for (const item of text === '' ? [] : text.split(',')) {
    const [ref = '', delivery = ''] = item.split(' ')
    yield [ref, delivery]
  }
}

/** Parses the attempt in a message of the store. */
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
  const { delivery, hand, connections, maxDeliveriesPerClient, holdsLease, storeNow, onChange, onError } = options
  /** Waiters by mailbox, in the order of their last confirmation. */
  const waiters = new Map<string, LocalWaiter>()
  const perUser = new Map<string, number>()
  /** Attaches under way, by shard and order, with the attempts that arrived before the reply. */
  const attaching = new Map<string, Attempt[]>()
  /** Waiters that are detached here, but still attached in the store, because the call failed. */
  const leaving = new Set<LocalWaiter>()
  /** Waiters to synchronise: it is unknown which attempts the store has given to them. */
  const doubtful = new Set<LocalWaiter>()
  /** Commands that may have been acknowledged or ended without a message to this node: their references and shards. */
  const unheard = new Map<string, number>()
  /** Attempts whose return to the store failed, to be retried. */
  const returning = new Set<() => Promise<void>>()
  /** Waiters whose delivery failed because the registry was unavailable. */
  const failed = new Set<LocalWaiter>()
  /** Number of waiters with a running `deliver`. */
  let clients = 0

  const isWaiting = (waiter: LocalWaiter) => waiters.get(waiter.mailbox) === waiter

  function countOf(user_id: string, step: number) {
    const count = (perUser.get(user_id) ?? 0) + step
    if (count > 0) perUser.set(user_id, count)
    else perUser.delete(user_id)
  }

  /** Returns an attempt that has not begun to the store, which does not count it. */
  async function giveBack(ref: string, number: string, shard: number): Promise<void> {
    const again = () => giveBack(ref, number, shard)
    try {
      await delivery.run('B', shard, [ref, number], mailboxOfRef(ref))
    } catch (error) {
      returning.add(again)
      onError(error)
    }
  }

  /** Removes a waiter. Attempts that have not begun are returned to the store; running ones end with their timeout. */
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

  /** Returns whether the waiter is of the current instance of its client. Detaches it otherwise; the instance may attach again. */
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
    const remaining_ms = Math.max(0, Math.round(deadlineAt - storeNow()))
    const key = { command_id, user_id, client_id }
    const command: Command = Object.freeze({ ...key, action, payload, attempt, deadline_at, remaining_ms })
    if (waiter.open.size === 0) clients++
    waiter.open.add(held)
    held.onOver = () => {
      if (!waiter.open.delete(held)) return
      if (waiter.open.size === 0) clients--
      pump(waiter)
    }
    hand.begin(held, (options) => waiter.deliver(command, options), {
      // The store may have more commands for the client, and gives none before it knows of a free slot.
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
        // The lease may have expired during the call of the registry.
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

  /** Delivers the commands in the queue, as long as the client has a free slot. */
  function pump(waiter: LocalWaiter) {
    if (waiter.isPumping || waiter.queue.length === 0 || !isWaiting(waiter)) return
    if (waiter.open.size >= maxDeliveriesPerClient) return
    // Without a lease, the store may have given these commands to another node.
    if (!holdsLease(waiter.shard)) doubtful.add(waiter)
    else if (connections) void pumpCurrent(waiter)
    else beginAll(waiter)
  }

  /** Takes an attempt that the store gave to a waiter of this node. */
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

  /** Synchronises a waiter with the store: whether it is attached, and which attempts it has. Both sides are corrected. */
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

  /** Reads a command that may have been acknowledged or ended without a message to this node. */
  async function lookUp(ref: string, shard: number): Promise<void> {
    unheard.delete(ref)
    try {
      const { answer, now } = await delivery.run('K', shard, [ref])
      const status = readRecord(answer, keyOfRef(ref), now)?.status
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
    /** Number of clients with a running `deliver`. */
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
     * Attaches a waiter to its mailbox and replaces the previous one. Does nothing if a later one is or was attached.
     *
     * @throws Refusal `stale_instance` if that is another instance; `unavailable`, and then it is not attached.
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
        // The attach may have run in the store: detach it with the next pass.
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

    /** Handles a message of the store about a mailbox of this node. */
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

    /** Notes that the reply to an acknowledgement or settlement was lost. The next pass reads the command. */
    mayHaveEnded(ref: string, shard: number) {
      unheard.set(ref, shard)
    },

    /** Synchronises the waiters of some mailboxes, after a lost reply that may have given attempts to them. */
    unsure(mailboxes: readonly string[]) {
      for (const mailbox of mailboxes) {
        const waiter = waiters.get(mailbox)
        if (waiter) void sync(waiter)
      }
    },

    /** Synchronises all waiters of a shard. */
    syncShard: (shard: number) =>
      inBatches(
        [...waiters.values()].filter((one) => one.shard === shard),
        sync,
      ),

    /** Retries failed calls, and synchronises the waiters with the oldest confirmation. */
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

    /** Detaches all waiters, here at once and in the store for as many as succeed within `ms`. */
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

    /** Number of waiters that are detached here, but still attached in the store. */
    get undetached() {
      return leaving.size
    },
  }
}
