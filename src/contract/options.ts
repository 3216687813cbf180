/** How a factory reads what a host gives it: each option is declared once, with what it must be and what holds without it. */
import * as z from 'zod'
import { shareOf, shown, TIMER_MAX_MS } from './checks.js'

/** The longest time that an option may name, a century: an instant that far ahead is still a date, and still exact. */
const DURATION_MAX_MS = 3_155_760_000_000

const isObject = (value: unknown) => value !== null && typeof value === 'object' && !Array.isArray(value)
const isFunction = (value: unknown): value is (...given: never[]) => unknown => typeof value === 'function'

/**
 * The options of a factory: any other is refused. What is said of one stands above it; editors show that, and the documents
 * are made of it.
 */
export const defineOptions = <S extends z.core.$ZodShape>(shape: S): z.ZodObject<S, z.core.$strict> =>
  z.strictObject(shape, {
    error: ({ code }) =>
      code === 'unrecognized_keys' ? `is unknown; known are ${Object.keys(shape).join(', ')}` : 'an object',
  }) as never

/** An option that is what `test` says. "`said`" ends the sentence "… must be". */
export const custom = <T>(said: string, test: (value: unknown) => boolean): z.ZodCustom<T, T> => z.custom<T>(test, said)

const WHOLE = 'a whole number'

/** A whole number: nothing is ever more than `NaN`, so such a bound lets everybody in. */
export const whole = (most: number = Number.MAX_SAFE_INTEGER, least = 1): z.ZodCustom<number, number> =>
  custom(
    `${WHOLE} from ${least}${most === Number.MAX_SAFE_INTEGER ? '' : ` to ${most}`}`,
    (value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most,
  )

type WithDefault = z.ZodDefault<z.ZodCustom<number, number>>

export const count = (fallback: number, most?: number): WithDefault => whole(most).default(fallback)
export const duration = (fallback: number, most: number = DURATION_MAX_MS): WithDefault => count(fallback, most)
/** How long a timer waits. */
export const timer = (fallback: number): WithDefault => count(fallback, TIMER_MAX_MS)

/** What holds where it is left out, of the options that are made of others. */
const DERIVED = new WeakMap<object, (read: Readonly<Record<string, number>>) => number>()

/** A bound that is made of others unless a host gives it. */
export function derived<N extends string>(make: (read: Readonly<Record<N, number>>) => number): WithDefault {
  const schema = whole().optional()
  DERIVED.set(schema, make)
  // Never undefined: `readOptions` fills it in.
  return schema as never
}

/** What one user may hold of the bound `name`, as `shareOf`. */
export const share = (name: string): WithDefault => derived((read) => shareOf(read[name] as number))

export const func = <F>(): z.ZodCustom<F, F> => custom('a function', isFunction)
/** A function that a host can silence. */
export const hook = <F>(): z.ZodOptional<z.ZodCustom<F | null, F | null>> =>
  custom<F | null>('a function, or null', (value) => value === null || isFunction(value)).optional()
export const text = (): z.ZodCustom<string, string> => custom('a string', (value) => typeof value === 'string')
export const flag = (): z.ZodCustom<boolean, boolean> => custom('true or false', (value) => typeof value === 'boolean')
export const list = <T>(): z.ZodCustom<T, T> => custom('a list', Array.isArray)
export const object = <T>(): z.ZodCustom<T, T> => custom('an object', isObject)

/** An object, or a function, that has these methods. */
export const having = <T>(...methods: string[]): z.ZodCustom<T, T> =>
  custom(`an object with ${methods.map((name) => `${name}()`).join(', ')}`, (value) =>
    methods.every((name) => isFunction((value as Record<string, unknown> | null | undefined)?.[name])),
  )

/** Options of an option, which may be left out. `I` names them in declarations. */
export const optionsOf = <I>(schema: z.ZodObject): z.ZodOptional<z.ZodType<I, I>> => schema.optional() as never

/** What a host may give, by the schema of it. */
export type Input<S extends z.ZodType> = z.input<S>
/** What is read of it. */
export type Read<S extends z.ZodType> = z.output<S>

/** What every factory with a clock of its own takes. */
export const Clocked = defineOptions({
  /** Epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
})
export interface Clocked extends Input<typeof Clocked> {}

/** `schema` and a clock. */
export const withClock = <S extends z.core.$ZodShape>(
  schema: z.ZodObject<S, z.core.$strict>,
): z.ZodObject<S & typeof Clocked.shape, z.core.$strict> =>
  defineOptions({ ...schema.shape, ...Clocked.shape }) as never

/**
 * What `schema` reads from `given`, with what holds for the options that are left out.
 *
 * @throws TypeError for an option that there is not, that is missing or that cannot be used, RangeError for a number that is
 * out of bounds. Both name the option and say what it must be.
 *
 * @example
 * const { maxSites } = readOptions(SiteOptions, options)
 */
export function readOptions<S extends z.ZodObject>(schema: S, given: unknown): z.output<S> {
  const { data, error } = schema.safeParse(given, { reportInput: true })
  if (error) throw toError(error.issues)
  const read = data as Record<string, number | undefined>
  for (const [name, option] of Object.entries(schema.shape)) {
    const make = DERIVED.get(option)
    if (make) read[name] ??= make(read as Record<string, number>)
  }
  return data as z.output<S>
}

/** `readOptions` of an object that may have more, as all facilities of a host are a connector's parts. */
export const readParts = <S extends z.ZodObject>(schema: S, given: unknown): z.output<S> =>
  readOptions(schema.strip(), given) as z.output<S>

function toError(issues: readonly z.core.$ZodIssue[]): Error {
  const issue = (issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]) as z.core.$ZodIssue
  const { path, message, input } = issue
  if (issue.code === 'unrecognized_keys')
    return new TypeError(`the option ${[...path, issue.keys[0]].join('.')} ${message}`)
  const sentence = `${path.join('.') || 'the options'} must be ${message}, not ${shown(input)}`
  return message.startsWith(WHOLE) ? new RangeError(sentence) : new TypeError(sentence)
}
