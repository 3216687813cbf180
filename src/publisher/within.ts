/** Bounds in time for work that need not listen to a signal. */
import { RelayError } from './relay-error.js'

/**
 * What `work` comes to, if it does so within `ms` and before `outer` aborts; its signal aborts with them.
 *
 * @throws RelayError `timeout`, or the reason of `outer`.
 */
export function within<T>(
  ms: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const inner = new AbortController()
    const clear = () => {
      clearTimeout(timer)
      outer?.removeEventListener('abort', leave)
    }
    const stop = (reason: unknown) => {
      clear()
      inner.abort(reason)
      reject(reason)
    }
    const leave = () => stop(outer?.reason)
    const timer = setTimeout(() => stop(new RelayError('timeout', null)), ms)
    outer?.addEventListener('abort', leave)
    if (outer?.aborted) return leave()
    work(inner.signal).finally(clear).then(resolve, reject)
  })
}

/** Resolves after `ms`, or as soon as `signal` aborts. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal.addEventListener('abort', done)
    if (signal.aborted) done()
  })
}
