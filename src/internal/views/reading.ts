/** Reads one source for a view: in bounded pages, under the deadline, and reports how far it was read. */

import type * as z from 'zod'
import { raceAbort } from '../async/abort.js'
import { beginSlice, betweenSlices } from '../async/turns.js'
import { BadRecord, readRecord } from '../contract/bad-record.js'
import type { Completeness, SourceName } from '../contract/capabilities.js'
import { PAGE_MAX, SAMPLE_PAGES_MAX } from '../contract/limits.js'
import {
  type Awaitable,
  type Examined,
  examinedMax,
  type Indexed,
  type InspectionContext,
  type Page,
  type PageQuery,
  scanLimit,
  withOnError,
  withScanBudget,
} from '../contract/page.js'
import { Refusal } from '../refusal.js'

/** Context of a view: the request context of its inspectors, the bound per source, the clock, and the error hook. */
export interface ViewContext {
  /** Passed to every inspector call: the signal, and the bounds of the request. */
  readonly ctx: InspectionContext
  now(): number
  onError(source: SourceName, error: unknown): void
}

/** The response of one source, and how far it was read. */
export interface SourceReading<T = unknown> {
  readonly source: SourceName
  /** Entries that the source looked at, those of an index too; 0 where it only read numbers that it keeps. */
  readonly examined: number
  /** Records in range were left out, because of a bound, a failure or the deadline. */
  readonly truncated: boolean
  /** `undefined` if the source failed. */
  readonly value: T | undefined
  /** What ended it early, if not a bound. */
  readonly error?: unknown
}

/** `view` for one of several sources: records that an inspector skips are reported with its name. */
export function viewForSource(view: ViewContext, source: SourceName): ViewContext {
  const onError = (error: unknown) => view.onError(source, error)
  return { ...view, ctx: withOnError(view.ctx, onError) }
}

/** The remaining budget of one source within one request. */
export interface Budget {
  entries: number
  pages: number
}

export function budgetOf(view: Pick<ViewContext, 'ctx'>): Budget {
  beginSlice()
  return { entries: scanLimit(view.ctx), pages: SAMPLE_PAGES_MAX }
}

type List<T> = (page: PageQuery, ctx: InspectionContext) => Awaitable<Page<T>>

/** Number of entries that a source examined: as reported, and never less than `shown`. */
export function examinedOf(answer: Examined, shown: number): number {
  const { examined } = answer
  return Number.isSafeInteger(examined) && (examined as number) > shown ? (examined as number) : shown
}

/** Reads one page of `list` and charges the budget. @throws what the list throws, and TypeError for an invalid page. */
export async function readPage<T>(
  list: List<T>,
  cursor: string | null,
  limit: number,
  budget: Budget,
  { ctx }: Pick<ViewContext, 'ctx'>,
): Promise<Page<T>> {
  const { signal } = ctx
  const query = { limit: Math.min(limit, budget.entries), cursor }
  const whole = budget.entries >= examinedMax(ctx)
  const page = await raceAbort(list(query, whole ? ctx : withScanBudget(ctx, budget.entries)), signal)
  checkPage(page, query.limit)
  budget.entries -= examinedOf(page, page.items.length)
  budget.pages -= 1
  return page
}

/** Parses the records of a page with `entry`. Invalid records are left out and reported to `onError`. */
export function parseRecords<T>(source: SourceName, entry: z.ZodType<T>, page: Page<unknown>, view: ViewContext): T[] {
  const records: T[] = []
  for (const [index, item] of page.items.entries()) {
    const read = readRecord(entry, item, index)
    if (read instanceof BadRecord) view.onError(source, read)
    else records.push(read.data)
  }
  return records
}

/** A list and the schema of its entries. */
export interface Entries<T> {
  readonly entry: z.ZodType<T>
  readonly list: List<unknown>
}

/** A list to walk, and the field that holds the id of a record, which is unique in the deployment. */
export interface WalkedEntries<T> extends Entries<T> {
  readonly id: keyof T & string
}

/**
 * Walks `list` from its start and adds the records of each page to `value`, until the list or the budget ends. A record
 * whose id was already seen is dropped: a list that changes during the walk can show it twice. If a record is left out,
 * the reading is truncated. A failure before the first page makes a failed reading, a later one a truncated reading
 * (`onError` gets the error).
 */
export async function walkEntries<T, Value>(
  source: SourceName,
  { entry, list, id }: WalkedEntries<T>,
  view: ViewContext,
  value: Value,
  add: (value: Value, items: T[]) => void,
  budget: Budget = budgetOf(view),
): Promise<SourceReading<Value>> {
  const before = budget.entries
  const reading = (truncated: boolean) => ({ source, examined: before - budget.entries, truncated, value })
  let cursor: string | null = null
  let omitted = false
  const seen = new Set<string>()
  const ids = new Set<unknown>()
  try {
    while (budget.entries > 0 && budget.pages > 0) {
      const page: Page<unknown> = await readPage(list, cursor, PAGE_MAX, budget, view)
      const records = parseRecords(source, entry, page, view)
      const unseen = records.filter((record) => !ids.has(record[id]) && ids.add(record[id]))
      add(value, unseen)
      omitted ||= (page.omitted ?? 0) > 0 || records.length < page.items.length
      if (!page.has_more) return reading(omitted)
      cursor = page.next_cursor as string
      if (seen.has(cursor)) break
      seen.add(cursor)
      await betweenSlices(view.ctx)
    }
    return reading(true)
  } catch (error) {
    view.onError(source, error)
    return seen.size > 0 ? { ...reading(true), error } : failed(source, error)
  }
}

/** @throws TypeError for a page that breaks the promises of `Page`. */
function checkPage(page: Page<unknown>, limit: number): void {
  if (!Array.isArray(page.items)) throw new TypeError('items of a page must be a list')
  if (typeof page.has_more !== 'boolean') throw new TypeError('has_more of a page must be true or false')
  const { length } = page.items
  if (length > limit) throw new TypeError(`a page holds ${length} items for a limit of ${limit}`)
  if (page.has_more && typeof page.next_cursor !== 'string')
    throw new TypeError('a page with has_more must have a next_cursor, which is a string')
}

/**
 * Calls `source` once; `null` means that it keeps no such value. An error goes to `onError` and becomes a failed
 * reading.
 *
 * @param examined Number of entries that it examined for its response.
 */
export async function readOnce<T extends Indexed>(
  source: SourceName,
  work: () => Awaitable<T | null>,
  view: ViewContext,
  examined: (value: T) => number,
): Promise<SourceReading<T> | null> {
  try {
    const value = await raceAbort(work(), view.ctx.signal)
    if (value === undefined)
      throw new TypeError(`${source} returned undefined; expected a value, or null if it has none`)
    return value && { source, examined: examined(value), truncated: value.truncated === true, value }
  } catch (error) {
    view.onError(source, error)
    return failed(source, error)
  }
}

/** How far one source was read in two readings. */
export function joinReadings(first: SourceReading, next: SourceReading) {
  const { source, examined, truncated } = first
  return { source, examined: examined + next.examined, truncated: truncated || next.truncated, error: next.error }
}

/**
 * The completeness of a response made of `readings`; the data of the sources in `cut` was shortened.
 *
 * @throws the most severe error when every source failed: a timeout before unavailable before anything else.
 */
export function completenessOf(
  readings: readonly SourceReading[],
  view: ViewContext,
  cut: Iterable<SourceName> = [],
): Completeness {
  // After the deadline, the response holds what was read so far.
  const { signal } = view.ctx
  if (readings.length > 0 && readings.every((reading) => reading.value === undefined)) {
    const errors = readings.map((reading) => reading.error)
    const unavailable = (error: unknown) => error instanceof Refusal && error.code === 'unavailable'
    throw errors.find((error) => error === signal.reason) ?? errors.find(unavailable) ?? errors[0]
  }
  const incomplete = new Set([...cut, ...readings.filter((reading) => reading.truncated).map(({ source }) => source)])
  return {
    complete: incomplete.size === 0,
    truncated_sources: [...new Set(readings.map(({ source }) => source))].filter((source) => incomplete.has(source)),
    examined: sumBySource(readings),
    limits: Object.fromEntries(readings.map((reading) => [reading.source, examinedMax(view.ctx)])),
  }
}

/** Entries examined of each source, by all of its readings. */
function sumBySource(readings: readonly SourceReading[]): Completeness['examined'] {
  const sums: Completeness['examined'] = {}
  for (const { source, examined } of readings) sums[source] = (sums[source] ?? 0) + examined
  return sums
}

/** Returns the value and the completeness of a response with one source. @throws the error of a failed reading. */
export function answerFrom<T>(reading: SourceReading<T>, view: ViewContext, isTruncated?: (value: T) => boolean) {
  const value = reading.value as T
  const cut = value !== undefined && isTruncated?.(value) ? [reading.source] : []
  return { value, completeness: completenessOf([reading], view, cut) }
}

function failed(source: SourceName, error: unknown): SourceReading<never> {
  return { source, examined: 0, truncated: true, value: undefined, error }
}
