/** How a list becomes one that can be shown: shorter where it is too large, and without the records that cannot be shown. */

/** A list as far as its length is concerned. */
export interface LongList {
  items: unknown[]
  next_cursor?: unknown
  has_more?: unknown
  omitted?: unknown
  count?: unknown
  truncated?: unknown
  completeness?: { complete?: unknown; examined?: object; truncated_sources?: unknown }
}

/** The first half of a page whose order makes a token of any item. */
export function firstHalf(page: LongList, tokenOf: (item: never) => string): LongList {
  const items = page.items.slice(0, Math.floor(page.items.length / 2))
  return { ...page, items, next_cursor: tokenOf(items.at(-1) as never), has_more: true }
}

/** A page without the records at these places, which says so; it goes on behind them as before. */
export function withoutRecords(page: LongList, places: { has(place: number): boolean }): LongList {
  const items = Array.from(page.items).filter((_, place) => !places.has(place))
  const omitted = (typeof page.omitted === 'number' ? page.omitted : 0) + page.items.length - items.length
  const { completeness } = page
  const sources = Object.keys(completeness?.examined ?? {})
  const named = sources.length === 1 ? { truncated_sources: sources } : {}
  return {
    ...page,
    items,
    omitted,
    ...('count' in page ? { count: items.length } : {}),
    ...('truncated' in page ? { truncated: true } : {}),
    ...(completeness ? { completeness: { ...completeness, complete: false, ...named } } : {}),
  }
}
