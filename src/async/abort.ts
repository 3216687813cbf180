/** Waiting that ends when a signal aborts. */

interface Waiting {
  acts: Set<() => void>
  listener: () => void
}

// One listener per signal, however many wait: runtimes warn of the eleventh as of a leak.
const waiting = new WeakMap<AbortSignal, Waiting>()

/**
 * `work`, unless `signal` aborts first; what it still does afterwards is nobody's answer.
 *
 * @throws what `left` says: the signal's reason.
 */
export function raceAbort<T>(
  work: T | PromiseLike<T>,
  signal: AbortSignal,
  left = (): unknown => signal.reason,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const forget = onAbort(signal, () => reject(left()))
    Promise.resolve(work).then(resolve, reject).finally(forget)
  })
}

/** Calls `act` when `signal` aborts, at once where it has, unless the answer was called before. */
export function onAbort(signal: AbortSignal | undefined, act: () => void): () => void {
  if (signal === undefined || signal.aborted) {
    if (signal) act()
    return () => {}
  }
  const { acts, listener } = waiting.get(signal) ?? listen(signal)
  // Of its own, so that whoever waits twice is told twice.
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
