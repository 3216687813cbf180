/** Work that ends in time or is given up: what it still does afterwards is nobody's answer any more. */
import { Refusal, type RefusalCode } from '../refusal.js'

/** How long an authenticator, a store or the policy may take before the caller is told to come back. */
export const DEADLINE_MS = 5_000

export interface TimeoutOptions {
  ms: number
  /** The refusal when time is up. */
  code: RefusalCode
  /** Gives up early, with the refusal `cancelled`. */
  signal?: AbortSignal | undefined
}

/** `work`'s outcome, or a `Refusal` once time is up or `signal` aborts; then the signal that `work` was given aborts. */
export function withTimeout<T>(work: (signal: AbortSignal) => T | PromiseLike<T>, options: TimeoutOptions): Promise<T> {
  const { ms, code, signal } = options
  const controller = new AbortController()
  return new Promise<T>((resolve, reject) => {
    // Started before anything else can happen; a work that throws at once rejects the promise, and needs no timer.
    const started = Promise.resolve(work(controller.signal))
    const giveUp = (refusal: Refusal) => {
      finished()
      reject(refusal)
      controller.abort(refusal)
    }
    const leave = () => giveUp(new Refusal('cancelled'))
    const timer = setTimeout(() => giveUp(new Refusal(code)), ms)
    const finished = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', leave)
    }
    signal?.addEventListener('abort', leave, { once: true })
    started.then(resolve, reject).finally(finished)
    if (signal?.aborted) leave()
  })
}
