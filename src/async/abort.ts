/** One listener per signal, however many commands wait under it: runtimes warn of the eleventh as of a leak. */

const waiting = new WeakMap<AbortSignal, Set<() => void>>()

/** `work`, unless `signal` aborts first. @throws the signal's reason. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason)
    const forget = whenAborted(signal, () => reject(signal.reason))
    work.then(resolve, reject).finally(forget)
  })
}

/** Calls `act` when `signal` aborts, unless the answer was called before. */
export function whenAborted(signal: AbortSignal, act: () => void): () => void {
  const known = waiting.get(signal)
  const acts = known ?? new Set()
  acts.add(act)
  if (!known) {
    waiting.set(signal, acts)
    signal.addEventListener(
      'abort',
      () => {
        for (const each of [...acts]) each()
      },
      { once: true },
    )
  }
  return () => acts.delete(act)
}
