/** How a factory reads what a host gives it: which options there are, what each must be, and its bounds. Depends on nothing. */

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

const SHOWN_LENGTH = 60

/** A value as a message names what was found: texts cut short, and of what is made of parts no more than what it is. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH)}…` : value)
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/**
 * `value`, where it is a whole number from `least` to `most`.
 *
 * @throws RangeError that names the option: nothing is ever more than `NaN`, so such a bound lets everybody in.
 */
export function checkBound(name: string, value: unknown, most: number = Number.MAX_SAFE_INTEGER, least = 1): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`
  throw new RangeError(`${name} must be a whole number ${range}, not ${shown(value)}`)
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
    const own: Default<N> = defaults[name]
    const [fallback, most] = Array.isArray(own) ? own : [own, name.endsWith('Ms') ? DURATION_MAX_MS : undefined]
    const value: unknown = given[name]
    const made = typeof fallback === 'function' ? fallback(bounds) : fallback
    bounds[name] = checkBound(name, value === undefined ? made : value, most)
  }
  return bounds
}

/** What an option must be, as a refusal says it. */
export interface Rule {
  /** "`said`" ends the sentence "… must be". */
  readonly said: string
  test(value: unknown): boolean
  readonly isNeeded?: true
  /** A text that is refused is not repeated: there may be a credential in it. */
  readonly isPrivate?: true
  /** What its own options must be. */
  readonly shape?: Readonly<Record<string, Rule>>
}

/** One that must be given. */
export interface NeededRule extends Rule {
  readonly isNeeded: true
}

/** A rule for each option of `O`, which the compiler holds to be all of them. */
export type Shape<O> = { readonly [Name in keyof Required<O>]: undefined extends O[Name] ? Rule : NeededRule }

const rule = (said: string, test: (value: unknown) => boolean): Rule => ({ said, test })

/** Of which the factory itself says what it must be: a bound, for example. */
export const ANYTHING = rule('given', () => true)
export const FUNCTION = rule('a function', (value) => typeof value === 'function')
export const TEXT = rule('a string', (value) => typeof value === 'string')
export const FLAG = rule('true or false', (value) => typeof value === 'boolean')
export const LIST = rule('a list', Array.isArray)
export const OBJECT = rule('an object', (value) => value !== null && typeof value === 'object' && !Array.isArray(value))

/** An object, or a function, that has these methods. */
export const having = (...methods: string[]): Rule =>
  rule(`an object with ${methods.map((name) => `${name}()`).join(', ')}`, (value) =>
    methods.every((name) => typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'),
  )

export const orNull = ({ said, test }: Rule): Rule => rule(`${said}, or null`, (value) => value === null || test(value))

/** A hook that a host can silence. */
export const HOOK = orNull(FUNCTION)

/** An object of options of its own. */
export const optionsOf = (shape: Readonly<Record<string, Rule>>): Rule => ({ ...OBJECT, shape })

export const needed = (rule: Rule): NeededRule => ({ ...rule, isNeeded: true })

/** The rules of options that are bounds, which `resolveBounds` holds. */
export const boundsIn = <N extends string>(bounds: Bounds<N>): Record<N, Rule> =>
  Object.fromEntries(Object.keys(bounds).map((name) => [name, ANYTHING])) as Record<N, Rule>

/**
 * Refuses what is not `shape`: an option that there is not, one that is missing, one that cannot be used.
 *
 * @param path What stands before a name: of the options of an option its own, and a dot.
 * @throws TypeError that names the option and says what it must be.
 *
 * @example
 * checkOptions(options, { sites: needed(having('get')), onError: HOOK })
 */
export function checkOptions(given: unknown, shape: Readonly<Record<string, Rule>>, path = ''): void {
  if (!OBJECT.test(given))
    throw new TypeError(`${path === '' ? 'the options' : path.slice(0, -1)} must be an object, not ${shown(given)}`)
  for (const [name, value] of Object.entries(given as object))
    if (value !== undefined && !Object.hasOwn(shape, name))
      throw new TypeError(`the option ${path}${name} is unknown; known are ${Object.keys(shape).join(', ')}`)
  checkParts(given, shape, path)
}

/** `checkOptions` of an object that may have more, as all facilities of a host are a connector's parts. */
export function checkParts(given: unknown, shape: Readonly<Record<string, Rule>>, path = ''): void {
  for (const [name, { said, test, isNeeded, isPrivate, shape: own }] of Object.entries(shape)) {
    const value = (given as Readonly<Record<string, unknown>> | null | undefined)?.[name]
    if (value === undefined && !isNeeded) continue
    if (value === undefined || !test(value)) {
      const found = isPrivate && typeof value === 'string' ? '' : `, not ${shown(value)}`
      throw new TypeError(`${path}${name} must be ${said}${found}`)
    }
    if (own) checkOptions(value, own, `${path}${name}.`)
  }
}

/**
 * What one user may hold of a bound that all share, unless the host says otherwise: a tenth, so that one who fills it
 * leaves the others most of it; of a bound below twenty, two.
 */
export function shareOf(bound: number): number {
  return Math.min(bound, Math.max(2, Math.floor(bound / 10)))
}
