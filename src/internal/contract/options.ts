/** Declares the options of a factory once: types, defaults and the public interface. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import {
  defaultShare,
  integerRange,
  invalidOption,
  missingOption,
  TIMER_MAX_MS,
  unknownName,
  unknownOption,
} from './checks.js'

/** The longest duration, a century: a date that far ahead is still exact. */
const DURATION_MAX_MS = 3_155_760_000_000

const isObject = (value: unknown) => value !== null && typeof value === 'object' && !Array.isArray(value)
const isFunction = (value: unknown): value is (...given: never[]) => unknown => typeof value === 'function'

/**
 * Declares the options of a factory. The comment above an option is its hover text in editors and its row in the documentation.
 *
 * @example
 * const SiteOptions = defineOptions({ maxSites: count(1_000), onError: hook<(error: unknown) => void>() })
 * export interface SiteOptions extends Input<typeof SiteOptions> {}
 */
export const defineOptions = <S extends z.core.$ZodShape>(shape: S): z.ZodObject<S, z.core.$strict> =>
  z.strictObject(shape, {
    error: ({ code }) => (code === 'unrecognized_keys' ? Object.keys(shape).join(', ') : 'an object'),
  }) as never

/** An option that passes `test`. Errors say "expected `expected`". */
export const custom = <T>(expected: string, test: (value: unknown) => boolean): z.ZodCustom<T, T> =>
  z.custom<T>(test, expected)

/** An option that the factory checks itself. */
export const unchecked = <T>(): z.ZodOptional<z.ZodCustom<T, T>> => custom<T>('any value', () => true).optional()

/** Whether `value` is an origin as browsers send it: scheme, host and a port that is not the default, nothing else. */
export function isOrigin(value: unknown): boolean {
  if (typeof value !== 'string' || !/^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*,]+$/.test(value)) return false
  return !/^https?:/.test(value) || (URL.canParse(value) && new URL(value).origin === value)
}

/** Exact origins of pages, for `cors`. */
export const origins = () =>
  custom<readonly string[]>(
    'origins as browsers send them, like "https://ops.example.org"; no "*", no path, no default port',
    (value) => Array.isArray(value) && value.every(isOrigin),
  ).default([])

/** `custom` for a value that may hold a credential: no error shows it. */
export const secret = (expected: string, test: (value: unknown) => boolean): z.ZodCustom<string, string> =>
  z.custom<string>(test, { error: expected, params: { isSecret: true } })

/** An integer. `x > NaN` is always false, so a NaN limit would disable the check. */
export const whole = (most: number = Number.MAX_SAFE_INTEGER, least = 1): z.ZodCustom<number, number> =>
  custom(
    integerRange(most, least),
    (value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most,
  )

type WithDefault = z.ZodDefault<z.ZodCustom<number, number>>

export const count = (fallback: number, most?: number): WithDefault => whole(most).default(fallback)
export const duration = (fallback: number, most: number = DURATION_MAX_MS): WithDefault => count(fallback, most)
/** A time that a timer waits for. */
export const timer = (fallback: number): WithDefault => count(fallback, TIMER_MAX_MS)

/** The defaults that depend on other options. */
const DERIVED = new WeakMap<object, (read: Readonly<Record<string, number>>) => number>()

/** A limit whose default depends on the options before it. */
export function derived<N extends string>(make: (read: Readonly<Record<N, number>>) => number): WithDefault {
  const schema = whole().optional()
  DERIVED.set(schema, make)
  // `readOptions` sets it, so its output is never undefined.
  return schema as never
}

/** The share of one user in the limit `name`; see `defaultShare`. */
export const share = (name: string): WithDefault => derived((read) => defaultShare(read[name] as number))

export const func = <F>(): z.ZodCustom<F, F> => custom('a function', isFunction)
/** A hook; `null` turns it off. */
export const hook = <F>(): z.ZodOptional<z.ZodCustom<F | null, F | null>> =>
  custom<F | null>('a function or null', (value) => value === null || isFunction(value)).optional()
export const text = (): z.ZodCustom<string, string> => custom('a string', (value) => typeof value === 'string')
export const textOrNull = (): z.ZodCustom<string | null, string | null> =>
  custom('a string or null', (value) => value === null || typeof value === 'string')
export const flag = (): z.ZodCustom<boolean, boolean> => custom('true or false', (value) => typeof value === 'boolean')
export const list = <T>(): z.ZodCustom<T, T> => custom('an array', Array.isArray)
export const object = <T>(): z.ZodCustom<T, T> => custom('an object', isObject)

/** An object or a function with `methods`. */
export const withMethods = <T>(...methods: string[]): z.ZodCustom<T, T> => customWithMethods('an object', methods)
/** `withMethods` that names the factories which return one: errors say "expected `factories` or an object with …". */
export const madeBy = <T>(factories: string, ...methods: string[]): z.ZodCustom<T, T> =>
  customWithMethods(`${factories} or an object`, methods)

const customWithMethods = <T>(expected: string, methods: string[]) =>
  custom<T>(`${expected} with ${methods.map((name) => `${name}()`).join(', ')}`, (value) =>
    methods.every((name) => isFunction((value as Record<string, unknown> | null | undefined)?.[name])),
  )

/** An optional object with options of its own. `I` is its name in declarations. */
export const optionsOf = <I>(schema: z.ZodObject): z.ZodOptional<z.ZodType<I, I>> => schema.optional() as never

export type Schema = z.ZodType
/** The type of the options that a caller passes. */
export type Input<S extends z.ZodType> = z.input<S>
/** The type of the options with their defaults. */
export type Read<S extends z.ZodType> = z.output<S>

/** The clock option that most factories have. */
export const Clocked = defineOptions({
  /** Epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
})
export interface Clocked extends Input<typeof Clocked> {}

/** Adds the clock option to `schema`. */
export const withClock = <S extends z.core.$ZodShape>(
  schema: z.ZodObject<S, z.core.$strict>,
): z.ZodObject<S & typeof Clocked.shape, z.core.$strict> =>
  defineOptions({ ...schema.shape, ...Clocked.shape }) as never

/**
 * Checks `given` and returns it with the defaults of the options that it leaves out.
 *
 * @throws TypeError for an unknown, missing or invalid option, RangeError for a number out of bounds. Both name the option
 * and what is expected.
 *
 * @example
 * const { maxSites } = readOptions(SiteOptions, options)
 */
export function readOptions<S extends z.ZodObject>(schema: S, given: unknown): z.output<S> {
  // Options are read once, so compiling a parser takes longer than it saves.
  const { data, error } = schema.safeParse(given, { reportInput: true, jitless: true })
  if (error) throw toError(error.issues)
  const read = data as Record<string, number | undefined>
  for (const [name, option] of Object.entries(schema.shape)) {
    const make = DERIVED.get(option)
    if (make) read[name] ??= make(read as Record<string, number>)
  }
  return data as z.output<S>
}

/** `readOptions` that ignores unknown names, for an object that is passed as a whole. */
export const readParts = <S extends z.ZodObject>(schema: S, given: unknown): z.output<S> =>
  readOptions(schema.strip(), given) as z.output<S>

function toError(issues: readonly z.core.$ZodIssue[]): Error {
  const issue = (issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]) as z.core.$ZodIssue
  const { path, message, input } = issue
  const name = path.join('.')
  if (issue.code === 'unrecognized_keys')
    return unknownOption(path.map((part) => `${String(part)}.`).join(''), issue.keys[0] as string, message.split(', '))
  if (input === undefined && name !== '') return missingOption(name, message)
  const isSecret = issue.code === 'custom' && issue.params?.isSecret
  const text = invalidOption(name, message, ...(isSecret ? [] : [input]))
  return message.startsWith('an integer') ? new RangeError(text) : new TypeError(text)
}

// Validates inputs of facilities.

/** An abort signal of any realm, recognised by its methods. */
export const Signal = z.custom<AbortSignal>((value) => {
  const { aborted, addEventListener, removeEventListener } = Object(value)
  return typeof aborted === 'boolean' && [addEventListener, removeEventListener].every((f) => typeof f === 'function')
}, 'must be an AbortSignal')

/**
 * Declares the object that a host passes to a call. `parseInput` refuses a field that it does not have by name, so that a
 * mistyped one does not pass for one that was left out.
 *
 * @example
 * const ClaimInput = inputObject({ user_id: Id, message_id: Id })
 */
export const inputObject = <S extends z.core.$ZodShape>(shape: S): z.ZodObject<S, z.core.$strict> =>
  z.strictObject(shape, {
    error: ({ code, keys, path = [] }) =>
      code === 'unrecognized_keys'
        ? unknownName('field', path.map((part) => `${String(part)}.`).join(''), keys[0] as string, Object.keys(shape))
        : undefined,
  })

/** Fields that say who a client is. */
export const IDENTITY = ['user_id', 'client_id', 'instance_id', 'client_type', 'connection_id']
/**
 * Fields that a call ignores where it does not need them, so that a host can pass its record of a client: also what else the record
 * has, if the call is about a client.
 */
const ignoredWith = (has: (name: string) => boolean) =>
  has('client_id') ? [...IDENTITY, 'metadata', 'actions'] : IDENTITY

/**
 * Refuses a field of `given` that is not `valid`; those of `ignoredWith` are ignored. For an object that is not copied, or
 * whose fields are checked elsewhere.
 *
 * @param path Prefix of the names in errors, with a dot: `outcome.`.
 * @throws Refusal `invalid_input`
 */
export function checkFields(given: unknown, valid: readonly string[], path = ''): void {
  if (!isObject(given)) throw new Refusal('invalid_input', `${path.slice(0, -1) || 'input'}: must be an object`)
  const ignored = ignoredWith((name) => valid.includes(name))
  for (const name of Object.keys(given as object))
    if (!valid.includes(name) && !ignored.includes(name))
      throw new Refusal('invalid_input', unknownName('field', path, name, valid))
}

/** The fields of `ignoredWith` that a schema does not have, and its fields that are objects with fields of their own. */
interface Ignored {
  readonly names: readonly string[]
  readonly nested: readonly (readonly [name: string, schema: z.ZodObject])[]
}

/** A call in memory takes a few microseconds, so they are kept. */
const ignoredBy = new WeakMap<z.ZodType, Ignored>()

function objectIn(schema: unknown): z.ZodObject | undefined {
  if (schema instanceof z.ZodDefault || schema instanceof z.ZodNullable || schema instanceof z.ZodOptional)
    return objectIn(schema.unwrap())
  return schema instanceof z.ZodObject ? schema : undefined
}

function ignoredIn(schema: z.ZodType): Ignored {
  const known = ignoredBy.get(schema)
  if (known) return known
  const shape: object = schema instanceof z.ZodObject ? schema.shape : {}
  const ignored: Ignored = {
    names: schema instanceof z.ZodObject ? ignoredWith((name) => name in shape).filter((name) => !(name in shape)) : [],
    nested: Object.entries(shape).flatMap(([name, field]) => {
      const own = objectIn(field)
      return own ? [[name, own] as const] : []
    }),
  }
  ignoredBy.set(schema, ignored)
  return ignored
}

/** Returns `value` without the fields of `ignoredWith` that `schema` does not have. */
function withoutIgnored(schema: z.ZodType, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  const { names, nested } = ignoredIn(schema)
  let given = value as Readonly<Record<string, unknown>>
  if (names.some((name) => name in value))
    given = Object.fromEntries(Object.entries(value).filter(([key]) => !names.includes(key)))
  for (const [name, own] of nested) {
    const inner = withoutIgnored(own, given[name])
    if (inner !== given[name]) given = { ...given, [name]: inner }
  }
  return given
}

/** Returns the text about an unknown field among `issues`, those of a union's members included. */
function unknownFieldIn(issues: readonly z.core.$ZodIssue[]): string | undefined {
  for (const issue of issues) {
    if (issue.code === 'unrecognized_keys') return issue.message
    const inner = issue.code === 'invalid_union' ? unknownFieldIn(issue.errors.flat()) : undefined
    if (inner !== undefined) return inner
  }
  return undefined
}

/**
 * Returns `value` as `schema` reads it.
 *
 * @throws Refusal `invalid_input`; its detail names the field and the rule, never the value of a field.
 */
export function parseInput<T extends z.ZodType>(schema: T, value: unknown): z.output<T> {
  const read = schema.safeParse(withoutIgnored(schema, value))
  if (read.success) return read.data
  const { issues } = read.error
  const unknown = unknownFieldIn(issues)
  if (unknown !== undefined) throw new Refusal('invalid_input', unknown)
  const [issue] = issues
  throw new Refusal('invalid_input', `${issue?.path.map(String).join('.') || 'input'}: ${issue?.message}`)
}
