/** How the tests of the views ask, and sources that misbehave on purpose. */
import type { Page, PageQuery } from '../../src/internal/contract/page.js'
import type { ViewContext } from '../../src/internal/views/reading.js'
import { NOW } from '../diagnostics/world.js'

/** What accompanies a view in these tests; what it errors is kept. */
export function createInspectionContext({
  examined = 10_000,
  ...over
}: Partial<ViewContext> & { examined?: number } = {}) {
  const errors: [source: string, error: unknown][] = []
  const controller = new AbortController()
  const ctx: ViewContext = {
    ctx: { signal: controller.signal, limits: { examined } },
    now: () => NOW,
    onError: (source, error) => errors.push([source, error]),
    ...over,
  }
  return { ctx, errors, stop: () => controller.abort(new Error('the deadline')) }
}

export const FIRST: PageQuery = { limit: 100, cursor: null }

/** A list over `entries` in pages as large as is asked for, which counts what it handed out. */
export function listOf<Entry extends object>(entries: readonly Entry[]) {
  const served = { pages: 0, items: 0, largest: 0 }
  const list = (filter: object, { limit, cursor }: PageQuery): Page<Entry> => {
    const found = entries.filter((entry) =>
      Object.entries(filter).every(([name, value]) => entry[name as keyof Entry] === value),
    )
    const start = Number(cursor ?? 0)
    const items = found.slice(start, start + limit)
    served.pages += 1
    served.items += items.length
    served.largest = Math.max(served.largest, limit)
    const has_more = start + limit < found.length
    return { items, next_cursor: has_more ? String(start + limit) : null, has_more }
  }
  return { list, served }
}

export const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))

export const never = () => new Promise<never>(() => {})
