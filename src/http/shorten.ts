/** Shortens lists: fewer records if too large, and without records that cannot be shown. */

/** The members of a list that matter for shortening. */
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

/** Returns the page without the records at these indexes, and counts them as omitted. Paging continues unchanged. */
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
