/** How a factory reads the bounds that a host gives it, and how a bound that all share is divided. Depends on nothing. */

/** The longest time that an option may name, a century: an instant that far ahead is still a date, and still exact. */
const DURATION_MAX_MS = 3_155_760_000_000
/** The most that a timer can wait; anything above fires at once. */
export const TIMER_MAX_MS = 2_147_483_647

/** What a bound is unless a host says otherwise: a number, one with the most that may be named, or made of other bounds. */
type Default<N extends string> =
  | number
  | readonly [fallback: number, most: number]
  | ((bounds: Readonly<Record<N, number>>) => number)

/** The bounds of a factory by the names of its options; what is made of others stands behind them. */
export type Bounds<N extends string> = Readonly<Record<N, Default<N>>>

/** `defaults`, each name known to those that are made of others. */
export const defineBounds = <N extends string>(defaults: Bounds<N>): Bounds<N> => defaults

/**
 * `value`, where it is a whole number from `least` to `most`.
 *
 * @throws RangeError that names the option: nothing is ever more than `NaN`, so such a bound lets everybody in.
 */
export function checkBound(name: string, value: unknown, most: number = Number.MAX_SAFE_INTEGER, least = 1): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`
  throw new RangeError(`${name} must be a whole number ${range}`)
}

/**
 * The options that `defaults` names, each as `given` sets it. A duration (`…Ms`) is at most a century.
 *
 * @throws RangeError as `checkBound`.
 *
 * @example
 * const { maxSites } = resolveBounds(options, { maxSites: 10_000 })
 */
export function resolveBounds<N extends string>(
  given: { readonly [name in NoInfer<N>]?: unknown },
  defaults: Bounds<N>,
): Record<N, number> {
  const bounds = {} as Record<N, number>
  for (const name of Object.keys(defaults) as N[]) {
    const unless: Default<N> = defaults[name]
    const [fallback, most] = Array.isArray(unless)
      ? unless
      : [unless, name.endsWith('Ms') ? DURATION_MAX_MS : undefined]
    const value: unknown = given[name]
    const made = typeof fallback === 'function' ? fallback(bounds) : fallback
    bounds[name] = checkBound(name, value === undefined ? made : value, most)
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
