/** Counts: exact where an inspector keeps an index, and otherwise a sample that says so. */
import * as z from 'zod'
import { BROWSER_WINDOW_FAMILY } from '../contract/browser-windows.js'
import { Completeness, type SourceName } from '../contract/completeness.js'
import { CONNECTION_FAMILY } from '../contract/connections.js'
import { CONTEXT_FAMILY } from '../contract/contexts.js'
import { type Counted, type CountedFields, countBy, UNKNOWN } from '../contract/counts.js'
import { Timestamp, toTimestamp } from '../contract/ids.js'
import type { Awaitable, Indexed } from '../contract/page.js'
import { answerOf, examinedOf, readOnce, type ViewAsk, type WalkedEntries, walk } from './reading.js'

const Count = z.int().min(0)
const counts = {
  total: Count.describe('All of them.'),
  completeness: Completeness.describe('What this answer does not know.'),
  observed_at: Timestamp.describe('When this was counted.'),
}

/** A count for every value of an enum, zero included. */
export function countsBy<Values extends z.ZodEnum>(values: Values) {
  const shape = Object.fromEntries(
    values.options.map((value) => [
      value,
      Count.describe(value === UNKNOWN ? 'Those that did not report it.' : `Those that are \`${value}\`.`),
    ]),
  )
  return z.object(shape as Record<z.output<Values>, typeof Count>)
}

/** The answer of a route that counts by `fields`. */
function countOf<F extends Readonly<Record<string, z.ZodEnum>>>(fields: F) {
  const by = Object.entries(fields).map(([field, values]) => [
    `by_${field}`,
    countsBy(values).describe(`The same by \`${field}\`, every value present.`),
  ])
  return z
    .object({ ...counts, ...(Object.fromEntries(by) as CountShape<F>) })
    .describe('How many there are: exact where an index is kept, a sample where `completeness` says so.')
}

type CountShape<F extends Readonly<Record<string, z.ZodEnum>>> = {
  [K in keyof F & string as `by_${K}`]: z.ZodObject<Record<z.output<F[K]>, typeof Count>>
}

export const ConnectionCount = countOf(CONNECTION_FAMILY.counted)
export const ContextCount = countOf(CONTEXT_FAMILY.counted)
export const BrowserWindowCount = countOf(BROWSER_WINDOW_FAMILY.counted)

/**
 * Counts by `fields`: what `exact` answers, or else what a walk over `list` finds within the bound.
 */
export async function count<Entry, F extends CountedFields<Entry>, Exact extends { total: number } & Indexed>(
  source: SourceName,
  fields: F,
  from: {
    exact: () => Awaitable<Exact | null | undefined>
  } & WalkedEntries<Entry>,
  view: ViewAsk,
): Promise<(Exact | Counted<F>) & { completeness: Completeness; observed_at: string }> {
  const observed_at = toTimestamp(view.now())
  // A number that is kept was counted before: without a word of its own the source looked at nothing.
  const kept = await readOnce(
    source,
    async () => (await from.exact()) ?? null,
    view,
    (exact) => examinedOf(exact, 0),
  )
  if (kept !== null) {
    const { value, completeness } = answerOf(kept, view)
    return { ...value, completeness, observed_at }
  }
  const reading = await walk<Entry, Entry[]>(source, from, view, [], (entries, items) => entries.push(...items))
  const { value, completeness } = answerOf(reading, view)
  return { ...countBy(fields, value), completeness, observed_at }
}
