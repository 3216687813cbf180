/** How an answer that is too large becomes a smaller one: a shorter page that goes on by its cursor. */

/** A list as far as its length is concerned. */
export interface LongList {
  items: unknown[]
  next_cursor?: unknown
  has_more?: unknown
  omitted?: unknown
  count?: unknown
  completeness?: { complete?: unknown }
}

/** The first half of a page whose order makes a token of any item. */
export function firstHalf(page: LongList, tokenOf: (item: never) => string): LongList {
  const items = page.items.slice(0, Math.floor(page.items.length / 2))
  return { ...page, items, next_cursor: tokenOf(items.at(-1) as never), has_more: true }
}

/** A page without its one record, which is too large for any answer; it goes on behind it. */
export function withoutRecord(page: LongList): LongList {
  const omitted = (typeof page.omitted === 'number' ? page.omitted : 0) + 1
  const { completeness } = page
  return {
    ...page,
    items: [],
    omitted,
    ...('count' in page ? { count: 0 } : {}),
    ...(completeness ? { completeness: { ...completeness, complete: false } } : {}),
  }
}
