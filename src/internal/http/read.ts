/** How a request that has come to a route that only reads is answered: query, inspector, record, page, schema. */
import type { Deadline } from '../async/deadline.js'
import { inTurns } from '../async/turns.js'
import { type BadRecord, requireRequested } from '../contract/bad-record.js'
import { type InspectionContext, type Order, scanLimit, withScanBudget } from '../contract/page.js'
import { fromCursor, listIdentity, toCursor } from './cursor.js'
import { type Encoded, RefusedRecords, TooLarge, UnacceptableAnswer } from './encode.js'
import { ProblemError, toProblemError } from './problem.js'
import { parseQuery } from './query.js'
import type { PreparedRoute } from './read-route.js'

// Shortens lists: fewer records if too large, and without records that cannot be shown.

/** The members of a list that matter for shortening. */
interface LongList {
  items: unknown[]
  next_cursor?: unknown
  has_more?: unknown
  omitted?: unknown
  count?: unknown
  truncated?: unknown
  completeness?: { complete?: unknown; examined?: object; truncated_sources?: unknown }
}

/** The first half of a page whose order makes a token of any item. */
function firstHalf(page: LongList, tokenOf: (item: never) => string): LongList {
  const items = page.items.slice(0, Math.floor(page.items.length / 2))
  return { ...page, items, next_cursor: tokenOf(items.at(-1) as never), has_more: true }
}

/** Returns the page without the records at these indexes, and counts them as omitted. Paging continues unchanged. */
function withoutRecords(page: LongList, places: { has(place: number): boolean }): LongList {
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

/** The result of one request, for the access hook. */
export interface RequestOutcome {
  encoded: Encoded
  itemCount: number | null
  complete: boolean | null
}

interface Envelope {
  items?: unknown
  next_cursor?: unknown
  has_more?: unknown
  truncated?: unknown
  completeness?: { complete?: unknown }
}

function completeOf(value: Envelope | undefined): boolean | null {
  if (typeof value?.truncated === 'boolean') return !value.truncated
  return typeof value?.completeness?.complete === 'boolean' ? value.completeness.complete : null
}

/** Validates a page from an inspector, and replaces its token by a cursor. */
function bindPage(page: Envelope, limit: number, identity: (() => string) | undefined): Envelope {
  if (!Array.isArray(page?.items)) throw new UnacceptableAnswer('items: must be a list')
  if (page.items.length > limit)
    throw new UnacceptableAnswer(`items: ${page.items.length} entries for a limit of ${limit}`)
  if (identity === undefined) return page
  if (page.has_more !== true) return { ...page, next_cursor: null }
  if (typeof page.next_cursor !== 'string')
    throw new UnacceptableAnswer('next_cursor: must be a string while has_more is true')
  return { ...page, next_cursor: toCursor(identity(), page.next_cursor) }
}

/** Copies the members known to the schema: a host's page may be a class instance, which a spread would not copy. */
function plainPage(page: unknown, members: readonly string[]): Envelope {
  if (page === null || typeof page !== 'object') return page as Envelope
  const given = page as Record<string, unknown>
  const plain: Record<string, unknown> = {}
  for (const name of members) if (given[name] !== undefined) plain[name] = given[name]
  return plain
}

/** The query of a request, checked. */
interface QueryInput {
  /** Absent on a route that takes none. */
  limit?: number
  cursor?: string
  /** Absent on a route whose list has one order. */
  order?: Order
  /** Only given parameters. */
  filters: Readonly<Record<string, unknown>>
}

/** @throws ProblemError `invalid_query`. */
export function readQuery<Source, View>({ route, query }: PreparedRoute<Source, View>, search: string): QueryInput {
  const { limit, cursor, ...others } = parseQuery(query, search) as { limit?: number; cursor?: string; order?: Order }
  const { order, ...filters } = others
  return {
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === undefined ? {} : { cursor }),
    // A list may have a filter of that name.
    ...(route.order === undefined ? { filters: others } : { order, filters }),
  }
}

/** A matched request. */
interface ReadRequest {
  params: Record<string, string>
  given: QueryInput
  deployment: { id: string | null; mode: string }
  /** The visible users, if restricted. */
  users?: readonly string[] | undefined
  deadline: Deadline
}

/**
 * Serves an authenticated request with a valid query: cursor, inspector, record, schema, in that order.
 *
 * @throws ProblemError for every failure; its `cause` is for `onError`.
 */
export async function read<Source, View extends { readonly ctx: InspectionContext }>(
  { route, pageDefault, listed, members, encode, refusals }: PreparedRoute<Source, View>,
  source: Source,
  request: ReadRequest,
  view: View,
): Promise<RequestOutcome> {
  const { deployment, users, deadline, params, given } = request
  const { limit = pageDefault, cursor, order, filters } = given
  const identity = () => listIdentity({ route: route.path, params, order, filters, deployment, users })
  const token = cursor === undefined ? null : fromCursor(identity(), cursor)
  try {
    return await answer(limit, view)
  } catch (error) {
    // After an abort, any error of the inspector means that it was stopped.
    const stopped = deadline.signal.aborted && !(error instanceof ProblemError)
    throw stopped
      ? new ProblemError('inspector_timeout', {}, { cause: error })
      : toProblemError(error, 'inspector', refusals)
  }

  async function answer(size: number, view: View): Promise<RequestOutcome> {
    // A copy: an inspector that mutates its input must not change the cursor or what `onAccess` gets.
    const input = {
      params,
      filter: { ...filters } as never,
      page: { limit: size, cursor: token, ...(order && { order }) },
    }
    const pending = route.read(source, input, view)
    // Routes without an inspector have no deadline.
    const answered = await (route.requires.length === 0 ? pending : deadline.race(pending))
    if (answered === null && route.record) throw new ProblemError('not_found')
    // A record with another id may belong to another user and is not returned.
    if (route.record) {
      const requested = { ...params, ...filters }
      const { items } = Object(answered) as Envelope
      for (const record of listed && Array.isArray(items) ? items : [answered]) requireRequested(record, requested)
    }
    return shorten(listed ? plainPage(answered, members) : (answered as Envelope), size, view)
  }

  async function finish(envelope: Envelope, size: number): Promise<RequestOutcome> {
    const value = listed ? bindPage(envelope, size, route.page === 'paged' ? identity : undefined) : envelope
    return {
      encoded: await inTurns(encode(value), deadline),
      itemCount: Array.isArray(value?.items) ? value.items.length : null,
      complete: completeOf(value),
    }
  }

  /** Removes records that cannot be shown; shortens a page that is too large. */
  async function shorten(
    envelope: Envelope,
    size: number,
    view: View,
    refused: readonly BadRecord[] = [],
  ): Promise<RequestOutcome> {
    try {
      const answer = await finish(envelope, size)
      // Reported only now: a page that is read again refuses the same records again.
      for (const record of refused) view.ctx.onError?.(record)
      return answer
    } catch (error) {
      if (error instanceof RefusedRecords && listed && error.list === 'items')
        return shorten(withoutRecords(envelope as LongList, error.refused), size, view, [
          ...refused,
          ...error.refused.values(),
        ])
      if (!(error instanceof TooLarge) || given.limit === undefined) throw error
      const most = listed ? Math.min(size, (envelope as LongList).items.length) : size
      if (most > 1) {
        if (listed && route.tokenOf) return shorten(firstHalf(envelope as LongList, route.tokenOf), size, view, refused)
        const half = Math.floor(most / 2)
        const scanBudget = Math.max(half, Math.ceil(scanLimit(view.ctx) / 2))
        return answer(half, { ...view, ctx: withScanBudget(view.ctx, scanBudget) })
      }
      if (!listed) throw error
      view.ctx.onError?.(error)
      return finish(withoutRecords(envelope as LongList, new Set([0])), size)
    }
  }
}
