/** The clocks of a process: wall time for display, monotonic time for timers and ages. */

export interface Clock {
  /** Epoch ms, whole. */
  now(): number
  /** Monotonic milliseconds: when the wall clock jumps back by ten minutes, timers must not stall. */
  steady(): number
}

export function createClock(now: () => number): Clock {
  const wall = () => Math.floor(now())
  return { now: wall, steady: monotonic(wall) }
}

/** Wraps `now` so that it never goes back: after a step back it continues from the highest value seen. */
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
