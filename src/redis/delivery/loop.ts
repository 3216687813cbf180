/** The loop of a node: passes over every shard, which keep its lease, read its messages and do what is due. */
import { createAlarm } from '../../async/timer.js'
import { HEARTBEAT_MS } from '../../contract/delivery-rules.js'
import { throwMostSevere } from '../store/script.js'
import type { Store } from '../store/store.js'
import type { Hand } from './hand.js'
import type { Inboxes } from './inbox.js'
import { LEASE_MS } from './library.js'
import type { Mailboxes } from './mailboxes.js'
import type { DeliveryRun } from './run.js'

/** Passes and confirmations that follow each other faster are left out. */
const CONFIRM_MS = 500
/** Shortest sleep. */
const SLEEP_MIN_MS = 100
/** A lease that has lapsed and is not renewed for so long, by this node's own clock, is of a node that is dead. */
const SUSPECT_MS = 2_000
/** Times that one pass goes over a shard at most. */
const ROUNDS_MAX = 50
/** Times that one pass runs a sweep of a shard at most. */
const SWEEPS_MAX = 10

/**
 * Takes what another family has outlived out of a shard, so that silence alone ends what lives by being reported. Bounded
 * in what it does; answers whether there is more.
 */
export type Sweep = (shard: number) => Promise<boolean>

/** What this node is in one shard. */
interface ShardState {
  incarnation: string
  /** The incarnation before, until the store knows that it is over. */
  former: string
  isKnown: boolean
  /** Until when the lease certainly holds, by the clock of this node. */
  holdsUntil: number
  scopeAfter: string
  /** Lapsed leases of others, and since when this node has seen each. */
  suspects: Map<string, number>
  passing: Promise<void> | undefined
}

export interface DeliveryLoopOptions {
  store: Store
  clock: () => number
  delivery: DeliveryRun
  hand: Hand
  inboxes: Inboxes
  mailboxes: Mailboxes
  sweeps: readonly Sweep[]
  /** A pass is over. */
  onPass: () => void
}

export type DeliveryLoop = ReturnType<typeof createDeliveryLoop>

/** What this node is in each shard: an incarnation is one life of it there. */
export function createShardStates() {
  const states = new Map<number, ShardState>()
  return (shard: number): ShardState => {
    const known = states.get(shard)
    if (known) return known
    const state: ShardState = {
      incarnation: crypto.randomUUID(),
      former: '',
      isKnown: false,
      holdsUntil: Number.NEGATIVE_INFINITY,
      scopeAfter: '0',
      suspects: new Map(),
      passing: undefined,
    }
    states.set(shard, state)
    return state
  }
}
export type ShardStates = ReturnType<typeof createShardStates>

export function createDeliveryLoop(options: DeliveryLoopOptions & { stateOf: ShardStates }) {
  const { store, clock, delivery, hand, inboxes, mailboxes, sweeps, onPass, stateOf } = options
  let closed = false
  /** What a node that is closed leaves undone is no failure. */
  const report = (error: unknown) => {
    if (!closed) store.onError(error)
  }
  let confirmedAt = Number.NEGATIVE_INFINITY
  let sweptAt = Number.NEGATIVE_INFINITY
  const alarm = createAlarm(() => void wake())
  const opened = new Set<number>()
  let passedAt: number | null = null
  let shardCount = 1

  function suspectsOf(state: ShardState, seen: string): void {
    const now = clock()
    const entries = seen === '' ? [] : seen.slice(0, -1).split(',')
    state.suspects = new Map(entries.map((entry) => [entry, state.suspects.get(entry) ?? now]))
  }

  /** The store took this node for dead, or has lost what it told it: it is another incarnation from now on. */
  function beginAnew(shard: number, state: ShardState) {
    state.former = state.incarnation
    state.incarnation = crypto.randomUUID()
    state.isKnown = false
    state.holdsUntil = Number.NEGATIVE_INFINITY
    hand.dropShard(shard)
    inboxes.open(shard, state.incarnation)
  }

  /** One round over a shard: the instant, in how many ms the next is due, and whether there is more at once. */
  async function round(shard: number, state: ShardState) {
    const sentAt = clock()
    const { incarnation, former, isKnown } = state
    const suspects = [...state.suspects].filter(([, since]) => sentAt - since >= SUSPECT_MS).map(([entry]) => entry)
    const given = [
      isKnown ? inboxes.heard(shard) : '',
      suspects.map((entry) => `${entry},`).join(''),
      state.scopeAfter,
      former,
    ]
    const { now, answer, isTold } = await delivery.run('R', shard, given)
    if (state.incarnation !== incarnation) return { now, nextIn: 0, isMore: true, isLapsed: false }
    if (answer === 'anew') {
      beginAnew(shard, state)
      return { now, nextIn: 0, isMore: true, isLapsed: false }
    }
    const [standing, more, next, scopeAfter = '0', seen = '', ...entries] = answer.split('\x03')
    state.isKnown = true
    state.former = ''
    state.holdsUntil = sentAt + LEASE_MS
    state.scopeAfter = scopeAfter
    suspectsOf(state, seen)
    inboxes.readAll(
      shard,
      entries.filter((entry) => entry !== ''),
    )
    const nextIn = Number(next) < 0 ? HEARTBEAT_MS : Number(next)
    return { now, nextIn, isMore: more === '1' || isTold, isLapsed: standing === 'lapsed' || !isKnown }
  }

  /** Everything that is due now in a shard, and in how many ms the next is. */
  async function passShard(shard: number): Promise<{ now: number; nextIn: number }> {
    const state = stateOf(shard)
    let isLapsed = false
    for (let rounds = 1; ; rounds++) {
      const answer = await round(shard, state)
      isLapsed ||= answer.isLapsed
      if (answer.isMore && rounds < ROUNDS_MAX && !closed) continue
      if (isLapsed) await mailboxes.syncShard(shard)
      return answer
    }
  }

  /** Reads what was missed in a shard, once at a time. */
  function passSoon(shard: number) {
    const state = stateOf(shard)
    if (closed || state.passing) return
    state.passing = passShard(shard)
      .then(() => {}, report)
      .finally(() => {
        state.passing = undefined
      })
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

  /** @param always confirms what the node holds, however short ago it did. */
  async function pass(always: boolean): Promise<number> {
    shardCount = await store.joinShards()
    const shards = Array.from({ length: shardCount }, (_, shard) => shard)
    for (const shard of closed ? [] : shards) {
      if (opened.has(shard)) continue
      opened.add(shard)
      inboxes.open(shard, stateOf(shard).incarnation)
    }
    await hand.pass()
    const all = await Promise.allSettled(shards.map(passShard))
    const passes = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const now = Math.min(...passes.map((shard) => shard.now))
    if (passes.length > 0) hand.expire(now)
    if (always || performance.now() - confirmedAt >= CONFIRM_MS) {
      confirmedAt = performance.now()
      await mailboxes.pass()
    }
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
    start: () => alarm.advance(0),
    passSoon,

    /** Brings the next pass forward when the loop would sleep longer than `delayMs`. */
    nudge: wakeWithin,

    async reconcile(): Promise<void> {
      await pass(true)
    },

    async close(): Promise<void> {
      closed = true
      passedAt = null
      alarm.clear()
      await inboxes.close()
    },

    get isListening() {
      return !closed && inboxes.isHeard(shardCount)
    },
    get passedAt() {
      return passedAt
    },
    get closed() {
      return closed
    },
  }
}
