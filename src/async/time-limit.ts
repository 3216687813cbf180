/** Work that ends in time or is given up: what it still does afterwards is nobody's answer any more. */
import { Refusal, type RefusalCode } from '../refusal.js'
import { onAbort, raceAbort } from './abort.js'

/** How long an authenticator, a store or the policy may take before the caller is told to come back. */
export const DEADLINE_MS = 5_000

interface TimeLimit {
  ms: number
  /** What is thrown when time is up. */
  late: () => unknown
  /** Gives up early. */
  signal?: AbortSignal | undefined
  /** What is thrown then. @default its reason */
  left?: (() => unknown) | undefined
}

/** A signal that aborts with what the limit throws, until `clear`. No `AbortSignal.any`: it may be collected before it aborts. */
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
