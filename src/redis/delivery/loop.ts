/** The loop of a node: passes over every shard, which renew its lease, read its messages and do the work that is due. */
import { createAlarm } from '../../internal/async/timer.js'
import { HEARTBEAT_MS } from '../../internal/contract/delivery-rules.js'
import { listen } from '../store/listener.js'
import { throwMostSevere } from '../store/script.js'
import type { Store } from '../store/store.js'
import type { Attempts } from './attempts.js'
import { LEASE_MS } from './library.js'
import type { Mailboxes } from './mailboxes.js'
import type { DeliveryRun } from './run.js'

// Receives the messages of each shard to this node. They are published on a channel, and stay in a stream until the node has
// read them. Each has the id of the one before, so that the node detects a lost message.

interface InboxesOptions {
  store: Store
  onMessage: (message: string, shard: number) => void
  /** Called when a message of a shard was missed. A pass reads it from the stream. */
  onGap: (shard: number) => void
  onError: (error: unknown) => void
}

const NOTHING_HEARD = '0-0'

/** Returns whether an entry id of a stream is after another. */
function isAfter(id: string, other: string): boolean {
  const [ms = 0, sequence = 0] = id.split('-').map(Number)
  const [otherMs = 0, otherSequence = 0] = other.split('-').map(Number)
  return ms > otherMs || (ms === otherMs && sequence > otherSequence)
}

function createInboxes({ store, onMessage, onGap, onError }: InboxesOptions) {
  /** By shard: the channel, and the id of the last message that was read. */
  const inboxes = new Map<number, { channel: string; heard: string }>()
  const listening = listen(store, (isUp) => {
    if (isUp) for (const shard of inboxes.keys()) onGap(shard)
  })

  function read(shard: number, id: string, message: string) {
    const inbox = inboxes.get(shard)
    if (!inbox || !isAfter(id, inbox.heard)) return
    inbox.heard = id
    for (const one of message.split('\x02')) onMessage(one, shard)
  }

  function hear(shard: number, wakeUp: string) {
    const [before = '', rest = ''] = wakeUp.split('\x03')
    const cut = rest.indexOf('\x02')
    const id = rest.slice(0, cut)
    const heard = inboxes.get(shard)?.heard ?? NOTHING_HEARD
    if (before === heard) read(shard, id, rest.slice(cut + 1))
    else if (isAfter(id, heard)) onGap(shard)
  }

  return {
    heard: (shard: number) => inboxes.get(shard)?.heard ?? NOTHING_HEARD,
    isHeard: (shards: number) =>
      inboxes.size >= shards && [...inboxes.values()].every(({ channel }) => listening.isHearing(channel)),

    /** Subscribes to the messages for `incarnation` in a shard, and unsubscribes from those for the former one. */
    open(shard: number, incarnation: string) {
      const former = inboxes.get(shard)
      if (former) listening.unsubscribe(former.channel).catch(onError)
      const channel = store.key(shard, 'delivery', 'wake', incarnation)
      inboxes.set(shard, { channel, heard: NOTHING_HEARD })
      listening
        .subscribe(shard, channel, (message) => {
          if (inboxes.get(shard)?.channel === channel) hear(shard, message)
        })
        .catch(onError)
    },

    /** Processes the stream entries that a pass has read. Each has its id and its messages. */
    readAll(shard: number, entries: readonly string[]) {
      for (const entry of entries) {
        const cut = entry.indexOf('\x02')
        read(shard, entry.slice(0, cut), entry.slice(cut + 1))
      }
    },

    close: () => listening.close(),
  }
}

/** Shortest time between two confirmations of the waiters, and between two sweeps if more is left to delete. */
const CONFIRM_MS = 500
/** Time between two sweeps if nothing was left to delete: readers leave out expired entries by themselves. */
const SWEEP_MS = 5_000
/** Shortest sleep between two passes. */
const SLEEP_MIN_MS = 100
/** A node is declared dead if its lease has expired and is not renewed for this long, by the clock of the observing node. */
const SUSPECT_MS = 2_000
/** Maximum number of rounds of one pass over a shard. */
const ROUNDS_MAX = 50
/** Maximum number of times that one pass runs a sweep of a shard. */
const SWEEPS_MAX = 10

/**
 * Deletes expired entries of another facility from a shard, so that they are removed even if their owner never writes again.
 * One call does a bounded amount of work and returns whether there is more.
 */
export type Sweep = (shard: number) => Promise<boolean>

/** The state of this node in one shard. */
interface ShardState {
  incarnation: string
  /** The previous incarnation, until the store has marked it as dead; '' if there is none. */
  former: string
  /** Whether a pass of this incarnation has succeeded. */
  isKnown: boolean
  /** Time until which the lease certainly holds, by the clock of this node. */
  holdsUntil: number
  /** Where the next pass continues to look for scopes without reservations. */
  scopeAfter: string
  /** Expired leases of other nodes, with the time at which this node first saw each. */
  suspects: Map<string, number>
  passing: Promise<void> | undefined
}

interface DeliveryLoopOptions {
  store: Store
  clock: () => number
  delivery: DeliveryRun
  attempts: Attempts
  mailboxes: Mailboxes
  sweeps: readonly Sweep[]
  stateOf: ShardStates
  /** Called after each pass. */
  onPass: () => void
}

export type DeliveryLoop = ReturnType<typeof createDeliveryLoop>

/** Creates the states of this node by shard. Each restart in a shard gets a new incarnation id. */
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
type ShardStates = ReturnType<typeof createShardStates>

interface ShardPassesOptions extends DeliveryLoopOptions {
  isClosed: () => boolean
  onError: (error: unknown) => void
}

/** The passes of a node over single shards. */
function createShardPasses(options: ShardPassesOptions) {
  const { store, clock, delivery, attempts, mailboxes, stateOf, isClosed, onError } = options
  const inboxes = createInboxes({ store, onMessage: mailboxes.receive, onGap: passSoon, onError })

  function suspectsOf(state: ShardState, seen: string): void {
    const now = clock()
    const entries = seen === '' ? [] : seen.slice(0, -1).split(',')
    state.suspects = new Map(entries.map((entry) => [entry, state.suspects.get(entry) ?? now]))
  }

  /** Restarts this node under a new incarnation, after it was declared dead or the store lost messages to it. */
  function restart(shard: number, state: ShardState) {
    state.former = state.incarnation
    state.incarnation = crypto.randomUUID()
    state.isKnown = false
    state.holdsUntil = Number.NEGATIVE_INFINITY
    attempts.dropShard(shard)
    inboxes.open(shard, state.incarnation)
  }

  /** Runs one round over a shard. Returns the store's time, the delay until the next one in ms, and whether more is due now. */
  async function round(shard: number, state: ShardState) {
    const sentAt = clock()
    const { incarnation, former, isKnown } = state
    const suspects = [...state.suspects].filter(([, since]) => sentAt - since >= SUSPECT_MS).map(([entry]) => entry)
    const { now, answer, hasOwnMessages } = await delivery.run('pass', shard, {
      heard: isKnown ? inboxes.heard(shard) : '',
      suspects: suspects.map((entry) => `${entry},`).join(''),
      scope_after: state.scopeAfter,
      former,
    })
    if (state.incarnation !== incarnation) return { now, nextIn: 0, isMore: true, isLapsed: false }
    if (answer === 'restart') {
      restart(shard, state)
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
    return { now, nextIn, isMore: more === '1' || hasOwnMessages, isLapsed: standing === 'lapsed' || !isKnown }
  }

  /** Does all work that is due in a shard. Returns the delay until the next is due, in ms. */
  async function passShard(shard: number): Promise<{ now: number; nextIn: number }> {
    const state = stateOf(shard)
    let isLapsed = false
    for (let rounds = 1; ; rounds++) {
      const answer = await round(shard, state)
      isLapsed ||= answer.isLapsed
      if (answer.isMore && rounds < ROUNDS_MAX && !isClosed()) continue
      if (isLapsed) await mailboxes.syncShard(shard)
      return answer
    }
  }

  /** Starts a pass over a shard, to read missed messages, unless one is running. */
  function passSoon(shard: number) {
    const state = stateOf(shard)
    if (isClosed() || state.passing) return
    state.passing = passShard(shard)
      .then(() => {}, onError)
      .finally(() => {
        state.passing = undefined
      })
  }

  return { inboxes, passShard }
}

export function createDeliveryLoop(options: DeliveryLoopOptions) {
  const { store, attempts, mailboxes, sweeps, onPass, stateOf } = options
  let closed = false
  /** Reports an error, unless the node is closed: then unfinished work is not an error. */
  const report = (error: unknown) => {
    if (!closed) store.onError(error)
  }
  const { inboxes, passShard } = createShardPasses({ ...options, onError: report, isClosed: () => closed })
  let confirmedAt = Number.NEGATIVE_INFINITY
  let sweepFrom = Number.NEGATIVE_INFINITY
  const alarm = createAlarm(() => void wake())
  const opened = new Set<number>()
  let passedAt: number | null = null
  let shardCount = 1

  /**
   * Runs a sweep of a shard. Errors go to `onError`: they must not delay commands.
   *
   * @returns whether all was deleted.
   */
  async function sweep(run: Sweep, shard: number): Promise<boolean> {
    try {
      for (let n = 0; n < SWEEPS_MAX && !closed; n++) if (!(await run(shard))) return true
    } catch (error) {
      report(error)
    }
    return false
  }

  async function sweepAll(always: boolean) {
    const now = performance.now()
    if (!always && now < sweepFrom) return
    sweepFrom = now + CONFIRM_MS
    const shards = Array.from({ length: shardCount }, (_, shard) => shard)
    const swept = await Promise.all(shards.flatMap((shard) => sweeps.map((each) => sweep(each, shard))))
    if (!swept.includes(false)) sweepFrom = now + SWEEP_MS
  }

  /** @param always Whether to confirm the waiters and run the sweeps even if that happened a moment ago. */
  async function pass(always: boolean): Promise<number> {
    shardCount = await store.joinShards()
    const shards = Array.from({ length: shardCount }, (_, shard) => shard)
    for (const shard of closed ? [] : shards) {
      if (opened.has(shard)) continue
      opened.add(shard)
      inboxes.open(shard, stateOf(shard).incarnation)
    }
    await attempts.pass()
    const all = await Promise.allSettled(shards.map(passShard))
    const passes = all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
    const now = Math.min(...passes.map((shard) => shard.now))
    if (passes.length > 0) attempts.expire(now)
    if (always || performance.now() - confirmedAt >= CONFIRM_MS) {
      confirmedAt = performance.now()
      await mailboxes.pass()
    }
    await sweepAll(always)
    // Throw last, so that a shard that is down does not delay the others.
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

    /** Runs the next pass within `delayMs`, if it is not due before. */
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
