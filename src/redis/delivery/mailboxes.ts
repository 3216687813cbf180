/** The clients that are attached to this node (its waiters): delivers their commands, and keeps node and store in sync. */
import { endWithin } from '../../internal/async/deadline.js'
import { Refusal, wasNotRun } from '../../internal/refusal.js'
import type { Attempt } from './attempts.js'
import { createPump, type PumpOptions } from './pump.js'
import { mailboxOfRef } from './record.js'
import { BATCH, createWaiterCalls, itemsOf, type WaiterCalls } from './waiter-calls.js'
import { createWaiters, type LocalWaiter, type Waiters } from './waiters.js'

/** Number of waiters that one pass confirms with the store: a few milliseconds of its time. */
const CONFIRMED = 100

interface MailboxesOptions extends PumpOptions {
  onChange: () => void
}

export type Mailboxes = ReturnType<typeof createMailboxes>

/** Parses the attempt in a message of the store. */
function attemptOf([
  ,
  ref = '',
  delivery = '',
  attempt,
  deadline,
  order = '',
  action = '',
  trace = '',
  ...payload
]: readonly string[]): Attempt {
  return {
    ref,
    delivery,
    attempt: Number(attempt),
    deadlineAt: Number(deadline),
    order,
    action,
    trace,
    payload: payload.join('\t'),
  }
}

/** Attaches and detaches the waiters of this node, and takes the attempts that the store gives to them. */
function createAttachments(options: MailboxesOptions, waiters: Waiters, calls: WaiterCalls) {
  const { delivery, attempts, onChange } = options
  const { giveBack, detach } = calls
  /** Attaches under way, by shard and order, with the attempts that arrived before the reply. */
  const attaching = new Map<string, Attempt[]>()
  const deliveries = createPump(options, waiters, leave)

  /** Removes a waiter. Attempts that have not begun are returned to the store; running ones end with their timeout. */
  function drop(waiter: LocalWaiter) {
    if (!waiters.has(waiter)) return
    waiters.remove(waiter)
    const { queue } = waiter
    waiter.queue = []
    for (const held of queue) {
      if (held.phase !== 'queued') continue
      attempts.drop(held)
      void giveBack(held.ref, held.delivery, held.shard)
    }
    onChange()
  }

  async function leave(waiter: LocalWaiter): Promise<void> {
    drop(waiter)
    await detach(waiter)
  }

  /** Takes an attempt that the store gave to a waiter of this node. */
  function take(attempt: Attempt, shard: number) {
    const early = attaching.get(`${shard} ${attempt.order}`)
    if (early) {
      early.push(attempt)
      return
    }
    const waiter = waiters.find(mailboxOfRef(attempt.ref))
    if (waiter?.order !== attempt.order) {
      if (!attempts.knows(attempt.ref, Number(attempt.delivery))) void giveBack(attempt.ref, attempt.delivery, shard)
      return
    }
    const held = attempts.take(attempt, shard)
    if (!held) return
    waiter.queue.push(held)
    deliveries.pump(waiter)
  }

  async function fetch(ref: string, number: string, shard: number) {
    const { answer } = await delivery.run('fetch', shard, { ref, delivery: number })
    if (answer.startsWith('command\t')) take(attemptOf(answer.split('\t')), shard)
  }

  /**
   * Attaches a waiter to its mailbox and replaces the previous one. Does nothing if a later one is or was attached.
   *
   * @throws Refusal `stale_instance` if that is another instance; `unavailable`, and then it is not attached.
   */
  async function attach(waiter: LocalWaiter): Promise<void> {
    const { mailbox, instance_id, order, shard } = waiter
    const early: Attempt[] = []
    attaching.set(`${shard} ${order}`, early)
    let given = ''
    let waits = false
    try {
      const [kind, rest = ''] = await calls.attach(waiter)
      const former = waiters.find(mailbox)
      const isLate = kind === 'late' || (former && Number(former.order) > Number(order))
      if (kind === 'late' && rest !== '' && rest !== instance_id) throw new Refusal('stale_instance')
      given = kind === 'late' ? '' : rest
      if (!isLate) {
        if (former) drop(former)
        waiters.add(waiter)
        waits = true
        onChange()
      }
    } catch (error) {
      // The attach may have run in the store: detach it with the next pass.
      if (!(error instanceof Refusal && error.code === 'stale_instance') && !wasNotRun(error))
        calls.mayBeAttached(waiter)
      throw error
    } finally {
      attaching.delete(`${shard} ${order}`)
      for (const attempt of early) take(attempt, shard)
      for (const [ref, number] of itemsOf(given)) {
        if (attempts.knows(ref, Number(number))) continue
        if (waits) fetch(ref, number, shard).catch(() => waiters.doubt(waiter))
        else void giveBack(ref, number, shard)
      }
    }
  }

  return { deliveries, drop, leave, take, fetch, attach }
}

type Attachments = ReturnType<typeof createAttachments>

async function inBatches<T>(all: readonly T[], work: (one: T) => Promise<void>) {
  for (let i = 0; i < all.length; i += BATCH) await Promise.all(all.slice(i, i + BATCH).map(work))
}

/** Synchronises waiters with the store: whether they are attached, and which attempts they have. Both sides are corrected. */
function createSync(options: MailboxesOptions, waiters: Waiters, calls: WaiterCalls, attachments: Attachments) {
  const { delivery, attempts, onError } = options

  async function sync(waiter: LocalWaiter): Promise<void> {
    const { shard } = waiter
    waiters.trust(waiter)
    const mark = attempts.mark()
    try {
      const [kind, list = ''] = await calls.attach(waiter)
      if (!waiters.has(waiter)) return
      if (kind === 'late') {
        delivery.count('other', 'waiter_replaced')
        attachments.drop(waiter)
        return
      }
      const given = new Map(itemsOf(list))
      for (const held of [...waiter.queue, ...waiter.open])
        if (held.arrival <= mark && given.get(held.ref) !== held.delivery) {
          attempts.drop(held)
          calls.mayHaveEnded(held.ref, shard)
        }
      waiter.queue = waiter.queue.filter(({ phase }) => phase === 'queued')
      await Promise.all(
        [...given].map(async ([ref, number]) => {
          if (!attempts.knows(ref, Number(number))) await attachments.fetch(ref, number, shard)
        }),
      )
      attachments.deliveries.pump(waiter)
    } catch (error) {
      waiters.doubt(waiter)
      onError(error)
    }
  }

  return {
    syncAll: (some: readonly LocalWaiter[]) => inBatches(some, sync),

    /** Synchronises the waiters of some mailboxes, after a lost reply that may have given attempts to them. */
    unsure(mailboxes: readonly string[]) {
      for (const mailbox of mailboxes) {
        const waiter = waiters.find(mailbox)
        if (waiter) void sync(waiter)
      }
    },
  }
}

export function createMailboxes(options: MailboxesOptions) {
  const { delivery, attempts } = options
  const waiters = createWaiters()
  const calls = createWaiterCalls(options)
  const attachments = createAttachments(options, waiters, calls)
  const { deliveries, drop, leave, take, attach } = attachments
  const { syncAll, unsure } = createSync(options, waiters, calls, attachments)

  return {
    get size() {
      return waiters.size
    },
    /** Number of clients with a running `deliver`. */
    get clients() {
      return deliveries.clients
    },
    of: waiters.of,
    find: waiters.find,
    isWaiting: waiters.has,
    attach,
    leave,
    take,
    unsure,

    async order(shard: number): Promise<string> {
      return (await delivery.run('take_order', shard, {})).answer
    },

    /** Handles a message of the store about a mailbox of this node. */
    receive(message: string, shard: number) {
      const parts = message.split('\t')
      const [kind, one = '', two = '', three = ''] = parts
      if (kind === 'command') take(attemptOf(parts), shard)
      else if (kind === 'acknowledged') attempts.apply('acknowledged', one)
      else if (kind === 'ended') attempts.apply(one, two)
      else if (kind === 'replaced') {
        const waiter = waiters.find(one)
        if (waiter?.order === two) {
          delivery.count('other', 'waiter_replaced')
          drop(waiter)
        }
        calls.giveBackUnknown(three, shard)
      }
    },

    /** Notes that the reply to an acknowledgement or settlement was lost. The next pass reads the command. */
    mayHaveEnded: calls.mayHaveEnded,

    /** Synchronises all waiters of a shard. */
    syncShard: (shard: number) => syncAll(waiters.all().filter((one) => one.shard === shard)),

    /** Retries failed calls, and synchronises the waiters with the oldest confirmation. */
    async pass(): Promise<void> {
      calls.retry()
      deliveries.retry()
      await syncAll(waiters.toConfirm(CONFIRMED))
      await calls.lookUpAll()
    },

    /** Detaches all waiters, here at once and in the store for as many as succeed within `ms`. */
    async close(ms: number): Promise<void> {
      const all = waiters.all()
      for (const waiter of all) {
        drop(waiter)
        calls.mayBeAttached(waiter)
      }
      let isLate = false
      const detaching = inBatches(all, async (waiter) => {
        if (!isLate) await calls.detach(waiter)
      })
      await endWithin([detaching], ms)
      isLate = true
    },

    /** Number of waiters that are detached here, but still attached in the store. */
    get undetached() {
      return calls.undetached
    },
  }
}
