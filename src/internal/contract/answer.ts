/** Answers of records: an inspector returns what it knows of a record, and the answer has every field. */
import * as z from 'zod'
import { BadRecord, faultsOf, textOfFaults } from './bad-record.js'

const Count = z.int().min(0)

/** A list that an inspector left out. */
const NOT_GIVEN: readonly never[] = Object.freeze([])

type Unwrapped<T> =
  T extends z.ZodOptional<infer Inner> ? Unwrapped<Inner> : T extends z.ZodNullable<infer Inner> ? Inner : T
type Lists<S> = { [F in keyof S & string]: S[F] extends z.ZodArray ? F : never }[keyof S & string]
type OmittedName<F extends string> = F extends 'items' ? 'omitted' : `${F}_omitted`
type OmittedField = z.ZodPrefault<z.ZodNullable<typeof Count>>
type Field<T> = T extends z.ZodArray
  ? z.ZodPrefault<T>
  : z.ZodPrefault<z.ZodNullable<Unwrapped<T> extends z.ZodType ? Unwrapped<T> : never>>

/** The field `F`, or the answer of its part. */
type Part<S, N, F extends keyof S> = F extends keyof N ? N[F] : S[F]

/** The shape of an answer: the fields in `K` are required of an inspector, and the others may be absent. */
type AnswerShape<S extends z.ZodRawShape, K extends keyof S, N> = {
  [F in keyof S]: F extends K ? Part<S, N, F> : Field<Part<S, N, F>>
} & { [F in Lists<S> as F extends K ? never : OmittedName<F>]: OmittedField }

type Flat<T> = { [F in keyof T]: T[F] }

const omittedName = (list: string) => (list === 'items' ? 'omitted' : `${list}_omitted`)

function unwrapped(field: z.ZodType): z.ZodType {
  return field instanceof z.ZodOptional || field instanceof z.ZodNullable
    ? unwrapped(field.unwrap() as z.ZodType)
    : field
}

/** `field`, or `null` where it is absent. */
function nullableField(field: z.ZodType): z.ZodType {
  const made = unwrapped(field).nullable().prefault(null)
  return field.description === undefined ? made : made.describe(field.description)
}

/**
 * Returns the schema of the answer with the record `whole`. Its input is what an inspector returns: only the `required`
 * fields must be there, and the others are checked if they are. Its output has every field: one that was absent is
 * `null`. An absent list is `[]` with `<name>_omitted: null`; that number is 0 for a list that was given without it.
 *
 * @param nested The answers of its parts, by the names of their fields.
 */
export function answerOf<
  S extends z.ZodRawShape,
  const K extends keyof S & string,
  N extends Partial<Record<keyof S, z.ZodType>> = Record<never, never>,
>(
  whole: z.ZodObject<S>,
  required: readonly K[],
  nested: N = {} as N,
): z.ZodObject<Extract<Flat<AnswerShape<S, K, N>>, z.ZodRawShape>, z.core.$strip> {
  const shape: Record<string, z.ZodType> = {}
  const lists: string[] = []
  for (const [name, own] of Object.entries(whole.shape) as [string, z.ZodType][]) {
    const part = (nested as Record<string, z.ZodType>)[name] ?? own
    const field = own.description === undefined ? part : part.describe(own.description)
    if ((required as readonly string[]).includes(name)) shape[name] = field
    else if (field instanceof z.ZodArray) {
      lists.push(name)
      // A default that is a function is passed on as it is, so that it's found below.
      shape[name] = field.default(() => NOT_GIVEN as never)
      if (!(omittedName(name) in whole.shape))
        shape[omittedName(name)] = Count.nullable()
          .default(() => Number.NaN)
          .describe(`Entries that \`${name}\` does not list; \`null\` if not known.`)
    } else shape[name] = nullableField(field)
  }
  const answer = whole.description === undefined ? z.object(shape) : z.object(shape).describe(whole.description)
  if (lists.length === 0) return answer as never
  return answer.overwrite((record: Record<string, unknown>) => {
    for (const list of lists) {
      if (record[list] === NOT_GIVEN) Object.assign(record, { [list]: [], [omittedName(list)]: null })
      else if (Number.isNaN(record[omittedName(list)])) record[omittedName(list)] = 0
    }
    return record as never
  }) as never
}

/** Fields of a summary that cannot be shown. */
export const OmittedFields = z
  .int()
  .min(1)
  .optional()
  .describe('Fields that cannot be shown, which are `null`. Absent: none.')

/**
 * Reads a summary. A field that is not what `schema` accepts is not known: it is passed to `onError` by its name, and
 * counted in `omitted`.
 *
 * @throws ZodError for a value that is no object, or whose identity is invalid.
 */
export function readSummary<S extends z.ZodObject>(
  schema: S,
  summary: unknown,
  onError: ((error: unknown) => void) | undefined,
): z.output<S> & { omitted?: number } {
  const read = schema.safeParse(summary)
  if (read.success) return read.data as never
  const invalid = new Set(read.error.issues.map(({ path }) => String(path[0] ?? '')))
  const isKnown = (name: string) => (schema.shape[name] as z.ZodType).safeParse(undefined).success
  if (![...invalid].every((name) => Object.hasOwn(schema.shape, name) && isKnown(name))) throw read.error
  const fields = faultsOf(read.error)
  onError?.(new BadRecord(`the summary lacks ${textOfFaults(fields)}`, { id: null, fields }, { cause: read.error }))
  const others = Object.keys(schema.shape).filter((name) => !invalid.has(name))
  const rest = Object.fromEntries(others.map((name) => [name, Reflect.get(summary as object, name)]))
  return { ...(schema.parse(rest) as object), omitted: invalid.size } as never
}
