/** The two clocks of a facility: the wall's, for what is shown, and one that never goes back, for what waits or ages. */

export interface Clock {
  /** Epoch ms, whole. */
  now(): number
  /** Ms on a clock that stands still while the wall's goes back: a jump of ten minutes must not stall what is due. */
  steady(): number
}

export function createClock(now: () => number): Clock {
  let skew = 0
  let latest = Number.NEGATIVE_INFINITY
  const wall = () => Math.floor(now())
  return {
    now: wall,
    steady() {
      const at = wall()
      if (at + skew < latest) skew = latest - at
      latest = at + skew
      return latest
    },
  }
}
