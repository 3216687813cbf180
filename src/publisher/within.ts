/** Bounds in time for work that need not listen to a signal. */
import { RelayError } from './relay-error.js'

const waiting = new WeakMap<AbortSignal, Set<() => void>>()

/** One listener per signal, however many publish under it: runtimes warn of the eleventh as of a leak. */
function whenAborted(signal: AbortSignal | undefined, act: () => void): () => void {
  if (!signal) return () => {}
  const known = waiting.get(signal)
  const acts = known ?? new Set()
  acts.add(act)
  if (!known) {
    waiting.set(signal, acts)
    const tell = () => {
      for (const each of [...acts]) each()
    }
    signal.addEventListener('abort', tell, { once: true })
  }
  return () => acts.delete(act)
}

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
      forget()
    }
    const stop = (reason: unknown) => {
      clear()
      inner.abort(reason)
      reject(reason)
    }
    const leave = () => stop(outer?.reason)
    const timer = setTimeout(() => stop(new RelayError('timeout', null)), ms)
    const forget = whenAborted(outer, leave)
    if (outer?.aborted) return leave()
    work(inner.signal).finally(clear).then(resolve, reject)
  })
}

/** Resolves after `ms`, or as soon as `signal` aborts. */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      forget()
      resolve()
    }
    const timer = setTimeout(done, ms)
    const forget = whenAborted(signal, done)
    if (signal?.aborted) done()
  })
}
