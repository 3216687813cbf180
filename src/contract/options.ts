/** How a factory reads the bounds that a host gives it, and how a bound that all share is divided. */

/** The longest time that an option may name, a century: an instant that far ahead is still a date, and still exact. */
export const DURATION_MAX_MS = 3_155_760_000_000

/**
 * The options that `defaults` names, each as `given` sets it.
 *
 * @throws RangeError for what is not a whole number from 1, or of a duration (`…Ms`) one over a century: nothing is ever
 * more than `NaN`, so such a bound lets everybody in.
 *
 * @example
 * const { maxSites } = resolveBounds(options, { maxSites: 10_000 })
 */
export function resolveBounds<N extends string>(
  given: { readonly [name in NoInfer<N>]?: number | undefined },
  defaults: Readonly<Record<N, number>>,
): Record<N, number> {
  const bounds: Record<N, number> = { ...defaults }
  for (const name of Object.keys(defaults) as N[]) {
    const value = given[name] === undefined ? defaults[name] : given[name]
    if (!Number.isSafeInteger(value) || value < 1) throw new RangeError(`${name} must be a whole number from 1`)
    if (name.endsWith('Ms') && value > DURATION_MAX_MS)
      throw new RangeError(`${name} must be at most ${DURATION_MAX_MS}`)
    bounds[name] = value
  }
  return bounds
}

/**
 * What one user may hold of a bound that all share, unless the host says otherwise: a tenth, so that one who fills it
 * leaves the others most of it; of a bound below twenty, two.
 */
export function shareOf(bound: number): number {
  return Math.min(bound, Math.max(2, Math.floor(bound / 10)))
}
