/** A clock that only the test moves, and the walk over all pages of a list, for every family's battery. */
import type { Awaitable, InspectionContext, Page, PageQuery } from '../../src/internal/contract/page.js'

export interface Clock {
  now(): number
  advance(ms: number): void
}

const START = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

export function createClock(): Clock {
  let time = START
  return {
    now: () => time,
    advance(ms) {
      time += ms
    },
  }
}

/** The instant `ms` after the clock's start, as it stands on the wire. */
export const at = (ms = 0) => new Date(START + ms).toISOString()

export const ASK: InspectionContext = { signal: new AbortController().signal }

export const FIRST: PageQuery = { limit: 100, cursor: null }

/** All items of a list, page by page. A list that does not end fails. */
export async function walk<T>(list: (page: PageQuery) => Awaitable<Page<T>>, limit = 100): Promise<T[]> {
  const items: T[] = []
  let cursor: string | null = null
  for (let pages = 0; pages < 1_000; pages++) {
    const page = await list({ limit, cursor })
    items.push(...page.items)
    if (!page.has_more) return items
    cursor = page.next_cursor
  }
  throw new Error('the list does not end')
}
