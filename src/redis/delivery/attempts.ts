/**
 * The delivery attempts that the store gave to this node, their timeouts and retry pauses, and the abort signals, which exist
 * until their commands end. All of it is in memory: if the node dies, the store recovers it after the lease of the node.
 */
import { createAlarm } from '../../internal/async/timer.js'
import { backoffMs } from '../../internal/contract/delivery-rules.js'
import { createSignals, deliverOptions } from './signals.js'

/** A delivery attempt as the store gave it. */
export interface Attempt {
  /** Reference of the command. */
  ref: string
  /** Number of the attempt, counting also those that were given back before they began. */
  delivery: string
  /** Number that the client receives: 1 for the first, without attempts that were given back before they began. */
  attempt: number
  /** Deadline of the command, in epoch ms. */
  deadlineAt: number
  /** Order of the waiter that it was given to. */
  order: string
  action: string
  /** Empty without one. */
  trace: string
  payload: string
}

/** `queued`: not begun. `open`: `deliver` is running. `handed`: it resolved. `pause`: waits for a retry. `over`: ended. */
type Phase = 'queued' | 'open' | 'handed' | 'pause' | 'over'

export interface Held extends Attempt {
  readonly shard: number
  /** Sequence number at this node: greater than that of each attempt that it took before. */
  readonly arrival: number
  phase: Phase
  /** When its timeout or pause ends, by the clock of this node. */
  untilMs: number
  /** When `deliver` resolved (`performance.now()`), or `null` before that. */
  handedAt: number | null
  /** Called when the attempt no longer waits for `deliver`. */
  onOver(): void
}

/** How long a begun attempt is remembered: longer than any reply that carries it again can be late. */
const REMEMBERED_MS = 15_000
/** A resolved `deliver` is reported with the next acknowledgement or settlement, or after this time. */
const REPORT_MS = 100
/** That time is at most this fraction (1/n) of the acknowledgement timeout. */
const REPORT_PART = 10

type Failure = 'ack_timeout' | 'deliver_timed_out' | 'rejected'

const nothing = () => {}

interface AttemptsOptions {
  /** A monotonic clock: that of this process, or an injected one. */
  clock: () => number
  ackTimeoutMs: number
  /** Reports the outcome of an attempt to the store. Failures are retried. Resolves to whether a retry pause follows. */
  conclude(held: Held, what: 'handed_over' | Failure, ago: number): Promise<boolean>
  /** Asks the store for the next attempt after a pause. */
  retry(held: Held): Promise<void>
  onChange: () => void
  onError: (error: unknown) => void
}

/** Creates an attempt that has not begun. Written out for speed: a literal with a spread costs several times as much. */
function heldOf(given: Attempt, shard: number, arrival: number): Held {
  const { ref, delivery, attempt, deadlineAt, order, action, trace, payload } = given
  return {
    ref,
    delivery,
    attempt,
    deadlineAt,
    order,
    action,
    trace,
    payload,
    shard,
    arrival,
    phase: 'queued',
    untilMs: 0,
    handedAt: null,
    onOver: nothing,
  }
}

/** The attempts at this node: the current one of each command, and which ones began lately. */
function createAttemptTable(clock: () => number) {
  const current = new Map<string, Held>()
  /** Number of the last attempt of each command, in two generations so that old entries are dropped. */
  let begun = new Map<string, number>()
  let begunBefore = new Map<string, number>()
  let turnedAt = clock()
  let arrivals = 0
  return {
    get: (ref: string) => current.get(ref),
    all: () => [...current.values()],

    /** Returns whether this node has, or has begun, this attempt or a later one of the command. */
    knows: (ref: string, delivery: number) =>
      Number(current.get(ref)?.delivery ?? 0) >= delivery ||
      Math.max(begun.get(ref) ?? 0, begunBefore.get(ref) ?? 0) >= delivery,

    /** Returns the number of the newest attempt. A sync that starts now covers attempts up to it, and none that arrive later. */
    mark: () => arrivals,

    add(attempt: Attempt, shard: number): Held {
      const held = heldOf(attempt, shard, ++arrivals)
      current.set(attempt.ref, held)
      return held
    },
    delete(held: Held) {
      if (current.get(held.ref) === held) current.delete(held.ref)
    },

    /** Remembers that an attempt has begun. */
    began(held: Held) {
      if (clock() - turnedAt > REMEMBERED_MS) {
        begunBefore = begun
        begun = new Map()
        turnedAt = clock()
      }
      begun.set(held.ref, Number(held.delivery))
    },
  }
}

/** Reports attempts whose `deliver` has resolved. */
function createReports({ ackTimeoutMs, conclude, onError }: AttemptsOptions) {
  const unreported = new Set<Held>()
  const reportMs = Math.min(REPORT_MS, ackTimeoutMs / REPORT_PART)
  const alarm = createAlarm(() => void reportAll())

  async function report(held: Held): Promise<void> {
    if (!unreported.delete(held) || held.handedAt === null) return
    try {
      await conclude(held, 'handed_over', Math.ceil(performance.now() - held.handedAt))
    } catch (error) {
      onError(error)
      // Without the report, the attempt ends with its acknowledgement timeout.
      if (held.phase === 'handed') unreported.add(held)
    }
  }

  async function reportAll() {
    await Promise.all([...unreported].map(report))
  }

  /** Reports the attempt soon, or at once. */
  function add(held: Held, isUrgent: boolean) {
    unreported.add(held)
    if (isUrgent) void report(held)
    else alarm.advance(reportMs)
  }

  return {
    report,
    reportAll,
    add,
    /** Takes an unreported attempt, to report it together with another call. Returns whether it is one. */
    take: (held: Held) => unreported.delete(held),
    /** Undoes `take` after that call failed, and reports the attempt by itself. */
    giveBack(held: Held) {
      if (held.handedAt !== null) add(held, true)
    },
    close() {
      alarm.clear()
      return reportAll()
    },
  }
}

/** Calls of the store about attempts. One that fails is retried by the next pass. */
function createRetriedCalls(onError: (error: unknown) => void, isClosed: () => boolean) {
  const failed = new Map<Held, () => Promise<void>>()

  async function run(held: Held, work: () => Promise<void>) {
    failed.delete(held)
    try {
      await work()
    } catch (error) {
      if (isClosed()) return
      if (held.phase !== 'over') failed.set(held, work)
      onError(error)
    }
  }

  return {
    run,
    retry: () => [...failed].map(([held, work]) => run(held, work)),
    stop: (held: Held) => failed.delete(held),
  }
}

/** The outcomes of attempts: ends of `deliver`, timeouts, and pauses before retries. Reports them, and retries failed calls. */
function createOutcomes(options: AttemptsOptions & { drop(held: Held): void }) {
  const { clock, ackTimeoutMs, conclude, retry, drop, onChange } = options
  /** Attempts with a running timeout, the earliest first, because the timeout is the same for all. */
  const timed = new Set<Held>()
  const paused = new Set<Held>()
  let closed = false
  // After close(), unfinished work is not an error.
  const onError = (error: unknown) => {
    if (!closed) options.onError(error)
  }
  const reports = createReports({ ...options, onError })
  const calls = createRetriedCalls(onError, () => closed)
  const alarm = createAlarm(() => void pass())

  /** Starts the timeout of an attempt. */
  function start(held: Held) {
    held.untilMs = clock() + ackTimeoutMs
    timed.delete(held)
    timed.add(held)
    alarm.advance(ackTimeoutMs)
  }

  function startPause(held: Held) {
    held.phase = 'pause'
    timed.delete(held)
    held.onOver()
    held.untilMs = clock() + backoffMs(held.attempt)
    paused.add(held)
    alarm.advance(held.untilMs - clock())
    onChange()
  }

  /** Reports a failed attempt. Retries after a pause, unless the store replies that no retry is due. */
  function fail(held: Held, what: Failure): Promise<void> {
    timed.delete(held)
    return calls.run(held, async () => {
      if (await conclude(held, what, 0)) startPause(held)
      else drop(held)
    })
  }

  /** Handles timeouts and pauses that have ended, and retries failed calls. Resolves after the store has replied. */
  async function pass(): Promise<void> {
    const now = clock()
    const work: Promise<unknown>[] = [reports.reportAll(), ...calls.retry()]
    for (const held of timed) {
      if (held.untilMs > now) {
        alarm.advance(held.untilMs - now)
        break
      }
      work.push(fail(held, held.phase === 'handed' ? 'ack_timeout' : 'deliver_timed_out'))
    }
    for (const held of [...paused]) {
      if (held.untilMs > now) {
        alarm.advance(held.untilMs - now)
        continue
      }
      paused.delete(held)
      work.push(
        calls.run(held, async () => {
          await retry(held)
          drop(held)
        }),
      )
    }
    await Promise.all(work)
  }

  return {
    reports,
    start,
    pass,

    /** Handles the end of `deliver` of a command that has not ended. `isUrgent`: the end is reported at once. */
    ended(held: Held, what: 'handed_over' | 'rejected', isUrgent: boolean) {
      if (held.phase !== 'open') void conclude(held, what, 0).catch(onError)
      else if (what === 'rejected') void fail(held, what)
      else {
        held.phase = 'handed'
        start(held)
        held.handedAt = performance.now()
        reports.add(held, closed || isUrgent)
      }
    },

    /** Stops the timeout, the pause and the retries of an attempt. */
    stop(held: Held) {
      timed.delete(held)
      paused.delete(held)
      calls.stop(held)
    },

    /** Stops the timers and sends the outstanding reports. Errors are ignored from now on. */
    async close(): Promise<void> {
      closed = true
      alarm.clear()
      await reports.close()
    },
  }
}

export type Attempts = ReturnType<typeof createAttempts>

export function createAttempts(options: AttemptsOptions) {
  const { clock, onChange } = options
  const table = createAttemptTable(clock)
  const signals = createSignals()
  const outcomes = createOutcomes({ ...options, drop })
  const { reports, pass, close } = outcomes

  /** Drops an attempt at this node, which may belong to another one by now. Its state in the store does not change. */
  function drop(held: Held) {
    if (held.phase === 'over') return
    held.phase = 'over'
    outcomes.stop(held)
    table.delete(held)
    held.onOver()
    // Tables of sets that V8 has replaced still refer to it, but not to the rest of the command.
    held.onOver = nothing
    onChange()
  }

  return {
    knows: table.knows,
    mark: table.mark,
    returnReport: reports.giveBack,
    drop,
    pass,
    close,

    /** Returns whether an attempt or a signal at this node waits for the end of the command. */
    has: (ref: string) => table.get(ref) !== undefined || signals.has(ref),

    /** Takes an attempt. Returns `undefined` if this node already had it or a later one. */
    take(attempt: Attempt, shard: number): Held | undefined {
      const { ref, delivery } = attempt
      if (table.knows(ref, Number(delivery))) return undefined
      const former = table.get(ref)
      if (former) drop(former)
      return table.add(attempt, shard)
    },

    /** Calls `deliver` and starts the timeout. `isFull`: the client has no free slot until this attempt is reported. */
    begin(
      held: Held,
      deliver: (options: { signal: AbortSignal }) => unknown,
      { isFull, onLate }: { isFull: boolean; onLate: () => void },
    ) {
      table.began(held)
      held.phase = 'open'
      outcomes.start(held)
      const { ref } = held
      const options = deliverOptions(signals.get(ref, held.deadlineAt))
      onChange()
      const over = (what: 'handed_over' | 'rejected') => {
        if (signals.has(ref)) outcomes.ended(held, what, isFull)
        else onLate()
        held.onOver()
        onChange()
      }
      const call = async () => {
        try {
          await deliver(options)
        } catch {
          return over('rejected')
        }
        over('handed_over')
      }
      void call()
    },

    /** Takes the unreported attempt of a command, to report it together with an acknowledgement or settlement. */
    takeReport(ref: string): Held | undefined {
      const held = table.get(ref)
      return held && reports.take(held) ? held : undefined
    },

    /** Applies a message of the store: the command was acknowledged, or ended in `state`. */
    apply(state: string, ref: string) {
      const held = table.get(ref)
      if (held) {
        void reports.report(held)
        drop(held)
      }
      // Last, because listeners of the signal may call the dispatcher again.
      if (state !== 'acknowledged') signals.end(state, ref)
    },

    /** Drops all attempts of a shard, because this node has a new incarnation there. */
    dropShard(shard: number) {
      for (const held of table.all()) if (held.shard === shard) drop(held)
    },

    /** Aborts signals whose deadline has passed, without waiting for a message. @param now The time of the store. */
    expire(now: number) {
      for (const ref of signals.overdue(now)) this.apply('expired', ref)
    },
  }
}
