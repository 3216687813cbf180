/** One row of a route table, and the pipeline that answers every request for it. */
import * as z from 'zod'
import type { Deadline } from '../async/deadline.js'
import { type Ask, type Awaitable, examinable, type PageQuery, withRemaining } from '../contract/page.js'
import type { RefusalCode } from '../refusal.js'
import { fromCursor, listIdentity, toCursor } from './cursor.js'
import { createEncoder, TooLarge, UnacceptableAnswer } from './encode.js'
import { type ProblemCode, ProblemError } from './problem.js'
import { parseQuery } from './query.js'
import { toProblemError } from './refusals.js'
import { firstHalf, type LongList, withoutRecord } from './shorten.js'

/** What a row is asked with: everything decoded, typed and checked. */
export interface RowInput<Filter, Param extends string = string> {
  params: Record<Param, string>
  /** The query without `limit` and `cursor`; only what the caller gave. */
  filter: Filter
  page: PageQuery
}

/** What a row works with: what its inspectors are told, the bounds, the clock, and where a view reports a failed source. */
export interface RowAsk {
  /** What every call of an inspector gets, and all that it gets: the signal, and the bounds of the request. */
  readonly ask: Ask
  now(): number
  report(source: string, error: unknown): void
}

/** A route as data plus one expression. `Source` is whatever the table is built over. */
export interface Row<Source> {
  /** Relative to the prefix, in OpenAPI's form: `/users/{user_id}/summary`. */
  path: string
  summary: string
  /** Any of these capabilities serves it; the first is the one that a 501 names. Empty: always there. */
  needs: readonly string[]
  query: z.ZodObject
  response: z.ZodType
  /** It addresses one object: `null` is 404. Elsewhere `null` is no answer. */
  record?: true
  /** The token of a page that ends with this item, where the order of a list makes one of any: such a page is cut. */
  tokenOf?(item: never): string
  /** Refusals of the inspector that mean something of their own on this route. */
  refusals?: Partial<Record<RefusalCode, ProblemCode>>
  /** The value that `response` reads. */
  ask(source: Source, input: RowInput<never>, ask: RowAsk): Awaitable<unknown>
}

type ParamIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamIn<Rest> : never

/** A row whose `ask` gets what `path` and `query` describe and returns what `response` reads. */
export interface TypedRow<Source, Path extends string, Query extends z.ZodObject, Response extends z.ZodType>
  extends Omit<Row<Source>, 'ask'> {
  path: Path
  query: Query
  response: Response
  ask(
    source: Source,
    input: RowInput<Omit<z.output<Query>, 'limit' | 'cursor'>, ParamIn<Path>>,
    ask: RowAsk,
  ): Awaitable<z.input<Response> | null | undefined>
}

/** Names of the parameters in a row's path. */
export function paramNames(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] as string)
}

/** A row with what every request for it needs to know of it. */
export interface PreparedRow<Source> {
  row: Row<Source>
  /** It has a cursor. */
  paged: boolean
  /** It answers a list of items. */
  listed: boolean
  encode: (value: unknown) => string
  /** What refusals of its inspectors mean here, where that differs from other routes. */
  refusals: Partial<Record<RefusalCode, ProblemCode>>
}

export function prepareRow<Source>(row: Row<Source>): PreparedRow<Source> {
  return {
    row,
    paged: 'cursor' in row.query.shape,
    listed: row.response instanceof z.ZodObject && 'items' in row.response.shape,
    encode: createEncoder(row.response),
    refusals: { invalid_identity: row.path.includes('{') ? 'invalid_path' : 'invalid_query', ...row.refusals },
  }
}

/** What became of one request, for the hook that counts it. */
export interface Answer {
  text: string
  filters: Record<string, unknown>
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

/** Holds a page to what its list promises, and puts the wire's cursor in place of the inspector's token. */
function bindPage(page: Envelope, limit: number, identity: (() => string) | undefined): Envelope {
  if (!Array.isArray(page?.items)) throw new UnacceptableAnswer('items: not a list')
  if (page.items.length > limit) throw new UnacceptableAnswer('items: more than the limit')
  if (identity === undefined) return page
  if (page.has_more !== true) return { ...page, next_cursor: null }
  if (typeof page.next_cursor !== 'string') throw new UnacceptableAnswer('next_cursor: missing while has_more is true')
  return { ...page, next_cursor: toCursor(identity(), page.next_cursor) }
}

/** What a matched request brings along. */
export interface MatchedRequest {
  params: Record<string, string>
  search: string
  deployment: { id: string | null; mode: string }
  pageDefault: number
  deadline: Deadline
}

/**
 * Answers a matched, authenticated request: query, inspector, record, schema, in that order.
 *
 * @throws ProblemError whatever goes wrong; its `cause` is for `onError`.
 */
export async function answer<Source>(
  { row, paged, listed, encode, refusals }: PreparedRow<Source>,
  source: Source,
  request: MatchedRequest,
  ask: RowAsk,
): Promise<Answer> {
  const { deployment, deadline, params } = request
  const query = parseQuery(row.query, request.search) as { limit?: number; cursor?: string }
  const { limit = request.pageDefault, cursor, ...filters } = query
  const identity = () => listIdentity({ route: row.path, params, filters, deployment })
  const token = cursor === undefined ? null : fromCursor(identity(), cursor)
  try {
    return await read(limit, ask)
  } catch (error) {
    // Whatever an inspector throws once its signal has aborted is its way to say that it was stopped.
    const stopped = deadline.signal.aborted && !(error instanceof ProblemError)
    throw stopped
      ? new ProblemError('inspector_timeout', {}, { cause: error })
      : toProblemError(error, 'inspector', refusals)
  }

  async function read(size: number, asking: RowAsk): Promise<Answer> {
    // A copy: what an inspector does to it must change neither the cursor nor what `onAccess` is told.
    const input = { params, filter: { ...filters } as never, page: { limit: size, cursor: token } }
    const asked = row.ask(source, input, asking)
    // What is said without an inspector waits for nobody, however long it takes to say.
    const given = await (row.needs.length === 0 ? asked : deadline.settle(asked))
    if (given === null && row.record) throw new ProblemError('not_found')
    return shorten(given as Envelope, size, asking)
  }

  function finish(given: Envelope, size: number): Answer {
    const value = listed ? bindPage(given, size, paged ? identity : undefined) : given
    return {
      text: encode(value),
      filters,
      itemCount: Array.isArray(value?.items) ? value.items.length : null,
      complete: completeOf(value),
    }
  }

  /** The answer; of one that is too large, as much as there is room for. */
  async function shorten(given: Envelope, size: number, asking: RowAsk): Promise<Answer> {
    try {
      return finish(given, size)
    } catch (error) {
      if (!(error instanceof TooLarge) || query.limit === undefined) throw error
      const most = listed ? Math.min(size, (given as LongList).items.length) : size
      if (most > 1) {
        if (listed && row.tokenOf) return shorten(firstHalf(given as LongList, row.tokenOf), size, asking)
        const half = Math.floor(most / 2)
        const remaining = Math.max(half, Math.ceil(examinable(asking.ask) / 2))
        return read(half, { ...asking, ask: withRemaining(asking.ask, remaining) })
      }
      if (!listed) throw error
      asking.ask.report?.(error)
      return finish(withoutRecord(given as LongList), size)
    }
  }
}
