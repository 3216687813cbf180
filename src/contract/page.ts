/** How a list is asked for and answered: the page, its token, and what accompanies every call of an inspector. */
import * as z from 'zod'
import { Refusal } from '../refusal.js'
import { EXAMINED_MAX } from './limits.js'

/** At once or by promise. */
export type Awaitable<T> = T | Promise<T>

/** What accompanies every call of an inspector. */
export interface InspectionContext {
  /** Aborted when the client goes away or the deadline passes. */
  signal: AbortSignal
  /** Hears of what an inspector passed over to be able to answer; a router hands it to `onError`. */
  onError?(error: unknown): void
  /** What the request may cost. Absent: the library's own bounds. */
  limits?: InspectionLimits
  /** How many entries this source may yet look at for this request, at least 1. Absent: `limits.examined`. */
  scanBudget?: number
}

/** What one request may cost. */
export interface InspectionLimits {
  /** Entries, index entries included, that each source may look at for one request. @default 10000 */
  readonly examined: number
}

/** The bound on the entries that one source looks at for the whole request. */
export const examinedMax = (ctx: InspectionContext): number => ctx.limits?.examined ?? EXAMINED_MAX

/** How many entries one call may look at: what is left of the bound, and never more than it. */
export const scanLimit = (ctx: InspectionContext): number =>
  Math.min(ctx.scanBudget ?? Number.POSITIVE_INFINITY, examinedMax(ctx))

/** `ctx` for one call of several that share what may be looked at. */
export const withScanBudget = (ctx: InspectionContext, scanBudget: number): InspectionContext =>
  // Descriptors and not values: the signal is made when an inspector looks at it, and most never do.
  Object.defineProperties({} as InspectionContext, {
    ...Object.getOwnPropertyDescriptors(ctx),
    scanBudget: { value: scanBudget, configurable: true, enumerable: true, writable: true },
  })

/** `ctx` with a signal of its own. */
export const withSignal = (ctx: InspectionContext, signal: AbortSignal): InspectionContext =>
  Object.defineProperties({} as InspectionContext, {
    ...Object.getOwnPropertyDescriptors(ctx),
    signal: { value: signal, configurable: true, enumerable: true, writable: true },
  })

/** `ctx` with another ear for what is passed over. */
export const withOnError = (ctx: InspectionContext, onError: (error: unknown) => void): InspectionContext =>
  Object.defineProperties({} as InspectionContext, {
    ...Object.getOwnPropertyDescriptors(ctx),
    onError: { value: onError },
  })

/**
 * How much a source looked at for one answer: entries of the index that it walked and records, passed over or not; what
 * has died too. A number that is kept and only read costs nothing. Absent: a source that does not count.
 */
export interface Examined {
  examined?: number
}

/** A source that may have several parts, such as the shards of a store. */
export interface Pingable {
  /** Resolves when all of its parts answer, throws when one does not. Without it `/sources` asks for one entry alone. */
  ping?(ctx: InspectionContext): Awaitable<unknown>
}

/** A source that knows when it has changed. */
export interface Versioned {
  /**
   * Another text after every change of what its lists and counts show, also of what leaves by silence; `null` where that
   * cannot be told now. An age, which grows by the clock alone, is no change. Without it answers are compared.
   */
  version?(ctx: InspectionContext): Awaitable<string | null>
  /**
   * `version` is a question to a store: only those who watch wait for it. A request for a list would wait twice, and its
   * tag is made of the answer. @default false
   */
  readonly remoteVersion?: boolean
}

/** Order of a list by when its entries came in: an entry that changes keeps its place. */
export const Order = z.enum(['newest', 'oldest'])
export type Order = z.infer<typeof Order>

/** One page of a list. */
export interface PageQuery {
  /** Most items to return, at least 1. */
  limit: number
  /** The inspector's own token from the page before, as it handed it out; `null` asks for the first page. */
  cursor: string | null
  /**
   * Order of the list; the same for all pages of one walk. The routes that take `order` always give it. Absent: the order
   * that costs the source least, unless the method names one.
   */
  order?: Order | undefined
}

/** Items and where to go on. An empty page with `has_more: true` is normal: keep walking. */
export interface Page<T> extends Examined {
  items: T[]
  /** The inspector's own token, at most 360 bytes; present whenever `has_more` is true. */
  next_cursor: string | null
  has_more: boolean
  /** Records in the range of this page that cannot be shown. Absent: none. */
  omitted?: number
}

/** The member of a page that says that it leaves out this many; nothing for none. */
export const omittedCount = (count: number): { omitted?: number } => (count > 0 ? { omitted: count } : {})

/** `page` with other items. Its members are named: a page may be of a class of the host's, of which a spread sees nothing. */
export function withItems<T>({ next_cursor, has_more, omitted, examined }: Page<unknown>, items: T[]): Page<T> {
  return {
    items,
    next_cursor,
    has_more,
    ...(omitted === undefined ? {} : { omitted }),
    ...(examined === undefined ? {} : { examined }),
  }
}

/** What an index says of itself. `truncated`: a part of the source could not be read, so that its answer may be too little. */
export interface Indexed extends Examined {
  truncated?: boolean
}

/** `answer`, with what its source says of it beside it: whoever compares or prints the answer sees the answer alone. */
export function withMetadata<T extends object, Notes extends Indexed>(answer: T, notes: Notes): T & Notes {
  for (const [name, value] of Object.entries(notes))
    if (value !== undefined) Object.defineProperty(answer, name, { value, configurable: true, writable: true })
  return answer as T & Notes
}

/** The page that the cheapest question to a list asks for. */
export const PAGE_OF_ONE: PageQuery = { limit: 1, cursor: null }

/** What a filter names, and what it names it for. */
export type Filter = Readonly<Record<string, unknown>>

const BEFORE = /_before$/

/** The field of a record that a filter of this name looks at. */
export const fieldOfFilter = (name: string): string => name.replace(BEFORE, '_at')

/** Whether a record has a value of a filter: `<name>_before` admits a `<name>_at` at or before that instant. */
export function admitsValue(record: object, name: string, wanted: unknown): boolean {
  if (!BEFORE.test(name)) return record[name as keyof object] === wanted
  const at: unknown = record[fieldOfFilter(name) as keyof object]
  return typeof at === 'string' && at <= (wanted as string)
}

/** Returns whether records match `filter`: what it leaves out or has as `undefined` matches any value. */
export function matcherOf(filter: Filter): (record: object) => boolean {
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  return (record) => wanted.every(([name, value]) => admitsValue(record, name, value))
}

/** One page of ids in the order of their UTF-8 bytes, each greater than `after`. */
export interface IdPageQuery {
  /** Only ids that begin with this. Absent: all. */
  prefix?: string | undefined
  after: string | null
  limit: number
}

/** Records in the range of a list page that cannot be shown; left out where there are none. */
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
  items: T[]
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
