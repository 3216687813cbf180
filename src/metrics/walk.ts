/** What a scrape makes of a list within its bound: entries to count, for sources that keep no number of what they hold. */
import { BadRecord } from '../contract/bad-record.js'
import type { SourceName } from '../contract/completeness.js'
import { type CountedFields, countBy } from '../contract/counts.js'
import type { Awaitable, Indexed } from '../contract/page.js'
import { budgetOf, type WalkedEntries, walk } from '../views/reading.js'
import type { Scrape } from './family.js'

/**
 * The entries of a list within the bound. `complete`: it was read to its end, and nothing of it was left out.
 *
 * @throws what the list throws, after some of its pages too: of half a list that failed nobody knows what it is half of.
 */
export async function listed<T>(source: SourceName, from: WalkedEntries<T>, { view }: Scrape, most?: number) {
  const budget = budgetOf(view)
  budget.entries = Math.min(budget.entries, most ?? budget.entries)
  // A record that was left out is told of here; what is thrown, by whoever catches it.
  const onError = (named: SourceName, error: unknown) => void (error instanceof BadRecord && view.onError(named, error))
  const add = (entries: T[], items: T[]) => void entries.push(...items)
  const reading = await walk<T, T[]>(source, from, { ...view, onError }, [], add, budget)
  if ('error' in reading || reading.value === undefined) throw reading.error
  return { value: reading.value, complete: !reading.truncated }
}

/** `listed`, with how many entries a sample has; `null` where they are all. */
export async function sampled<T>(source: SourceName, from: WalkedEntries<T>, scrape: Scrape) {
  const { value: entries, complete } = await listed(source, from, scrape)
  return { value: { entries, sampleSize: complete ? null : entries.length }, complete }
}

/** Counts that a source keeps, or else those of its entries within the bound. */
export async function counted<Entry, F extends CountedFields<Entry>, Exact>(
  source: SourceName,
  fields: F,
  from: WalkedEntries<Entry> & {
    exact(): Awaitable<(Indexed & { total: number }) | null | undefined>
    /** Reads what a source says that it keeps. */
    counts: { parse(value: unknown): Exact }
  },
  scrape: Scrape,
) {
  const kept = await from.exact()
  if (kept !== null && kept !== undefined)
    return {
      // A store may count by reading, and then no further than it may look.
      value: { counts: from.counts.parse(kept), sampleSize: kept.truncated === true ? kept.total : null },
      complete: kept.truncated !== true,
    }
  const { value, complete } = await sampled(source, from, scrape)
  const counts = from.counts.parse(countBy<Entry, F>(fields, value.entries))
  return { value: { counts, sampleSize: value.sampleSize }, complete }
}
