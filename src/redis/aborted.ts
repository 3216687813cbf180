/** One listener per signal, however many commands wait under it: runtimes warn of the eleventh as of a leak. */

const waiting = new WeakMap<AbortSignal, Set<() => void>>()

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
