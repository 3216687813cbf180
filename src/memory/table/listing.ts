/**
 * Records in the order of arrival, with indexes of fields that never change: paged lists of records that do not belong
 * to one user.
 */
import {
  type Filter,
  matcherOf,
  type Order,
  type Page,
  type PageQuery,
  parseSequence,
} from '../../internal/contract/page.js'
import { entriesFrom } from './field-index.js'
import { byNumber, OrderedIndex } from './ordered-index.js'

/** An entry with a position in the order of arrival. */
export interface Sequenced {
  readonly sequence: number
}

/**
 * Returns a page of the records that `view` returns for the entries of `from` under `filter`, examining at most `bound`;
 * `undefined` is skipped.
 *
 * @throws Refusal `invalid_cursor`.
 */
export function pageOf<E extends Sequenced, R extends object>(
  from: (sequence: number, order: Order | undefined) => Iterable<E>,
  filter: Filter,
  page: PageQuery,
  view: (entry: E) => R | undefined,
  bound: number,
): Page<R> {
  const items: R[] = []
  const { order } = page
  let last = parseSequence(page.cursor, order)
  let examined = 0
  const matches = matcherOf(filter)
  for (const entry of from(last, order)) {
    if (items.length === page.limit || examined === bound)
      return { items, next_cursor: String(last), has_more: true, examined }
    examined++
    last = entry.sequence
    const record = view(entry)
    if (record && matches(record)) items.push(record)
  }
  return { items, next_cursor: null, has_more: false, examined }
}

type Index<E> = OrderedIndex<number, E>

/** Creates a listing with an index for each of `fields`, whose functions return the field of an entry. */
export function createListing<E extends Sequenced>(fields: Readonly<Record<string, (entry: E) => string>>) {
  const newIndex = (): Index<E> => new OrderedIndex(({ sequence }: E) => sequence, byNumber)
  const all = newIndex()
  const indexes = new Map(Object.keys(fields).map((field) => [field, new Map<string, Index<E>>()]))
  let arrivals = 0

  function narrowest(filter: Readonly<Record<string, unknown>>): Index<E> | undefined {
    let found: Index<E> | undefined = all
    for (const [field, byValue] of indexes) {
      const value = filter[field]
      if (typeof value !== 'string') continue
      const own = byValue.get(value)
      if (own === undefined) return undefined
      if (found && own.size < found.size) found = own
    }
    return found
  }

  return {
    /** Returns the position of the next entry. */
    arrive: (): number => ++arrivals,

    /** Returns the oldest entry. */
    first: (): E | undefined => all.first(),

    /** Returns the number of entries with `value` in a field. */
    sizeOf: (field: string, value: string): number => indexes.get(field)?.get(value)?.size ?? 0,

    add(entry: E): void {
      all.insert(entry)
      for (const [field, byValue] of indexes) {
        const value = fields[field]?.(entry) as string
        const own = byValue.get(value) ?? newIndex()
        byValue.set(value, own)
        own.insert(entry)
      }
    },

    remove(entry: E): void {
      all.delete(entry.sequence)
      for (const [field, byValue] of indexes) {
        const value = fields[field]?.(entry) as string
        const own = byValue.get(value)
        own?.delete(entry.sequence)
        if (own?.size === 0) byValue.delete(value)
      }
    },

    /**
     * Returns a page of the records that `view` returns for entries under `filter`, examining at most `bound`;
     * `undefined` is skipped. Oldest first by default. `view` must not change the listing.
     *
     * @throws Refusal `invalid_cursor`.
     */
    list<R extends object>(
      filter: Readonly<Record<string, unknown>>,
      page: PageQuery,
      view: (entry: E) => R | undefined,
      bound: number,
    ): Page<R> {
      const index = narrowest(filter)
      return pageOf((last, order) => (index ? entriesFrom(index, last, order) : []), filter, page, view, bound)
    },
  }
}
