/**
 * The delivery attempts that the store gave to this node, their timeouts and retry pauses, and the abort signals, which exist
 * until their commands end. All of it is in memory: if the node dies, the store recovers it after the lease of the node.
 */
import { createAlarm } from '../../internal/async/timer.js'
import { backoffMs } from '../../internal/contract/delivery-rules.js'
import { Refusal } from '../../internal/refusal.js'

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

const nothing = () => {}

interface AttemptsOptions {
  /** A monotonic clock: that of this process, or an injected one. */
  clock: () => number
  ackTimeoutMs: number
  /** Reports the outcome of an attempt to the store. Failures are retried. Resolves to whether a retry pause follows. */
  conclude(
    held: Held,
    what: 'handed_over' | 'ack_timeout' | 'deliver_timed_out' | 'rejected',
    ago: number,
  ): Promise<boolean>
  /** Asks the store for the next attempt after a pause. */
  retry(held: Held): Promise<void>
  onChange: () => void
  onError: (error: unknown) => void
}

/** The signal of a command, created when first read, because it costs more than the rest of an attempt. */
interface CommandSignal {
  deadlineAt: number
  controller: AbortController | null
  /** Abort reason, set even if the signal was never read; `null` while the command is open. */
  reason: Refusal | null
}

function read(signal: CommandSignal): AbortSignal {
  signal.controller ??= new AbortController()
  if (signal.reason) signal.controller.abort(signal.reason)
  return signal.controller.signal
}

const SOURCE = Symbol('source')

/** One getter for all: an accessor per object would give each a hidden class, which keeps the whole command in memory. */
const SIGNAL: PropertyDescriptor & ThisType<{ readonly [SOURCE]: CommandSignal }> = {
  configurable: true,
  enumerable: true,
  get() {
    return read(this[SOURCE])
  },
}

/** The options of `deliver`. `signal` is an own enumerable property, so that `{ ...options }` and `{ signal }` work. */
function deliverOptions(source: CommandSignal): { signal: AbortSignal } {
  const options = Object.defineProperty({}, SOURCE, { value: source })
  return Object.defineProperty(options, 'signal', SIGNAL) as { signal: AbortSignal }
}

/** The signals of commands, by reference. */
function createSignals() {
  const signals = new Map<string, CommandSignal>()
  return {
    has: (ref: string) => signals.has(ref),
    get(ref: string, deadlineAt: number): CommandSignal {
      let known = signals.get(ref)
      if (!known) {
        known = { deadlineAt, controller: null, reason: null }
        signals.set(ref, known)
      }
      return known
    },
    /** Forgets the signal of a command that has ended in `state`, and aborts it unless the client settled the command. */
    end(state: string, ref: string) {
      const known = signals.get(ref)
      if (!known) return
      signals.delete(ref)
      if (state === 'expired') known.reason = new Refusal('timeout', 'the deadline of the command has passed')
      else if (state === 'cancelled') known.reason = new Refusal('cancelled')
      if (known.reason) known.controller?.abort(known.reason)
    },
    overdue: (now: number): string[] =>
      [...signals].filter(([, { deadlineAt }]) => deadlineAt <= now).map(([ref]) => ref),
  }
}

/** Remembers which attempts have begun at this node. */
function createBegun(clock: () => number) {
  /** Number of the last attempt of each command, in two generations so that old entries are dropped. */
  let begun = new Map<string, number>()
  let begunBefore = new Map<string, number>()
  let turnedAt = clock()
  return {
    /** Returns the number of the last attempt of a command that began here, or 0. */
    last: (ref: string) => Math.max(begun.get(ref) ?? 0, begunBefore.get(ref) ?? 0),
    remember(held: Held) {
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
function createReports({
  ackTimeoutMs,
  conclude,
  onError,
}: Pick<AttemptsOptions, 'ackTimeoutMs' | 'conclude' | 'onError'>) {
  const unreported = new Set<Held>()
  const reportMs = Math.min(REPORT_MS, ackTimeoutMs / REPORT_PART)
  const alarm = createAlarm(() => void reportAll())

  function report(held: Held): Promise<void> {
    if (!unreported.delete(held) || held.handedAt === null) return Promise.resolve()
    const at = held.handedAt
    const work = async () => {
      await conclude(held, 'handed_over', Math.ceil(performance.now() - at))
    }
    return work().catch((error) => {
      onError(error)
      // Without the report, the attempt ends with its acknowledgement timeout.
      if (held.phase === 'handed') unreported.add(held)
    })
  }

  async function reportAll() {
    await Promise.all([...unreported].map(report))
  }

  return {
    report,
    reportAll,
    /** Reports the attempt soon, or at once. */
    add(held: Held, isUrgent: boolean) {
      unreported.add(held)
      if (isUrgent) void report(held)
      else alarm.advance(reportMs)
    },
    /** Takes an unreported attempt. Returns whether it is one. */
    take: (held: Held) => unreported.delete(held),
    close() {
      alarm.clear()
      return reportAll()
    },
  }
}

export type Attempts = ReturnType<typeof createAttempts>

export function createAttempts(options: AttemptsOptions) {
  const { clock, ackTimeoutMs, conclude, retry, onChange } = options
  /** The current attempt of each command at this node. */
  const all = new Map<string, Held>()
  /** Attempts with a running timeout, the earliest first, because the timeout is the same for all. */
  const timed = new Set<Held>()
  const paused = new Set<Held>()
  /** Calls of the store that failed, to be retried by the next pass. */
  const failed = new Map<Held, () => Promise<void>>()
  const signals = createSignals()
  const begun = createBegun(clock)
  let arrivals = 0
  let closed = false
  // After close(), unfinished work is not an error.
  const onError = (error: unknown) => {
    if (!closed) options.onError(error)
  }
  const reports = createReports({ ...options, onError })
  const { report, reportAll } = reports
  const alarm = createAlarm(() => void pass())

  /** Drops an attempt at this node. Its state in the store does not change. */
  function drop(held: Held) {
    if (held.phase === 'over') return
    held.phase = 'over'
    timed.delete(held)
    paused.delete(held)
    failed.delete(held)
    if (all.get(held.ref) === held) all.delete(held.ref)
    held.onOver()
    // Tables of sets that V8 has replaced still refer to it, but not to the rest of the command.
    held.onOver = nothing
    onChange()
  }

  async function attemptAgain(held: Held, work: () => Promise<void>) {
    failed.delete(held)
    try {
      await work()
    } catch (error) {
      if (closed) return
      if (held.phase !== 'over') failed.set(held, work)
      onError(error)
    }
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
  function fail(held: Held, what: 'ack_timeout' | 'deliver_timed_out' | 'rejected'): Promise<void> {
    timed.delete(held)
    return attemptAgain(held, async () => {
      if (await conclude(held, what, 0)) startPause(held)
      else drop(held)
    })
  }

  /** Handles timeouts and pauses that have ended, and retries failed calls. Resolves after the store has replied. */
  async function pass(): Promise<void> {
    const now = clock()
    const work: Promise<unknown>[] = [reportAll()]
    for (const [held, again] of [...failed]) work.push(attemptAgain(held, again))
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
        attemptAgain(held, async () => {
          await retry(held)
          drop(held)
        }),
      )
    }
    await Promise.all(work)
  }

  return {
    pass,
    reportAll,

    /** Returns whether this node has, or has begun, this attempt or a later one of the command. */
    knows: (ref: string, delivery: number) =>
      Number(all.get(ref)?.delivery ?? 0) >= delivery || begun.last(ref) >= delivery,

    /** Returns whether an attempt or a signal at this node waits for the end of the command. */
    has: (ref: string) => all.has(ref) || signals.has(ref),

    /** Returns the number of the newest attempt. A sync that starts now covers attempts up to it, and none that arrive later. */
    mark: () => arrivals,

    /** Takes an attempt. Returns `undefined` if this node already had it or a later one. */
    take(attempt: Attempt, shard: number): Held | undefined {
      const { ref, delivery } = attempt
      const former = all.get(ref)
      if (Number(former?.delivery ?? 0) >= Number(delivery) || begun.last(ref) >= Number(delivery)) return undefined
      if (former) drop(former)
      const arrival = ++arrivals
      // Written out for speed: an object literal with a spread costs several times as much.
      const { order, action, trace, payload, deadlineAt } = attempt
      const held: Held = {
        ref,
        delivery,
        attempt: attempt.attempt,
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
      all.set(ref, held)
      return held
    },

    /** Calls `deliver` and starts the timeout. `isFull`: the client has no free slot until this attempt is reported. */
    begin(
      held: Held,
      deliver: (options: { signal: AbortSignal }) => unknown,
      { isFull, onLate }: { isFull: boolean; onLate: () => void },
    ) {
      begun.remember(held)
      held.phase = 'open'
      held.untilMs = clock() + ackTimeoutMs
      timed.add(held)
      alarm.advance(ackTimeoutMs)
      const { ref } = held
      const signal = signals.get(ref, held.deadlineAt)
      const options = deliverOptions(signal)
      onChange()
      const over = (what: 'handed_over' | 'rejected') => {
        if (!signals.has(ref)) onLate()
        else if (held.phase !== 'open') void conclude(held, what, 0).catch(onError)
        else if (what === 'rejected') void fail(held, what)
        else {
          held.phase = 'handed'
          held.untilMs = clock() + ackTimeoutMs
          timed.delete(held)
          timed.add(held)
          alarm.advance(ackTimeoutMs)
          held.handedAt = performance.now()
          reports.add(held, closed || isFull)
        }
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
      const held = all.get(ref)
      return held && reports.take(held) ? held : undefined
    },
    /** Undoes `takeReport` after that call failed, and reports the attempt by itself. */
    returnReport(held: Held) {
      if (held.handedAt !== null) reports.add(held, true)
    },
    report,

    /** Applies a message of the store: the command was acknowledged, or ended in `state`. */
    apply(state: string, ref: string) {
      const held = all.get(ref)
      if (held) {
        void report(held)
        drop(held)
      }
      // Last, because listeners of the signal may call the dispatcher again.
      if (state !== 'acknowledged') signals.end(state, ref)
    },

    /** Drops an attempt that belongs to another node by now, or that was given back. */
    drop,

    /** Drops all attempts of a shard, because this node has a new incarnation there. */
    dropShard(shard: number) {
      for (const held of [...all.values()]) if (held.shard === shard) drop(held)
    },

    /** Aborts signals whose deadline has passed, without waiting for a message. @param now The time of the store. */
    expire(now: number) {
      for (const ref of signals.overdue(now)) this.apply('expired', ref)
    },

    /** Stops the timers and sends the outstanding reports. Errors are ignored from now on. */
    async close(): Promise<void> {
      closed = true
      alarm.clear()
      await reports.close()
    },
  }
}
