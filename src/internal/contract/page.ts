/** Pages of lists, their tokens, and the context passed to every inspector call. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { EXAMINED_MAX } from './limits.js'

/** A value or a promise of it. */
export type Awaitable<T> = T | Promise<T>

/** What accompanies every call of an inspector. */
export interface InspectionContext {
  /** Aborted when the client goes away or the deadline passes. */
  signal: AbortSignal
  /** Called for each record that was skipped as invalid; a router passes it to `onError`. */
  onError?(error: unknown): void
  /** Cost limits of the request. Absent: the library's limits. */
  limits?: InspectionLimits
  /** How many more entries this source may examine for this request, at least 1. Absent: `limits.examined`. */
  scanBudget?: number
}

/** Cost limits of one request. */
export interface InspectionLimits {
  /** Entries, index entries included, that each source may look at for one request. @default 10000 */
  readonly examined: number
}

/** The bound on the entries that one source looks at for the whole request. */
export const examinedMax = (ctx: InspectionContext): number => ctx.limits?.examined ?? EXAMINED_MAX

/** Returns how many entries one call may examine: the remaining budget, capped by the limit. */
export const scanLimit = (ctx: InspectionContext): number =>
  Math.min(ctx.scanBudget ?? Number.POSITIVE_INFINITY, examinedMax(ctx))

/** Returns a copy of `ctx` with a budget shared by several calls. */
export const withScanBudget = (ctx: InspectionContext, scanBudget: number): InspectionContext =>
  // Descriptors and not values: the signal is made when an inspector looks at it, and most never do.
  Object.defineProperties({} as InspectionContext, {
    ...Object.getOwnPropertyDescriptors(ctx),
    scanBudget: { value: scanBudget, configurable: true, enumerable: true, writable: true },
  })

/** Returns a copy of `ctx` with another signal. */
export const withSignal = (ctx: InspectionContext, signal: AbortSignal): InspectionContext =>
  Object.defineProperties({} as InspectionContext, {
    ...Object.getOwnPropertyDescriptors(ctx),
    signal: { value: signal, configurable: true, enumerable: true, writable: true },
  })

/** Returns a copy of `ctx` with another `onError`. */
export const withOnError = (ctx: InspectionContext, onError: (error: unknown) => void): InspectionContext =>
  Object.defineProperties({} as InspectionContext, {
    ...Object.getOwnPropertyDescriptors(ctx),
    onError: { value: onError },
  })

/**
 * How many entries a source examined: index entries and records, including skipped and expired ones. Reading a
 * maintained counter costs nothing. Absent: the source does not count.
 */
export interface Examined {
  /** Number of entries that were read. It counts towards the limits of the request. */
  examined?: number
}

/** A setting of a source that an operator should change: everything works until it has an effect. */
export const SourceWarning = z
  .object({
    code: z
      .enum(['store_evicts', 'store_not_persistent', 'shards_unevenly_spread'])
      .describe(
        '`store_evicts`: records can be missing, because the store deletes keys when it is full. `store_not_persistent`: a restart of the store loses what was written since its last snapshot. `shards_unevenly_spread`: some masters of the Cluster hold none of the data.',
      ),
    detail: z.string().describe('What was read, and what to set.'),
  })
  .describe('A setting of a source that an operator should change.')
export type SourceWarning = z.infer<typeof SourceWarning>

/** A source that may have several parts, such as the shards of a store. */
export interface Pingable {
  /**
   * Resolves when all parts of the source respond, rejects when one does not. Without it `/sources` reads one entry.
   */
  ping?(ctx: InspectionContext): Awaitable<unknown>
  /** Returns settings of the source that an operator should change; `null`, or without it: unknown. */
  warnings?(ctx: InspectionContext): Awaitable<readonly SourceWarning[] | null>
}

/** A source that knows when it has changed. */
export interface Versioned {
  /**
   * Returns a text that changes with every change of the lists and counts, including expiries; `null` if unknown at the
   * moment. Ages, which only grow with the clock, do not count. It is asked before each conditional response, so it must
   * not wait for a store. Without it responses are compared.
   */
  version?(ctx: InspectionContext): Awaitable<string | null>
}

/** Order of a list by when its entries came in: an entry that changes keeps its place. */
export const Order = z.enum(['newest', 'oldest'])
export type Order = z.infer<typeof Order>

/** One page of a list. */
export interface PageQuery {
  /** Most items to return, at least 1. */
  limit: number
  /** The inspector's own token from the previous page, unchanged; `null` for the first page. */
  cursor: string | null
  /**
   * Order of the list; the same for all pages of one walk. The routes that take `order` always give it. Absent: the order
   * that costs the source least, unless the method names one.
   */
  order?: Order | undefined
}

/** Items and where to continue. An empty page with `has_more: true` is normal: keep paging. */
export interface Page<T> extends Examined {
  /** The records of this page. */
  items: T[]
  /** The inspector's own token, at most 360 bytes; present whenever `has_more` is true. */
  next_cursor: string | null
  /** Whether there are more records after this page. */
  has_more: boolean
  /** Records in the range of this page that cannot be shown. Absent: none. */
  omitted?: number
}

/** Returns the `omitted` member of a page, or nothing for 0. */
export const omittedCount = (count: number): { omitted?: number } => (count > 0 ? { omitted: count } : {})

/**
 * Returns `page` with other items. Members are copied by name: a host's page may be a class instance, which a spread
 * does not copy.
 */
export function withItems<T>({ next_cursor, has_more, omitted, examined }: Page<unknown>, items: T[]): Page<T> {
  return {
    items,
    next_cursor,
    has_more,
    ...(omitted === undefined ? {} : { omitted }),
    ...(examined === undefined ? {} : { examined }),
  }
}

/** Metadata of an index result. `truncated`: part of the source could not be read, so the result may be incomplete. */
export interface Indexed extends Examined {
  /** Whether the index did not cover everything. */
  truncated?: boolean
}

/** Adds metadata to `answer` as non-enumerable properties, so that it is neither compared nor serialised. */
export function withMetadata<T extends object, Notes extends Indexed>(answer: T, notes: Notes): T & Notes {
  for (const [name, value] of Object.entries(notes))
    if (value !== undefined) Object.defineProperty(answer, name, { value, configurable: true, writable: true })
  return answer as T & Notes
}

/** A one-item page, used as a probe. */
export const PAGE_OF_ONE: PageQuery = { limit: 1, cursor: null }

/** Filter values by field name. */
export type Filter = Readonly<Record<string, unknown>>

const BEFORE = /_before$/

/** The fields with the end of a record, for the filter `from`, and with its beginning, for `to`. */
const SPAN: Readonly<Record<string, readonly string[]>> = {
  from: ['disconnected_at', 'ended_at', 'terminal'],
  to: ['connected_at', 'started_at', 'admission'],
}

/** The field of a record that a filter of this name looks at. */
export const fieldOfFilter = (name: string, record: object): string =>
  SPAN[name]?.find((field) => field in record) ?? name.replace(BEFORE, '_at')

/** The value that it looks at: of a part of a command, its time. */
export function valueOfFilter(name: string, record: object): unknown {
  const value: unknown = record[fieldOfFilter(name, record) as keyof object]
  return typeof value === 'object' ? (value as { at?: unknown } | null)?.at : value
}

/**
 * Whether a record has a value of a filter. `<name>_before` admits a `<name>_at` at or before that instant; `from` and
 * `to` admit all records but those that are known to have ended before, or begun after, that instant.
 */
export function admitsValue(record: object, name: string, wanted: unknown): boolean {
  if (!SPAN[name] && !BEFORE.test(name)) return record[name as keyof object] === wanted
  const at = valueOfFilter(name, record)
  if (typeof at !== 'string') return name in SPAN
  return name === 'from' ? at >= (wanted as string) : at <= (wanted as string)
}

/** Returns a function that checks whether a record matches `filter`; absent and `undefined` values match anything. */
export function matcherOf(filter: Filter): (record: object) => boolean {
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  return (record) => wanted.every(([name, value]) => admitsValue(record, name, value))
}

/** One page of ids in the order of their UTF-8 bytes, each greater than `after`. */
export interface IdPageQuery {
  /** Only ids that begin with this. Absent: all. */
  prefix?: string | undefined
  /** Only ids after this one; `null` for the first page. */
  after: string | null
  /** Maximum number of ids. */
  limit: number
}

/** Records of this page that cannot be shown; absent if none. */
export const Omitted = z.int().min(1)

/** The schema of a page of `item`. */
export function pageSchema<T extends z.ZodType>(item: T) {
  return z
    .object({
      items: z.array(item).describe('The entries of this page; none is normal while `has_more` is true.'),
      next_cursor: z.string().nullable().describe('What `cursor` is for the next page; `null` on the last one.'),
      has_more: z.boolean().describe('Whether there is another page.'),
      omitted: Omitted.optional().describe('Records in range that cannot be shown. Absent: none.'),
    })
    .describe('One page of a list.')
}

/** One bounded sample of a stream's messages, without a cursor. `truncated`: the stream has held more than these. */
export interface Sample<T> extends Examined {
  /** The records of the sample. */
  items: T[]
  /** Whether there are more records. */
  truncated: boolean
  /** Messages among these that cannot be shown. Absent: none. */
  omitted?: number
}

const SEQUENCE = /^(0|[1-9][0-9]{0,15})$/

/** The sequence number that a walk starts from, which no entry has: 0, or Infinity for the newest first. */
export const startOf = (order: Order | undefined): number => (order === 'newest' ? Number.POSITIVE_INFINITY : 0)

/**
 * Returns the sequence number in a token of a sequence index; `startOf(order)` for the first page.
 *
 * @throws Refusal `invalid_cursor` for anything that is not a canonical decimal within 2^53.
 */
export function parseSequence(cursor: string | null, order?: Order): number {
  if (cursor === null) return startOf(order)
  if (!SEQUENCE.test(cursor) || !Number.isSafeInteger(Number(cursor))) throw new Refusal('invalid_cursor')
  return Number(cursor)
}
