/** Counts: exact where an inspector keeps an index, and otherwise a sample that says so. */
import * as z from 'zod'
import { WindowState, WindowStatus, WindowType } from '../contract/browser-windows.js'
import { Completeness, type SourceName } from '../contract/completeness.js'
import { ClientType, ConnectionStatus } from '../contract/connections.js'
import { ContextStatus, Ownership } from '../contract/contexts.js'
import { Timestamp, toTimestamp } from '../contract/ids.js'
import type { Ask, Awaitable, Indexed, Page, PageQuery } from '../contract/page.js'
import { answerOf, examinedOf, readOnce, type ViewAsk, walk } from './reading.js'

const Count = z.int().min(0)
const counts = { total: Count, completeness: Completeness, observed_at: Timestamp }

/** A count for every value of an enum, zero included. */
export function countsBy<Value extends string>(values: z.ZodEnum<Record<Value, Value>>) {
  return z.object(Object.fromEntries(values.options.map((value) => [value, Count])) as Record<Value, typeof Count>)
}

export const ConnectionCount = z.object({
  ...counts,
  by_status: countsBy(ConnectionStatus),
  by_client_type: countsBy(ClientType),
})
export const ContextCount = z.object({
  ...counts,
  by_status: countsBy(ContextStatus),
  by_client_type: countsBy(ClientType),
  by_ownership: countsBy(Ownership),
})
export const BrowserWindowCount = z.object({
  ...counts,
  by_status: countsBy(WindowStatus),
  by_ownership: countsBy(Ownership),
  by_type: countsBy(WindowType),
  by_state: countsBy(WindowState),
})

type Fields<Entry> = Partial<Record<keyof Entry & string, z.ZodEnum>>
type Counted<F> = { total: number } & {
  [K in keyof F & string as `by_${K}`]: Record<
    F[K] extends z.ZodType<infer Value extends string> ? Value : never,
    number
  >
}

function tallyOf<Entry, F extends Fields<Entry>>(fields: F, entries: Iterable<Entry>): Counted<F> {
  let total = 0
  const tallies: Record<string, Record<string, number>> = {}
  for (const [field, { options }] of Object.entries(fields) as [string, z.ZodEnum][])
    tallies[`by_${field}`] = Object.fromEntries(options.map((option) => [option, 0]))
  for (const entry of entries) {
    total += 1
    for (const field of Object.keys(fields) as (keyof Entry & string)[]) {
      const tally = tallies[`by_${field}`] as Record<string, number>
      const value = String(entry[field])
      // Counted nowhere but in the total, it would make the parts look smaller than the whole.
      if (!Object.hasOwn(tally, value)) throw new TypeError(`${field}: not one of its values`)
      tally[value] = (tally[value] ?? 0) + 1
    }
  }
  return { total, ...tallies } as Counted<F>
}

/**
 * Counts by `fields`: what `exact` answers, or else what a walk over `list` finds within the bound.
 */
export async function count<Entry, F extends Fields<Entry>, Exact extends { total: number } & Indexed>(
  source: SourceName,
  fields: F,
  from: {
    exact: () => Awaitable<Exact | null | undefined>
    list: (page: PageQuery, ask: Ask) => Awaitable<Page<Entry>>
  },
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
  const reading = await walk<Entry, Entry[]>(source, from.list, view, [], (entries, items) => entries.push(...items))
  const { value, completeness } = answerOf(reading, view)
  return { ...tallyOf(fields, value), completeness, observed_at }
}
