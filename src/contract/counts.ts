/** How entries are counted: in all, and by each value of the fields that their family names. */
import * as z from 'zod'

/** The bucket for entries whose field is `null`: the value was not reported. */
export const UNKNOWN = 'unknown'

/** `values` and the bucket `unknown`, for a field that can be `null`. */
export const orUnknown = <const Values extends readonly string[]>({ options }: { options: Values }) =>
  z.enum([...options, UNKNOWN] as [...Values, typeof UNKNOWN])

/** The fields of an entry that it is counted by, each with its values. */
export type CountedFields<Entry = never> = Readonly<Partial<Record<keyof Entry & string, z.ZodEnum>>>

/** Counts by `F`: `total`, and one `by_…` for each field. */
export type Counted<F> = { total: number } & {
  [K in keyof F & string as `by_${K}`]: Record<
    F[K] extends z.ZodType<infer Value extends string> ? Value : never,
    number
  >
}

/**
 * Counts `entries`, every value present. A `null` field counts as `unknown`.
 *
 * @throws TypeError for an invalid value: counted in the total only, it would make the parts look smaller than the
 * whole.
 */
export function countBy<Entry, F extends CountedFields<Entry>>(fields: F, entries: Iterable<Entry>): Counted<F> {
  let total = 0
  const counts: Record<string, Record<string, number>> = {}
  for (const [field, { options }] of Object.entries(fields) as [string, z.ZodEnum][])
    counts[`by_${field}`] = Object.fromEntries(options.map((option) => [option, 0]))
  for (const entry of entries) {
    total += 1
    for (const field of Object.keys(fields) as (keyof Entry & string)[]) {
      const values = counts[`by_${field}`] as Record<string, number>
      const value = String(entry[field] ?? UNKNOWN)
      if (!Object.hasOwn(values, value))
        throw new TypeError(`${field} of an entry must be one of ${Object.keys(values).join(', ')}`)
      values[value] = (values[value] ?? 0) + 1
    }
  }
  return { total, ...counts } as Counted<F>
}
