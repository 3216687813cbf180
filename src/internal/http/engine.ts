/** The request pipeline shared by all routers: from the path to the route's response or a problem. */
import type { Awaitable } from '../contract/page.js'
import type { Cors } from './cors.js'
import { createTable, type Match } from './match.js'
import { type FieldError, ProblemError } from './problem.js'
import { type HttpReply, problemReply, type TextReply, toResponse } from './respond.js'
import { parsePrefix, splitUrl, type Target } from './target.js'

/** A path and the handler of each of its methods. */
export interface Route<Handler> {
  /** Relative to the prefix, in OpenAPI's form. */
  path: string
  /** A GET is answered to HEAD too, without its body. */
  methods: Readonly<Record<string, Handler>>
  /** The response is a stream without an end, so HEAD is not served by running GET. */
  endless?: true
}

type HandlerOf<R extends Route<unknown>> = R['methods'][keyof R['methods']]

/** A request that has come to its route. */
export interface RoutedRequest<Who> {
  who: Who
  /** The parameters of the path, decoded and checked. */
  params: Record<string, string>
  /** The query, undecoded and without its question mark. */
  search: string
}

interface Visited {
  readonly request: Request
}

/** The differences between routers. `Visit` is the router's state for one request. */
interface EngineOptions<R extends Route<unknown>, Visit extends Visited, Who, A extends HttpReply> {
  /** The whole public path under which this process sees the router. */
  prefix: string
  routes: readonly R[]
  /** Returns the caller or throws. Called before anything about the routes is revealed, even for unknown paths. */
  authenticate(visit: Visit, route: R | undefined): Awaitable<Who>
  /** Checks made before the request itself is read. Throws to refuse. */
  admit?(visit: Visit, handler: HandlerOf<R>): void
  /** Returns why a path parameter is invalid, or `undefined`. */
  checkParam(value: string): string | undefined
  answer(handler: HandlerOf<R>, matched: RoutedRequest<Who>, visit: Visit): Awaitable<A>
  /** Which pages of other origins may read responses. @default none */
  cors?: Cors | undefined
  /** Converts an error to a problem and reports it to the host. */
  refuse(error: unknown, visit: Visit): ProblemError
}

interface Engine<Visit, A extends HttpReply> {
  /** The prefix in canonical form. */
  readonly prefix: string
  owns(pathname: string): boolean
  /**
   * Never rejects for a request, as long as `refuse` does not throw. `target`: the request target as sent, if known.
   */
  reply(visit: Visit, target?: Target): Promise<A | HttpReply>
}

// Maximum length of a URL in bytes; no valid request is longer.
const URL_LENGTH = 8_192

function checkParams(
  given: Record<string, string | null>,
  check: (value: string) => string | undefined,
): Record<string, string> {
  const errors = Object.entries(given).flatMap(([name, value]): FieldError[] => {
    const reason = value === null ? 'is not valid percent-encoded UTF-8' : check(value)
    return reason === undefined ? [] : [{ in: 'path', name, reason }]
  })
  if (errors.length > 0) throw new ProblemError('invalid_path', { errors })
  return given as Record<string, string>
}

/** The methods of a route, in its own order. */
function methodsOf<Handler>({ methods, endless }: Route<Handler>): Map<string, Handler> {
  const named = Object.entries(methods).flatMap(([method, handler]): [string, Handler][] =>
    method === 'GET' && !endless
      ? [
          ['GET', handler],
          ['HEAD', handler],
        ]
      : [[method, handler]],
  )
  return new Map(named)
}

/**
 * Builds the pipeline of one router. Checks in this order, first failure wins: prefix, length, authentication, route,
 * method, `admit`, parameters; then the route's own checks.
 *
 * @throws TypeError for an invalid prefix.
 */
export function createEngine<R extends Route<unknown>, Visit extends Visited, Who, A extends HttpReply>(
  options: EngineOptions<R, Visit, Who, A>,
): Engine<Visit, A> {
  const { authenticate, admit, checkParam, answer, refuse, cors } = options
  const prefix = parsePrefix(options.prefix)
  const routes = options.routes.map((route) => ({ path: route.path, route, handlers: methodsOf(route) }))
  // Of all routes, so that a preflight, which has no credentials, reveals no route.
  const methods = [...new Set(routes.flatMap(({ handlers }) => [...handlers.keys()]))]

  function admitPath(visit: Visit, target: Target | undefined): asserts target is Target {
    if (target === undefined || !prefix.covers(target.pathname)) throw new ProblemError('route_not_found')
    if (visit.request.url.length > URL_LENGTH) throw new ProblemError('uri_too_long')
  }

  async function serve(
    found: Match<(typeof routes)[number]> | undefined,
    visit: Visit,
    target: Target | undefined,
  ): Promise<A | HttpReply> {
    const preflight = cors?.preflight(visit.request, methods)
    if (preflight) return preflight
    const who = await authenticate(visit, found?.route.route)
    if (found === undefined || target === undefined) throw new ProblemError('route_not_found')
    const { handlers } = found.route
    const handler = handlers.get(visit.request.method) as HandlerOf<R> | undefined
    if (handler === undefined)
      throw new ProblemError('method_not_allowed', { headers: { allow: [...handlers.keys()].join(', ') } })
    admit?.(visit, handler)
    return answer(handler, { who, params: checkParams(found.params, checkParam), search: target.search }, visit)
  }

  const table = createTable<(typeof routes)[number], [Visit, Target | undefined], A | HttpReply>(prefix, routes, {
    before: admitPath,
    serve,
    catch(error, visit) {
      const { code, extra } = refuse(error, visit)
      return problemReply(code, extra)
    },
  })

  return {
    prefix: prefix.path,
    owns: table.owns,
    async reply(visit, given) {
      // A value that is not a Request rejects here; `toHandler` turns that into a response.
      const target = given ?? splitUrl(visit.request.url)
      const reply = await table.fetch(target?.pathname ?? '', visit, target)
      return cors ? cors.mark(visit.request, reply) : reply
    },
  }
}

/**
 * A fetch-style handler with the properties that a mount needs. Of the second argument only the caller's address is
 * read: the `remoteAddress` that the adapters pass, or what Deno and Bun pass.
 */
export interface Mountable<A extends HttpReply = HttpReply> {
  (request: Request, info?: unknown): Promise<Response>
  /** The same function, for hosts that take an object with `fetch`. */
  fetch(request: Request, info?: unknown): Promise<Response>
  /** The same response without a `Response` object: the Node adapter uses it because it is much cheaper. */
  reply(request: Request, info?: unknown): Promise<A>
}

/** Turns `answer` into a handler that never rejects, even for values that are not requests. */
export function toHandler<A extends HttpReply>(
  answer: (request: Request, info: unknown) => Promise<A>,
  failed: (error: unknown) => void = () => {},
): Mountable<A | TextReply> {
  const reply = (request: Request, info?: unknown) =>
    answer(request, info).catch((error: unknown): TextReply => {
      failed(error)
      return problemReply('internal')
    })
  const router = async (request: Request, info?: unknown) =>
    toResponse(await reply(request, info), request?.method === 'HEAD')
  return Object.assign(router, { fetch: router, reply })
}
