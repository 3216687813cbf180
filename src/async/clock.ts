/** The clocks of a process: the wall's, for what is shown, and one that never goes back, for what waits or ages. */

export interface Clock {
  /** Epoch ms, whole. */
  now(): number
  /** Ms on a clock that stands still while the wall's goes back: a jump of ten minutes must not stall what is due. */
  steady(): number
}

export function createClock(now: () => number): Clock {
  const wall = () => Math.floor(now())
  return { now: wall, steady: monotonic(wall) }
}

/** `now`, never going back: when it does, this one goes on from where it was. */
export function monotonic(now: () => number): () => number {
  let skew = 0
  let latest = Number.NEGATIVE_INFINITY
  return () => {
    const at = now()
    if (at + skew < latest) skew = latest - at
    latest = at + skew
    return latest
  }
}
