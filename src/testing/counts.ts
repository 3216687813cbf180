/** Contract of exact counts: equal to the counts of a walk, with every enum value present. */
import { UNKNOWN } from '../internal/contract/observation.js'
import type { Awaitable, Indexed, InspectionContext, Page, PageQuery } from '../internal/contract/page.js'
import { CONTEXT, checkEqual, notTested, type Promised } from './expect.js'
import { type FilterOf, filtersIn, type MakeInspector, timesIn, walk } from './lists.js'

/** How a list is counted. */
interface CountContract<Inspector, Item extends object> {
  name: string
  list(inspector: Inspector, filter: FilterOf<Item>, page: PageQuery, ctx: InspectionContext): Awaitable<Page<Item>>
  /** Returns `undefined` if the inspector does not implement it, `null` if it has no index for the filter. */
  count(inspector: Inspector, filter: FilterOf<Item>, ctx: InspectionContext): Awaitable<object | null> | undefined
  /** Enum of each field with a breakdown. */
  by: Partial<Record<keyof Item & string, { options: readonly string[] }>>
  filters: readonly (keyof Item & string)[]
  /** Filters by a time. */
  times?: readonly string[]
}

/** Returns the case of one count. */
export function countCases<Inspector, Item extends object>(
  make: MakeInspector<Inspector>,
  { name, list, count, by, filters, times }: CountContract<Inspector, Item>,
): Promised[] {
  const run = async () => {
    const inspector = await make()
    if (!inspector) return notTested(`${name} is not implemented`)
    const entries = (filter: FilterOf<Item>) => walk((page, ctx) => list(inspector, filter, page, ctx), 100, name)
    let isCounted = false
    const unknown = new Set<string>()
    const all = await entries({})
    for (const filter of [{}, ...filtersIn(all, filters), ...timesIn(all, times)]) {
      const counted = await count(inspector, filter, CONTEXT)
      if (!counted) continue
      isCounted = true
      // `examined` and `truncated` are not part of the counts.
      const { examined: _, truncated: __, ...numbers } = counted as object & Indexed
      const given = Object.fromEntries(Object.entries(numbers).filter(([, value]) => value != null))
      const expected = Object.entries(tally(await entries(filter), by))
      // What it leaves out is unknown.
      for (const [field] of expected) if (!(field in given)) unknown.add(field)
      const known = Object.fromEntries(expected.filter(([field]) => field in given))
      checkEqual(given, known, `${name} under ${JSON.stringify(filter)}`)
    }
    if (unknown.size > 0) notTested(`${[...unknown].join(', ')}: not known`)
    if (!isCounted) notTested(`${name} is not implemented, or has no index`)
  }
  return [{ name: `${name} returns the counts of a walk, with every value present`, run }]
}

function tally<Item extends object>(entries: readonly Item[], by: CountContract<never, Item>['by']) {
  const fields = Object.entries(by) as [keyof Item & string, { options: readonly string[] }][]
  return {
    total: entries.length,
    ...Object.fromEntries(
      fields.map(([field, { options }]) => [
        `by_${field}`,
        Object.fromEntries(
          options.map((option) => [option, entries.filter((entry) => (entry[field] ?? UNKNOWN) === option).length]),
        ),
      ]),
    ),
  }
}
