/** One deadline per request: aborts pending work and rejects work that ignores the abort. */
import { Refusal, type RefusalCode } from '../refusal.js'
import { onAbort, raceAbort } from './abort.js'

/** The abort reason used when a deadline passes. */
export class DeadlinePassed extends Error {
  override readonly name = 'DeadlinePassed'

  constructor() {
    super('The request deadline has passed')
  }
}

function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return value !== null && typeof value === 'object' && typeof (value as PromiseLike<T>).then === 'function'
}

/**
 * The deadline of one request. The signal is created on first use, or when work continues past the event-loop turn in
 * which it started: a response that is available immediately needs neither a signal nor a timer.
 */
export class Deadline {
  readonly #endsAt: number
  readonly #request: { readonly signal: AbortSignal }
  #controller: AbortController | undefined
  /** To make the signal; later, to abort it. */
  #timer: ReturnType<typeof setTimeout> | undefined
  #forget = () => {}
  #waiting: (() => void)[] = []
  #over = false

  /** `ms` from now, which the end of the client brings forward. */
  constructor(ms: number, request: { readonly signal: AbortSignal }) {
    this.#endsAt = performance.now() + ms
    this.#request = request
  }

  /** Aborted when the deadline passes or the client goes away. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      // Stored before arming: if the client has already disconnected, waiters read this signal immediately.
      this.#arm(this.#controller)
    }
    // Work that does not let the event loop turn keeps the timer from telling.
    if (this.#hasPassed()) this.#controller.abort(new DeadlinePassed())
    return this.#controller.signal
  }

  /**
   * Returns `work`, or rejects with the signal's reason once it aborts. Work that settles because of the abort wins: an
   * aggregate that checks the signal can still return a partial result. Work that blocks past the deadline without
   * checking is late.
   */
  race<T>(work: T | PromiseLike<T>): T | Promise<T> {
    const isLate = () => !this.#controller?.signal.aborted && this.#hasPassed()
    if (!isThenable(work)) {
      if (isLate()) throw this.signal.reason
      return work
    }
    return new Promise<T>((resolve, reject) => {
      work.then((value) => (isLate() ? reject(this.signal.reason) : resolve(value)), reject)
      // One macrotask of grace, so that work that settles in response to the abort is still used.
      this.#whenEnded(() => setTimeout(reject, 0, this.signal.reason))
    })
  }

  /** Ends the timer; the signal stays as it is. */
  clear(): void {
    this.#over = true
    clearTimeout(this.#timer)
    this.#forget()
  }

  #hasPassed(): boolean {
    return !this.#over && performance.now() >= this.#endsAt
  }

  #whenEnded(act: () => void): void {
    if (this.#controller) {
      const { signal } = this.#controller
      if (signal.aborted) act()
      else signal.addEventListener('abort', act, { once: true })
    } else if (!this.#over) {
      this.#waiting.push(act)
      this.#timer ??= setTimeout(() => this.signal, 0)
    }
  }

  #arm(armed: AbortController): void {
    if (this.#over) return
    clearTimeout(this.#timer)
    for (const act of this.#waiting) armed.signal.addEventListener('abort', act, { once: true })
    const client = this.#request.signal
    const leave = () => armed.abort(client.reason)
    if (client.aborted) leave()
    else client.addEventListener('abort', leave, { once: true })
    this.#forget = () => client.removeEventListener('abort', leave)
    this.#timer = setTimeout(() => armed.abort(new DeadlinePassed()), this.#endsAt - performance.now())
  }
}

// Runs work with a time limit. Results that arrive later are ignored.

/** Time limit for an authenticator, a store or a policy, in milliseconds. */
export const DEADLINE_MS = 5_000

interface TimeLimit {
  ms: number
  /** Creates the error thrown when the time limit passes. */
  late: () => unknown
  /** Gives up early. */
  signal?: AbortSignal | undefined
  /** Creates the error thrown when the signal aborts. @default the signal's reason */
  abortReason?: (() => unknown) | undefined
}

/**
 * A signal that aborts at the time limit, until `clear` is called. `AbortSignal.any` is not used: it may be
 * garbage-collected before it aborts.
 */
export function limitTime({ ms, late, signal, abortReason = () => signal?.reason }: TimeLimit) {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(late()), ms)
  const forget = onAbort(signal, () => controller.abort(abortReason()))
  const clear = () => {
    clearTimeout(timer)
    forget()
  }
  return { signal: controller.signal, clear }
}

/** `work`'s outcome, unless time is up or the signal aborts before; then the signal that `work` was given aborts. */
export async function runWithin<T>(work: (signal: AbortSignal) => T | PromiseLike<T>, limit: TimeLimit): Promise<T> {
  const { signal, clear } = limitTime(limit)
  try {
    signal.throwIfAborted()
    return await raceAbort(work(signal), signal)
  } finally {
    clear()
  }
}

interface TimeoutOptions {
  ms: number
  /** The refusal when time is up. */
  code: RefusalCode
  /** Gives up early, with the refusal `cancelled`. */
  signal?: AbortSignal | undefined
}

/** `runWithin`, which throws a `Refusal`. */
export function withTimeout<T>(work: (signal: AbortSignal) => T | PromiseLike<T>, options: TimeoutOptions): Promise<T> {
  const { ms, code, signal } = options
  return runWithin(work, { ms, signal, late: () => new Refusal(code), abortReason: () => new Refusal('cancelled') })
}

// How long closing may take. Work that has not ended by then is abandoned and counted.

/** Maximum time that `close()` waits for pending work, in milliseconds. */
export const CLOSE_TIMEOUT_MS = 5_000

/** The result of closing: how much work had to be abandoned. */
export interface CloseResult {
  /** Number of connections that were destroyed because they did not close in time. */
  aborted: number
}

/**
 * Waits for all of `work`, at most `ms` milliseconds.
 *
 * @returns how many had not settled by then.
 */
export async function endWithin(work: Iterable<unknown>, ms: number): Promise<CloseResult> {
  let aborted = 0
  const ends = [...work].map(async (each) => {
    aborted++
    // Rejected work has ended, too.
    await Promise.allSettled([each])
    aborted--
  })
  // The settled promises never reject; only the time limit can.
  await runWithin(() => Promise.all(ends), { ms, late: () => undefined }).catch(() => {})
  return { aborted }
}

/** One ending out of several. */
export async function endTogether(ends: Iterable<CloseResult | PromiseLike<CloseResult>>): Promise<CloseResult> {
  const ended = await Promise.all(ends)
  return { aborted: ended.reduce((sum, { aborted }) => sum + aborted, 0) }
}
