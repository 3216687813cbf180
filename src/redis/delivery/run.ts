/** Runs the steps of a node in a shard. Steps of the same turn of the event loop, and waiting ones, share a run: one call. */

import { createAlarm } from '../../internal/async/timer.js'
import type { CounterKind, CounterName } from '../../internal/contract/delivery.js'
import { emptyHistograms, measure, reportedTimes } from '../../internal/contract/delivery-rules.js'
import { encodePart, utf8Length } from '../../internal/contract/ids.js'
import { Refusal, wasNotRun } from '../../internal/refusal.js'
import { portOf } from '../store/client.js'
import { listOf, OtherShards, type StoreReply, toScriptError } from '../store/reply.js'
import { toUnavailable } from '../store/script.js'
import type { Store } from '../store/store.js'
import { runSteps } from './library.js'
import { encodeStep, type Given, type Step } from './steps.js'

/** Maximum number of steps in a run, which blocks the store for about a millisecond. */
const STEPS_MAX = 64
/** Maximum size of the steps of a run in bytes, mostly payloads. A larger step runs alone. */
const BYTES_MAX = 262_144
/**
 * Maximum number of runs under way in a shard; further steps wait. With more of them, the store would process and answer all at
 * once, so that store and node would take turns being idle.
 */
const UNDER_WAY_MAX = 2
/** Longest time that steps wait for a run under way, in ms. After that they are sent even if the store has not replied. */
const HELD_MS = 10
/** Length below which the size of a step is taken as its number of characters, not bytes, for speed. */
const SHORT = BYTES_MAX / STEPS_MAX / 4

export interface Answered {
  /** Time of the run by the clock of the store, in epoch ms. */
  now: number
  /** The result of the step, as its Lua function returns it. */
  answer: string
  /** Whether the run has added messages to the inbox of its own node. */
  hasOwnMessages: boolean
}

interface Call {
  text: string
  step: Step
  /** The mailbox of the step, for which the reply may have commands; '' for none. */
  mailbox: string
  apply: ((answered: Answered) => void) | undefined
  resolve(answered: Answered): void
  reject(error: unknown): void
}

interface Batch {
  calls: Call[]
  bytes: number
}

/** The runs of a node to one shard. */
interface Lane {
  underWay: number
  /** Batches that wait, the oldest first. All but the last are full. */
  waiting: Batch[]
  isScheduled: boolean
  alarm: ReturnType<typeof createAlarm>
}

/** @param send Sends a batch to a shard. Never rejects. */
function createLanes(send: (shard: number, calls: readonly Call[]) => Promise<void>) {
  const lanes = new Map<number, Lane>()

  function flush(shard: number, lane: Lane, isHeld = false) {
    const { waiting } = lane
    while (waiting.length > 0 && (isHeld || lane.underWay < UNDER_WAY_MAX)) {
      const { calls } = waiting.shift() as Batch
      lane.underWay++
      void send(shard, calls).then(() => {
        lane.underWay--
        flush(shard, lane)
      })
    }
    if (waiting.length > 0) lane.alarm.advance(HELD_MS)
    else lane.alarm.clear()
  }

  function laneOf(shard: number): Lane {
    const known = lanes.get(shard)
    if (known) return known
    const alarm = createAlarm(() => flush(shard, lane, true))
    const lane: Lane = { underWay: 0, waiting: [], isScheduled: false, alarm }
    lanes.set(shard, lane)
    return lane
  }

  /** Returns the batch that takes a step of `bytes`. It is sent after this turn of the event loop. */
  return function batchFor(shard: number, bytes: number): Batch {
    const lane = laneOf(shard)
    if (!lane.isScheduled) {
      lane.isScheduled = true
      queueMicrotask(() => {
        lane.isScheduled = false
        flush(shard, lane)
      })
    }
    const last = lane.waiting.at(-1)
    if (last && last.calls.length < STEPS_MAX && last.bytes + bytes <= BYTES_MAX) return last
    const batch: Batch = { calls: [], bytes: 0 }
    lane.waiting.push(batch)
    return batch
  }
}

export interface DeliveryRunOptions {
  store: Store
  nodeId: string
  retentionMs: number
  maxRetained: number
  maxTracked: number
  maxTrackedPerUser: number
  /** Returns the incarnation of this node in a shard. */
  incarnationIn: (shard: number) => string
  /** Called with the store's time of each reply, before `onCount` for its counts. */
  onTime: (now: number) => void
  /** Called when a counter increases. */
  onCount: (kind: CounterKind, name: string, times: number) => void
}

/** What receives the effects of runs, besides their callers. */
interface Receiver {
  /** Called for each message of a run to its own node. */
  receive(message: string, shard: number): void
  /** Called when it is unknown which attempts a run gave to the waiters of these mailboxes. */
  unsure(mailboxes: readonly string[]): void
}

type Counters = Record<CounterKind, Record<string, number>>

function createCounters(onCount: DeliveryRunOptions['onCount']) {
  const counters: Counters = { recovery: {}, outcome: {}, acknowledgement: {}, other: {} }
  function count<Kind extends CounterKind>(kind: Kind, name: CounterName<Kind>, times = 1) {
    const named: Record<string, number> = counters[kind]
    named[name] = (named[name] ?? 0) + times
    onCount(kind, name, times)
  }
  const latency = emptyHistograms()
  return {
    counters,
    latency,
    count,
    /** Adds the counts of a reply. Entries `took` have the times of commands that ended. */
    addAll(counted: readonly string[]) {
      for (const one of counted) {
        const [entry = '', times] = one.split('\t')
        const [kind = '', ...rest] = entry.split(' ')
        if (kind === 'took') measure(latency, reportedTimes(rest), Number(times))
        else count(kind as CounterKind, rest[0] as CounterName<CounterKind>, Number(times))
      }
    },
  }
}

const partsOf = (reply: StoreReply | undefined, separator: string): string[] =>
  typeof reply === 'string' && reply !== '' ? reply.split(separator) : []

const isFull = (error: unknown) => error instanceof Refusal && /^OOM\b/.test(error.detail ?? '')

export type DeliveryRun = ReturnType<typeof createDeliveryRun>

export function createDeliveryRun(options: DeliveryRunOptions) {
  const { store, incarnationIn, onTime } = options
  let receiver: Receiver = { receive() {}, unsure() {} }
  const { addAll, ...counts } = createCounters(options.onCount)
  const port = portOf(store.client)
  const { maxTracked, maxTrackedPerUser, retentionMs, maxRetained } = options
  const tail = [encodePart(options.nodeId), maxTracked, maxTrackedPerUser, retentionMs, maxRetained].join('\0')

  async function sendOnce(shard: number, calls: readonly Call[], freesMemory: boolean): Promise<StoreReply> {
    const prefix = store.key(shard)
    const batch = calls.map(({ text }) => text).join('')
    const write: Parameters<Store['fenced']>[1] = async (ends, command) => {
      const shards = await store.heldShards()
      const head = `${store.now ? store.now() : ''}\0${ends}\0${shards}\0${incarnationIn(shard)}\0${tail}\0`
      return runSteps(store.client, command, prefix, [head, batch], freesMemory)
    }
    try {
      return await store.fenced(shard, write)
    } catch (error) {
      if (!(error instanceof OtherShards)) throw error
      await store.confirmShards(shard)
      return store.fenced(shard, write)
    }
  }

  /** Releases reservations in other shards. If that fails, they expire at their deadlines. */
  const release = (all: readonly string[]) =>
    Promise.all(
      all.map((one) => {
        const [, shard, scope = '', ref = ''] = one.split('\t')
        return run('release', Number(shard), { scope, ref, dispatch: '' }).catch((error) => store.onError(error))
      }),
    )

  function receive(shard: number, calls: readonly Call[], reply: StoreReply) {
    const [time, answers, messages, counted, released, hasOwnMessages, failure] = listOf(reply)
    const now = Number(time)
    onTime(now)
    const ended = partsOf(released, '\x02')
    const texts = typeof answers === 'string' ? answers.split('\x01') : []
    for (const [i, call] of calls.entries()) {
      const answer = texts[i] ?? ''
      const own = ended.length === 0 ? ended : ended.filter((one) => one.startsWith(`${i + 1}\t`))
      if (answer[0] === '!') {
        if (call.mailbox !== '') receiver.unsure([call.mailbox])
        void release(own)
        call.reject(toUnavailable(store, toScriptError(answer.slice(1))))
        continue
      }
      const answered = { now, answer, hasOwnMessages: hasOwnMessages === 1 }
      call.apply?.(answered)
      if (own.length === 0) call.resolve(answered)
      else void release(own).then(() => call.resolve(answered))
    }
    // Another application has overwritten a key: the update of that key is lost, the rest of the run took effect.
    if (typeof failure === 'string' && failure !== '') store.onError(toScriptError(failure))
    for (const message of partsOf(messages, '\x02')) receiver.receive(message, shard)
    addAll(partsOf(counted, '\x02'))
  }

  async function send(shard: number, calls: readonly Call[], freesMemory = false): Promise<void> {
    const lost = port.lostLinks()
    const mailboxes = () => [...new Set(calls.map(({ mailbox }) => mailbox).filter((mailbox) => mailbox !== ''))]
    try {
      receive(shard, calls, await sendOnce(shard, calls, freesMemory))
      // After a reconnect, the Redis client may have resent the run and received only the reply to its second arrival.
      if (port.lostLinks() !== lost) receiver.unsure(mailboxes())
    } catch (error) {
      const rest = calls.filter(({ step }) => step !== 'admit' && step !== 'reserve')
      if (!freesMemory && isFull(error) && rest.length > 0) {
        // A store out of memory admits nothing, but runs the steps that free memory.
        for (const call of calls) if (!rest.includes(call)) call.reject(error)
        return send(shard, rest, true)
      }
      const refusal = error instanceof TypeError ? error : toUnavailable(store, error)
      if (!wasNotRun(refusal)) receiver.unsure(mailboxes())
      for (const { reject } of calls) reject(refusal)
    }
  }

  const batchFor = createLanes(send)

  /**
   * Runs a step in `shard`, together with other steps of this turn and those that wait.
   *
   * @param mailbox The mailbox that the step may give commands to.
   * @param apply Called with the result, before the messages of the run are handled.
   * @throws Refusal `unavailable`; then it is unknown whether the step has run.
   */
  function run<S extends Step>(
    step: S,
    shard: number,
    given: Given<S>,
    mailbox = '',
    apply?: (answered: Answered) => void,
  ): Promise<Answered> {
    const text = encodeStep(step, given)
    const bytes = text.length < SHORT ? text.length : utf8Length(text)
    const batch = batchFor(shard, bytes)
    batch.bytes += bytes
    return new Promise((resolve, reject) => {
      batch.calls.push({ text, step, mailbox, apply, resolve, reject })
    })
  }

  return {
    ...counts,
    run,
    /** Sets the receiver. Until then there is nothing to receive: no client is attached. */
    connect(to: Receiver) {
      receiver = to
    },
  }
}
