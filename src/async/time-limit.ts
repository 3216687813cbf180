/** Runs work with a time limit. Results that arrive later are ignored. */
import { Refusal, type RefusalCode } from '../refusal.js'
import { onAbort, raceAbort } from './abort.js'

/** Time limit for an authenticator, a store or a policy, in milliseconds. */
export const DEADLINE_MS = 5_000

interface TimeLimit {
  ms: number
  /** Creates the error thrown when the time limit passes. */
  late: () => unknown
  /** Gives up early. */
  signal?: AbortSignal | undefined
  /** Creates the error thrown when the signal aborts. @default the signal's reason */
  left?: (() => unknown) | undefined
}

/**
 * A signal that aborts at the time limit, until `clear` is called. `AbortSignal.any` is not used: it may be
 * garbage-collected before it aborts.
 */
export function limitTime({ ms, late, signal, left = () => signal?.reason }: TimeLimit) {
  const controller = new AbortController()
  const timer = setTimeout(() => controller.abort(late()), ms)
  const forget = onAbort(signal, () => controller.abort(left()))
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
  return runWithin(work, { ms, signal, late: () => new Refusal(code), left: () => new Refusal('cancelled') })
}
