/** What an exact count promises: it is the count of the walk, with every enum value present. */
import { UNKNOWN } from '../contract/counts.js'
import type { Awaitable, Indexed, InspectionContext, Page, PageQuery } from '../contract/page.js'
import { CONTEXT, checkEqual, notTested, type Promised } from './expect.js'
import { filtersIn, type MakeInspector, walk } from './lists.js'

/** How a list is counted. */
interface CountContract<Inspector, Item extends object> {
  name: string
  list(inspector: Inspector, filter: Partial<Item>, page: PageQuery, ctx: InspectionContext): Awaitable<Page<Item>>
  /** Nothing where the inspector lacks it, `null` where no index answers. */
  count(inspector: Inspector, filter: Partial<Item>, ctx: InspectionContext): Awaitable<object | null> | undefined
  /** The enum of every field that is counted by. */
  by: Partial<Record<keyof Item & string, { options: readonly string[] }>>
  filters: readonly (keyof Item & string)[]
}

/** The case of one count. */
export function countCases<Inspector, Item extends object>(
  make: MakeInspector<Inspector>,
  { name, list, count, by, filters }: CountContract<Inspector, Item>,
): Promised[] {
  const run = async () => {
    const inspector = await make()
    if (!inspector) return notTested(`there is no ${name}`)
    const entries = (filter: Partial<Item>) => walk((page, ctx) => list(inspector, filter, page, ctx), 100, name)
    let isCounted = false
    for (const filter of [{}, ...filtersIn(await entries({}), filters)]) {
      const counted = await count(inspector, filter, CONTEXT)
      if (!counted) continue
      isCounted = true
      // What it cost, and whether it is a sample, are not part of what was counted.
      const { examined: _, truncated: __, ...numbers } = counted as object & Indexed
      checkEqual(numbers, tally(await entries(filter), by), `${name} under ${JSON.stringify(filter)}`)
    }
    if (!isCounted) notTested(`there is no ${name}, or no index answers it`)
  }
  return [{ name: `${name} counts what a walk finds, every value present`, run }]
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
