/** Counts by reading: exact within the bound on examined entries, and nothing beyond it. */
import { compareIds } from '../../contract/ids.js'
import { EXAMINED_MAX, OBSERVED_MAX, PAGE_MAX } from '../../contract/limits.js'
import type { Ask, Page } from '../../contract/page.js'
import type { Store } from '../store.js'
import { readPage } from './pages.js'
import type { TableReader } from './rows.js'

/** All records under `filter`, or `null` where more than 10,000 entries would have to be examined. */
export async function countAll<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  filter: Readonly<Record<string, unknown>>,
  ask: Ask,
): Promise<R[] | null> {
  const records: R[] = []
  let cursor: string | null = null
  for (let examined = 0; examined < EXAMINED_MAX; examined += PAGE_MAX) {
    const page: Page<R> = await readPage(store, table, filter, { limit: PAGE_MAX, cursor }, ask)
    records.push(...page.items)
    if (!page.has_more) return records
    cursor = page.next_cursor
  }
  return null
}

/** How many of `entries` there are of each value, every value present. */
export function tally<V extends string, T>(values: readonly V[], entries: readonly T[], of: (entry: T) => V) {
  const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<V, number>
  for (const entry of entries) counts[of(entry)]++
  return counts
}

/** The clients that `records` name, sorted, at most 100 of them. */
export function clientIdsOf(records: readonly { client_id: string }[]): { ids: string[]; cut: boolean } {
  const ids = [...new Set(records.map(({ client_id }) => client_id))].sort(compareIds)
  return { ids: ids.slice(0, OBSERVED_MAX), cut: ids.length > OBSERVED_MAX }
}
