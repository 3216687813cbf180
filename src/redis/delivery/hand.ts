/**
 * What a node has in hand: the attempts that the store gave it, their timeouts and pauses, and the signals that live until
 * their commands end. All of it is in memory: the store recovers it when the node's lease is over.
 */
import { createAlarm } from '../../async/timer.js'
import { backoffMs } from '../../contract/delivery-rules.js'
import { Refusal } from '../../refusal.js'

/** An attempt as the store gave it; the deadline in epoch ms. */
export interface Attempt {
  /** The command. */
  ref: string
  /** Numbers the attempts of the command, also those that were given back before they began. */
  delivery: string
  /** What the client is told: 1 for the first. */
  attempt: number
  deadlineAt: number
  /** The waiter that it was given to. */
  order: string
  action: string
  payload: string
}

/** `queued`: it has not begun. `open`: `deliver` runs. `handed`: it resolved. `pause`: the next attempt is due after it. */
type Phase = 'queued' | 'open' | 'handed' | 'pause' | 'over'

export interface Held extends Attempt {
  readonly shard: number
  /** Greater than that of each attempt that came before. */
  readonly arrival: number
  phase: Phase
  /** When its timeout or pause is over, by the clock of this node. */
  untilMs: number
  /** When `deliver` resolved, as long as the store has not been told. */
  handedAt: number | null
  /** Ends the wait for `deliver`. */
  onOver(): void
}

/** How long it is remembered that an attempt has begun: longer than any answer that brings it again can be late. */
const REMEMBERED_MS = 15_000
/** A hand-over is reported with the client's next word, or after this time. */
const REPORT_MS = 100
/** At most this part of the timeout of an attempt. */
const REPORT_PART = 10

const nothing = () => {}

interface HandOptions {
  /** A clock that does not go back: of this process, or the injected one. */
  clock: () => number
  ackTimeoutMs: number
  /** Tells the store what became of an attempt; what fails is tried again. Resolves to whether a pause follows. */
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

/** The signal of a command. It is created when it is first read: it costs more than the rest of an attempt. */
interface CommandSignal {
  deadlineAt: number
  controller: AbortController | null
  /** Why it is aborted, or would be. */
  reason: Refusal | null
}

function read(signal: CommandSignal): AbortSignal {
  signal.controller ??= new AbortController()
  if (signal.reason) signal.controller.abort(signal.reason)
  return signal.controller.signal
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

export type Hand = ReturnType<typeof createHand>

export function createHand(options: HandOptions) {
  const { clock, ackTimeoutMs, conclude, retry, onChange, onError } = options
  /** By command, the attempt that this node has in hand. */
  const all = new Map<string, Held>()
  /** Attempts with a timeout, the earliest first: it is the same for all. */
  const timed = new Set<Held>()
  const paused = new Set<Held>()
  /** What the store could not be told of. */
  const failed = new Map<Held, () => Promise<void>>()
  const unreported = new Set<Held>()
  const signals = createSignals()
  /** The last attempt of each command that began here, in two generations. */
  let begun = new Map<string, number>()
  let begunBefore = new Map<string, number>()
  let turnedAt = clock()
  let arrivals = 0
  let closed = false
  const reportMs = Math.min(REPORT_MS, ackTimeoutMs / REPORT_PART)
  const reportAlarm = createAlarm(() => void reportAll())
  const alarm = createAlarm(() => void pass())

  const lastBegun = (ref: string) => Math.max(begun.get(ref) ?? 0, begunBefore.get(ref) ?? 0)

  function remember(held: Held) {
    if (clock() - turnedAt > REMEMBERED_MS) {
      begunBefore = begun
      begun = new Map()
      turnedAt = clock()
    }
    begun.set(held.ref, Number(held.delivery))
  }

  /** The attempt is over here, whatever the store says of it. */
  function drop(held: Held) {
    if (held.phase === 'over') return
    held.phase = 'over'
    timed.delete(held)
    paused.delete(held)
    failed.delete(held)
    if (all.get(held.ref) === held) all.delete(held.ref)
    held.onOver()
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

  /** An attempt that led to nothing: another one after a pause, unless the store knows better. */
  function fail(held: Held, what: 'ack_timeout' | 'deliver_timed_out' | 'rejected'): Promise<void> {
    timed.delete(held)
    return attemptAgain(held, async () => {
      if (await conclude(held, what, 0)) startPause(held)
      else drop(held)
    })
  }

  function report(held: Held): Promise<void> {
    if (!unreported.delete(held) || held.handedAt === null) return Promise.resolve()
    const at = held.handedAt
    const work = async () => {
      await conclude(held, 'handed_over', Math.ceil(performance.now() - at))
    }
    return work().catch((error) => {
      if (!closed) onError(error)
      // Left open, the attempt ends with its timeout.
      if (held.phase === 'handed') unreported.add(held)
    })
  }

  async function reportAll() {
    await Promise.all([...unreported].map(report))
  }

  /** Timeouts and pauses that are over. Resolves when the store knows. */
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

    /** Whether this attempt, or a later one of the command, is in hand or has begun here. */
    knows: (ref: string, delivery: number) =>
      Number(all.get(ref)?.delivery ?? 0) >= delivery || lastBegun(ref) >= delivery,

    /** Whether something here waits for the end of a command: an attempt, or a signal. */
    has: (ref: string) => all.has(ref) || signals.has(ref),

    /** What came before is older than what a question asks that is sent now. */
    mark: () => arrivals,

    /** Takes an attempt in hand, or nothing where it came before. */
    take(attempt: Attempt, shard: number): Held | undefined {
      const { ref, delivery } = attempt
      const former = all.get(ref)
      if (Number(former?.delivery ?? 0) >= Number(delivery) || lastBegun(ref) >= Number(delivery)) return undefined
      if (former) drop(former)
      const arrival = ++arrivals
      // Written out: an object that begins with a spread costs several times as much.
      const { order, action, payload, deadlineAt } = attempt
      const held: Held = {
        ref,
        delivery,
        attempt: attempt.attempt,
        deadlineAt,
        order,
        action,
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

    /** Calls `deliver`; the timeout begins. `isFull`: its client takes no other command before this one is reported. */
    begin(
      held: Held,
      deliver: (options: { signal: AbortSignal }) => unknown,
      { isFull, onLate }: { isFull: boolean; onLate: () => void },
    ) {
      remember(held)
      held.phase = 'open'
      held.untilMs = clock() + ackTimeoutMs
      timed.add(held)
      alarm.advance(ackTimeoutMs)
      const { ref } = held
      const signal = signals.get(ref, held.deadlineAt)
      // `{ ...options }` and `{ signal }` find it.
      const options = {
        get signal() {
          return read(signal)
        },
      }
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
          unreported.add(held)
          if (closed || isFull) void report(held)
          else reportAlarm.advance(reportMs)
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

    /** For what is said of a command next: the attempt that was handed over, of which the store has not been told. */
    takeReport(ref: string): Held | undefined {
      const held = all.get(ref)
      return held && unreported.delete(held) ? held : undefined
    },
    returnReport(held: Held) {
      if (held.handedAt === null) return
      unreported.add(held)
      void report(held)
    },
    report,

    /** The store says of a command that it was acknowledged, or has ended in `state`. */
    apply(state: string, ref: string) {
      const held = all.get(ref)
      if (held) {
        void report(held)
        drop(held)
      }
      // Last, because listeners of the signal may call the dispatcher again.
      if (state !== 'acknowledged') signals.end(state, ref)
    },

    /** Lets go of an attempt that is somebody else's by now, or that was given back. */
    drop,

    /** All attempts of a shard are another incarnation's. */
    dropShard(shard: number) {
      for (const held of [...all.values()]) if (held.shard === shard) drop(held)
    },

    /** Ends signals whose deadline has passed without a message, at `now` of the store. */
    expire(now: number) {
      for (const ref of signals.overdue(now)) this.apply('expired', ref)
    },

    /** Reports what is left to report; what fails now is no failure. */
    async close(): Promise<void> {
      closed = true
      alarm.clear()
      reportAlarm.clear()
      await reportAll()
    },
  }
}
