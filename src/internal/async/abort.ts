/** Waiting that ends when a signal aborts. */

interface Waiting {
  acts: Set<() => void>
  listener: () => void
}

// One listener per signal, however many wait: runtimes warn of the eleventh as of a leak.
const waiting = new WeakMap<AbortSignal, Waiting>()

/**
 * Returns the result of `work`, or rejects when `signal` aborts first. Later results of `work` are ignored.
 *
 * @throws the value that `abortReason` returns: by default the signal's reason.
 */
export function raceAbort<T>(
  work: T | PromiseLike<T>,
  signal: AbortSignal,
  abortReason = (): unknown => signal.reason,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(abortReason()))
    Promise.resolve(work).then(resolve, reject).finally(forget)
  })
}

/** Calls `act` when `signal` aborts, or immediately if it already has. Returns a function that removes the listener. */
export function onAbort(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined || signal.aborted) {
    if (signal) act()
    return () => {}
  }
  const { acts, listener } = waiting.get(signal) ?? listen(signal)
  // A new function each time, so that two registrations of the same callback are two calls.
  const own = () => act()
  acts.add(own)
  return () => {
    if (!acts.delete(own) || acts.size > 0) return
    waiting.delete(signal)
    signal.removeEventListener('abort', listener)
  }
}

function listen(signal: AbortSignal): Waiting {
  const acts = new Set<() => void>()
  const listener = () => {
    for (const act of [...acts]) if (acts.delete(act)) act()
  }
  signal.addEventListener('abort', listener, { once: true })
  const own = { acts, listener }
  waiting.set(signal, own)
  return own
}
