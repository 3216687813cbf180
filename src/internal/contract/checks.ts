/**
 * Makes the errors of all factories, and checks the options of those that must load without zod: `browser/` and `publisher/` are
 * part of web pages, `adapters/` and `plugs/` of hosts that may have no router, and the server of `dashboard/` serves one page.
 * Imports nothing.
 */

/** The longest duration, a century: a date that far ahead is still exact. */
const DURATION_MAX_MS = 3_155_760_000_000
/** The longest possible timer delay in milliseconds; a longer one fires immediately. */
export const TIMER_MAX_MS = 2_147_483_647

/** A W3C `traceparent` of version 00. */
export const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/** The default of a limit: a number, a number with its upper bound, or a function of the limits before it. */
type Default<N extends string> =
  | number
  | readonly [fallback: number, most: number]
  | ((bounds: Readonly<Record<N, number>>) => number)

/** The limits of a factory by option name. Limits that depend on others come after them. */
export type Bounds<N extends string> = Readonly<Record<N, Default<N>>>

/** Returns `defaults`; gives the names to the functions among them. */
export const defineBounds = <N extends string>(defaults: Bounds<N>): Bounds<N> => defaults

const SHOWN_LENGTH = 60

/** A value as an error message shows it: long strings are cut, objects and arrays are only named. */
export function shown(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > SHOWN_LENGTH ? `${value.slice(0, SHOWN_LENGTH)}…` : value)
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'function') return 'a function'
  return typeof value === 'object' && value !== null ? 'an object' : String(value)
}

/** Whether at most `edits` insertions, deletions or replacements turn `a` into `b`. */
export function isNear(a: string, b: string, edits: number): boolean {
  let i = 0
  while (i < a.length && a[i] === b[i]) i++
  const [x, y] = [a.slice(i), b.slice(i)]
  if (x === y || edits === 0) return x === y
  const [nextX, nextY] = [x.slice(1), y.slice(1)]
  return isNear(nextX, y, edits - 1) || isNear(x, nextY, edits - 1) || isNear(nextX, nextY, edits - 1)
}

/** Two words with a different ending, like `deadline` and `deadline_ms`. Shorter beginnings say too little. */
const isBeginning = (a: string, b: string) => Math.min(a.length, b.length) > 3 && (a.startsWith(b) || b.startsWith(a))

/**
 * The text about a name that an object must not have: it suggests the closest name, or lists `valid`.
 *
 * @param path Prefix of the names, with a dot: `timeouts.`.
 */
export function unknownName(kind: 'option' | 'field', path: string, name: string, valid: readonly string[]): string {
  const edits = Math.min(2, name.length >> 1)
  const lower = name.toLowerCase()
  const near =
    valid.find((each) => isNear(lower, each.toLowerCase(), edits)) ??
    valid.find((each) => isBeginning(lower, each.toLowerCase()))
  const hint = near === undefined ? `Valid ${kind}s: ${valid.join(', ')}` : `Did you mean "${path}${near}"?`
  return `Unknown ${kind} ${shown(path + name)}. ${hint}`
}

/** The error for an option that a factory does not have. */
export const unknownOption = (path: string, name: string, valid: readonly string[]): TypeError =>
  new TypeError(unknownName('option', path, name, valid))

const label = (name: string) => (name === '' ? 'options' : `option "${name}"`)

export const missingOption = (name: string, expected: string): TypeError =>
  new TypeError(`Missing required ${label(name)} (${expected.replace(/^an? /, '')})`)

/** What is never a text. One that is given all the same may be a key, or a URL with a password. */
const NO_TEXT = /\(|object|array|function|client|facility/

/** The error message for an invalid option. `got` is omitted for secrets. */
export const invalidOption = (name: string, expected: string, ...got: [value?: unknown]): string =>
  `Invalid ${label(name)}: expected ${expected}${got.map((value) => `, got ${typeof value === 'string' && NO_TEXT.test(expected) ? 'a string' : shown(value)}`)}`

/** The text for the integers from `least` to `most`. */
export const integerRange = (most: number, least: number): string =>
  `an integer from ${least}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`}`

/**
 * Returns `value` if it is an integer from `least` to `most`.
 *
 * @throws RangeError that names the option. `x > NaN` is always false, so a NaN limit would disable the check.
 */
export function checkBound(name: string, value: unknown, most: number = Number.MAX_SAFE_INTEGER, least = 1): number {
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
  throw new RangeError(invalidOption(name, integerRange(most, least), value))
}

/**
 * Reads the limits that `defaults` names from `given`. A duration (`…Ms`) is at most a century.
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

/** The check of one option. */
export interface Rule {
  /** The expectation, as in error messages: "expected …". */
  readonly expected: string
  test(value: unknown): boolean
  readonly isRequired?: true
  /** Whether the value may hold a credential, so that no error shows it. */
  readonly isPrivate?: true
}

/** The rule of a required option. */
export interface RequiredRule extends Rule {
  readonly isRequired: true
}

/** A rule for each option of `O`; the compiler reports one that is missing. */
export type Shape<O> = { readonly [Name in keyof Required<O>]: undefined extends O[Name] ? Rule : RequiredRule }

const rule = (expected: string, test: (value: unknown) => boolean): Rule => ({ expected, test })

/** For an option that the factory checks itself, like a limit. */
export const ANYTHING = rule('any value', () => true)
export const FUNCTION = rule('a function', (value) => typeof value === 'function')
export const TEXT = rule('a string', (value) => typeof value === 'string')
export const FLAG = rule('true or false', (value) => typeof value === 'boolean')
export const LIST = rule('an array', Array.isArray)
export const OBJECT = rule('an object', (value) => value !== null && typeof value === 'object' && !Array.isArray(value))

/** An object or a function with these methods. */
export const withMethods = (...methods: string[]): Rule =>
  rule(`an object with ${methods.map((name) => `${name}()`).join(', ')}`, (value) =>
    methods.every((name) => typeof (value as Record<string, unknown> | null | undefined)?.[name] === 'function'),
  )

const nullable = ({ expected, test }: Rule): Rule =>
  rule(`${expected} or null`, (value) => value === null || test(value))

/** A hook; `null` turns it off. */
export const HOOK = nullable(FUNCTION)

export const required = (rule: Rule): RequiredRule => ({ ...rule, isRequired: true })

/** Rules for limits, which `resolveBounds` checks. */
export const boundRules = <N extends string>(bounds: Bounds<N>): Record<N, Rule> =>
  Object.fromEntries(Object.keys(bounds).map((name) => [name, ANYTHING])) as Record<N, Rule>

/**
 * Checks options against `shape`.
 *
 * @param path Prefix of the names in errors, with a dot: `timeouts.`.
 * @throws TypeError for an unknown, missing or invalid option; it names the option and what is expected.
 *
 * @example
 * checkOptions(options, { sites: required(withMethods('get')), onError: HOOK })
 */
export function checkOptions(given: unknown, shape: Readonly<Record<string, Rule>>, path = ''): void {
  if (!OBJECT.test(given)) throw new TypeError(invalidOption(path.slice(0, -1), 'an object', given))
  for (const name of Object.keys(given as object))
    if (!Object.hasOwn(shape, name)) throw unknownOption(path, name, Object.keys(shape))
  checkParts(given, shape, path)
}

/** `checkOptions` that ignores unknown names, for an object that is passed as a whole. */
export function checkParts(given: unknown, shape: Readonly<Record<string, Rule>>, path = ''): void {
  for (const [name, { expected, test, isRequired, isPrivate }] of Object.entries(shape)) {
    const value = (given as Readonly<Record<string, unknown>> | null | undefined)?.[name]
    if (value === undefined && !isRequired) continue
    if (value === undefined) throw missingOption(path + name, expected)
    if (!test(value)) throw new TypeError(invalidOption(path + name, expected, ...(isPrivate ? [] : [value])))
  }
}

/**
 * The default share of one user in a limit that all users share: a tenth, so that one user cannot use up most of it; two if
 * the limit is below twenty.
 */
export function defaultShare(bound: number): number {
  return Math.min(bound, Math.max(2, Math.floor(bound / 10)))
}
