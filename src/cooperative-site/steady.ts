/** A clock for what waits and ages: when the wall's goes back, it goes on from where it was. */

/** `now`, never going back. */
export function steady(now: () => number): () => number {
  let skew = 0
  let latest = Number.NEGATIVE_INFINITY
  return () => {
    const at = now()
    if (at + skew < latest) skew = latest - at
    latest = at + skew
    return latest
  }
}
