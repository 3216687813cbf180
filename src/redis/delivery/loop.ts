/** The loop of a node: reconciles every shard, calls again what failed, and says that the node is alive. */
import { createAlarm } from '../../async/timer.js'
import { HEARTBEAT_MS } from '../../contract/delivery-rules.js'
import { shardOf } from '../store/keys.js'
import { throwMostSevere } from '../store/script.js'
import type { Store } from '../store/store.js'
import type { DeliveryAttempts } from './attempts.js'
import type { Mailboxes } from './mailboxes.js'
import type { Outcomes } from './outcomes.js'
import type { DeliveryRun } from './run.js'
import { RECONCILE, TAKE } from './script-nodes.js'
import { LEASE_MS, type Waiters } from './waiters.js'
import { createWakeUps } from './wake-ups.js'

/** Commands of one pass over a shard: a few milliseconds in which the store serves nobody else. */
const PASS_MAX = 200
/** Commands in hand that one pass names to a shard. */
const COMMANDS_NAMED = 50
/** Passes that follow each other faster do not name again what the node holds. */
const CONFIRM_MS = 500
/** Shortest sleep: many commands that end one after the other share a pass. */
const SLEEP_MIN_MS = 10

const EMPTY_INVENTORY: { waiters: number; held: readonly string[] } = { waiters: 0, held: [] }

/** Times that one pass runs a sweep of a shard at most. */
const SWEEPS_MAX = 10

/**
 * Takes what another family has outlived out of a shard, so that silence alone ends what lives by being reported. Bounded
 * in what it does; answers whether there is more.
 */
export type Sweep = (shard: number) => Promise<boolean>

export interface DeliveryLoopOptions {
  store: Store
  incarnation: string
  delivery: DeliveryRun
  mailboxes: Mailboxes
  outcomes: Outcomes
  waiters: Waiters
  attempts: DeliveryAttempts
  sweeps: readonly Sweep[]
  /** A pass is over. */
  onPass: () => void
}

export type DeliveryLoop = ReturnType<typeof createDeliveryLoop>

export function createDeliveryLoop(options: DeliveryLoopOptions) {
  const { store, incarnation, delivery, mailboxes, outcomes, waiters, attempts, sweeps, onPass } = options
  let closed = false
  /** What a node that is closed leaves undone is no failure. */
  const report = (error: unknown) => {
    if (!closed) store.onError(error)
  }
  const wakeUps = createWakeUps(store, incarnation, (shard) => void take(shard), report)
  const taking = new Map<number, { again: boolean }>()
  /** The number of the last news heard of each shard: what is up to it, the store may forget. */
  const heard = new Map<number, string>()
  let sweptAt = Number.NEGATIVE_INFINITY
  /** When each shard was last told what this node holds. */
  const confirmedAt = new Map<number, number>()
  const alarm = createAlarm(() => void wake())
  let passedAt: number | null = null
  let shardCount = 1

  /** Fetches what waits for this node in a shard; wake-ups in the meantime lead to one more look. */
  async function take(shard: number) {
    const under = taking.get(shard)
    if (under) {
      under.again = true
      return
    }
    const state = { again: true }
    taking.set(shard, state)
    try {
      while (state.again && !closed) {
        state.again = false
        const { answer } = await delivery.run(TAKE, shard, { after: heard.get(shard) ?? '0' })
        heard.set(shard, answer.heard)
        state.again ||= answer.isMore
      }
    } catch (error) {
      // The next pass takes it.
      report(error)
    } finally {
      taking.delete(shard)
    }
  }

  /** Everything that is due now in a shard, and in how many ms the next is. */
  async function passShard(shard: number, always: boolean): Promise<{ now: number; nextIn: number }> {
    await outcomes.tellHandOvers(shard)
    let held = always || isConfirmationDue(shard) ? inventoryOf(shard) : EMPTY_INVENTORY
    while (true) {
      const pass = { max_commands: PASS_MAX, lease_ms: LEASE_MS, after: heard.get(shard) ?? '0' }
      const inventory = { waiters: held.waiters, held_json: JSON.stringify(held.held) }
      const { now, answer } = await delivery.run(RECONCILE, shard, { ...pass, ...inventory })
      heard.set(shard, answer.heard)
      if (held.held.length > 0) confirmedAt.set(shard, performance.now())
      held = EMPTY_INVENTORY
      if (answer.isLapsed) await mailboxes.renew(shard)
      if (!answer.isMore || closed) return { now, nextIn: answer.nextIn }
    }
  }

  const isConfirmationDue = (shard: number) =>
    performance.now() - (confirmedAt.get(shard) ?? Number.NEGATIVE_INFINITY) >= CONFIRM_MS

  /** As the pass over a shard is given it: how many waiters, who they are, and commands in hand. */
  function inventoryOf(shard: number): typeof EMPTY_INVENTORY {
    const named = waiters.toConfirm(shard)
    const commands = attempts.toConfirm(COMMANDS_NAMED, (user_id) => shardOf(user_id, shardCount) === shard)
    return { waiters: named.length, held: [...named.flat(), ...commands] }
  }

  /** What fails goes to `onError`, and is due again with the next pass: it must not keep commands waiting. */
  async function sweep(run: Sweep, shard: number) {
    try {
      for (let n = 0; n < SWEEPS_MAX && !closed; n++) if (!(await run(shard))) return
    } catch (error) {
      report(error)
    }
  }

  async function sweepAll(always: boolean) {
    if (!always && performance.now() - sweptAt < CONFIRM_MS) return
    sweptAt = performance.now()
    const shards = Array.from({ length: shardCount }, (_, shard) => shard)
    await Promise.all(shards.flatMap((shard) => sweeps.map((each) => sweep(each, shard))))
  }

  /** @param always names what the node holds, however short ago it did. */
  async function pass(always: boolean): Promise<number> {
    shardCount = await store.joinShards()
    if (!closed) wakeUps.listen(shardCount)
    const all = await Promise.allSettled(Array.from({ length: shardCount }, (_, shard) => passShard(shard, always)))
    const passes = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const now = Math.min(...passes.map((shard) => shard.now))
    if (passes.length > 0) attempts.pass(now)
    waiters.pass()
    mailboxes.pass()
    outcomes.pass()
    await sweepAll(always)
    // Last: a shard that is lost holds up nothing of the others.
    throwMostSevere(all)
    if (!closed) passedAt = now
    return Math.min(...passes.map(({ nextIn }) => nextIn))
  }

  function wakeWithin(delayMs: number) {
    if (!closed) alarm.advance(Math.min(HEARTBEAT_MS, Math.max(SLEEP_MIN_MS, delayMs)))
  }

  async function wake() {
    let nextIn = HEARTBEAT_MS
    try {
      nextIn = await pass(false)
    } catch (error) {
      report(error)
    }
    onPass()
    wakeWithin(nextIn)
  }

  return {
    start: () => wakeWithin(0),

    /** Brings the next pass forward when the loop would sleep longer than `delayMs`. */
    nudge: wakeWithin,

    async reconcile(): Promise<void> {
      await pass(true)
    },

    async close(): Promise<void> {
      closed = true
      passedAt = null
      alarm.clear()
      await wakeUps.close()
    },

    get isListening() {
      return !closed && wakeUps.isHeard(shardCount)
    },
    get passedAt() {
      return passedAt
    },
    get closed() {
      return closed
    },
  }
}
