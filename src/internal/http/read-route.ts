/** Read-only routes as data with one read function, prepared once for all requests. */
import * as z from 'zod'
import type { Steps } from '../async/turns.js'
import { CURSOR_BYTES, type RouterLimits } from '../contract/limits.js'
import { type Awaitable, Order, type PageQuery } from '../contract/page.js'
import type { RefusalCode } from '../refusal.js'
import { createEncoder, type Encoded } from './encode.js'
import { paramNames } from './match.js'
import type { ProblemCode } from './problem.js'

/** The input of a route, decoded and validated. */
interface RouteInput<Filter, Param extends string = string> {
  params: Record<Param, string>
  /** The query without `limit`, `cursor` and `order`; only given parameters. */
  filter: Filter
  page: PageQuery
}

/**
 * How a list is cut: `paged` takes `limit` and `cursor`, `limited` takes `limit` alone, and so does `sample`, whose
 * bounds are those of raw history.
 */
type Paging = 'paged' | 'limited' | 'sample'

/** A route as data with one read function. `Source` holds the inspectors, `View` the request's context. */
export interface ReadRoute<Source, View> {
  /** Relative to the prefix, in OpenAPI's form: `/users/{user_id}/summary`. */
  path: string
  /** The name in generated clients: a verb and its result. It must never change. */
  operationId: string
  summary: string
  /** Any of these capabilities serves it; the 501 response names the first. Empty: always available. */
  requires: readonly string[]
  /** Query parameters besides `limit` and `cursor`. @default none */
  query?: z.ZodObject
  page?: Paging
  /** Order of a paged list whose query names none; with it the route takes `order`. Absent: the list has one order. */
  order?: Order
  response: z.ZodType
  /** An example response for the documentation. */
  example: unknown
  /** The route returns one object: `null` is 404. For other routes `null` is an error. */
  record?: true
  /** The token of a page that ends with this item, where the order of a list makes one of any: such a page is cut. */
  tokenOf?(item: never): string
  /** Returns a record without fields that change only by the clock, such as ages. @default the whole record */
  compared?(item: never): object
  /** Refusals of the inspector that mean something of their own on this route. */
  refusals?: Partial<Record<RefusalCode, ProblemCode>>
  /** The value that `response` reads. */
  read(source: Source, input: RouteInput<never>, view: View): Awaitable<unknown>
}

type ParamIn<Path extends string> = Path extends `${string}{${infer Name}}${infer Rest}` ? Name | ParamIn<Rest> : never

/** A route whose `read` gets what `path` and `query` describe and returns what `response` reads. */
export interface TypedReadRoute<
  Source,
  View,
  Path extends string,
  Query extends z.ZodObject,
  Response extends z.ZodType,
> extends Omit<ReadRoute<Source, View>, 'read'> {
  path: Path
  query?: Query
  response: Response
  example: NoInfer<z.input<Response>>
  read(
    source: Source,
    input: RouteInput<z.output<Query>, ParamIn<Path>>,
    view: View,
  ): Awaitable<z.input<Response> | null | undefined>
}

const limitOf = (fallback: number, max: number) =>
  z.int().min(1).max(max).default(fallback).describe('Maximum number of entries.')

// No maxLength: a cursor that is too long is an invalid cursor, not an invalid query.
const Cursor = z
  .string()
  .meta({ maxLength: CURSOR_BYTES })
  .optional()
  .describe('`next_cursor` of the page before, under the same filters. Absent: the first page.')

const orderOf = (order: Order | undefined): z.ZodRawShape =>
  order === undefined
    ? {}
    : {
        order: Order.default(order).describe(
          '`newest`: the entry that came in last comes first; `oldest`: the one that came in first. A cursor holds for one order.',
        ),
      }

const PAGING: Record<Paging, (limits: RouterLimits) => z.ZodRawShape> = {
  paged: ({ pageDefault, pageMax }) => ({ limit: limitOf(pageDefault, pageMax), cursor: Cursor }),
  limited: ({ pageDefault, pageMax }) => ({ limit: limitOf(pageDefault, pageMax) }),
  sample: ({ historyDefault, historyMax }) => ({ limit: limitOf(historyDefault, historyMax) }),
}

/** The whole query of a route within the limits of its router. */
export function queryOf(
  { page, order, query }: Pick<ReadRoute<never, never>, 'page' | 'order' | 'query'>,
  limits: RouterLimits,
) {
  return z.object({ ...(page && PAGING[page](limits)), ...orderOf(order), ...query?.shape })
}

/** A route with everything that is computed once for all its requests. */
export interface PreparedRoute<Source, View> {
  route: ReadRoute<Source, View>
  query: z.ZodObject
  /** The limit of a page whose route takes none. */
  pageDefault: number
  /** Whether the response is a list of items. */
  listed: boolean
  /** The members of the response, for lists that are cut short. */
  members: readonly string[]
  /** Whether responses have an entity tag. */
  isCompared: boolean
  encode: (value: unknown) => Steps<Encoded>
  /** What refusals of its inspectors mean here, where that differs from other routes. */
  refusals: Partial<Record<RefusalCode, ProblemCode>>
}

const isListed = (response: z.ZodType) => response instanceof z.ZodObject && 'items' in response.shape

/** Whether a route returns a list or counts: such responses are polled, so they are compared. */
export const isCompared = ({ path, response }: Pick<ReadRoute<never, never>, 'path' | 'response'>) =>
  isListed(response) || path.endsWith('/count')

export function prepareRoute<Source, View>(
  route: ReadRoute<Source, View>,
  limits: RouterLimits,
): PreparedRoute<Source, View> {
  const { path, response, refusals } = route
  return {
    route,
    query: queryOf(route, limits),
    pageDefault: limits.pageDefault,
    listed: isListed(response),
    members: response instanceof z.ZodObject ? [...Object.keys(response.shape), 'truncated'] : [],
    isCompared: isCompared(route),
    encode: createEncoder(response),
    refusals: { invalid_identity: paramNames(path).length > 0 ? 'invalid_path' : 'invalid_query', ...refusals },
  }
}
