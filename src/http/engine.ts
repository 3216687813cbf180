/** The one way in which every router of ours answers a request: from the path to the route's own answer, or to a problem. */
import type { Awaitable } from '../contract/page.js'
import { createTable, type Match } from './match.js'
import { type FieldError, ProblemError } from './problem.js'
import { type HttpReply, problemReply, type TextReply, toResponse } from './respond.js'
import { parsePrefix, splitUrl, type Target } from './target.js'

/** A path, and what answers each of its methods. */
export interface Route<Handler> {
  /** Relative to the prefix, in OpenAPI's form. */
  path: string
  /** A GET is answered to HEAD too, without its body. */
  methods: Readonly<Record<string, Handler>>
  /** Its answer goes on until somebody leaves: a HEAD would begin one for nobody. */
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

/** What the routers differ in. `Visit` is what a router keeps of one request. */
interface EngineOptions<R extends Route<unknown>, Visit extends Visited, Who, A extends HttpReply> {
  /** The whole public path under which this process sees the router. */
  prefix: string
  routes: readonly R[]
  /**
   * Who asks, or a throw. Asked before anything is told of what is there, for a path that names no route too.
   */
  authenticate(visit: Visit, route: R | undefined): Awaitable<Who>
  /** What must hold before the request itself is read. Throws what does not. */
  admit?(visit: Visit, handler: HandlerOf<R>): void
  /** Why a parameter of a path cannot be what it stands for. */
  checkParam(value: string): string | undefined
  answer(handler: HandlerOf<R>, matched: RoutedRequest<Who>, visit: Visit): Awaitable<A>
  /** The problem that whatever was thrown is, and the place to tell a host of it. */
  refuse(error: unknown, visit: Visit): ProblemError
}

interface Engine<Visit, A extends HttpReply> {
  /** The prefix in canonical form. */
  readonly prefix: string
  owns(pathname: string): boolean
  /** Never rejects for a request, as long as `refuse` does not throw. `target`: as it was sent, where that is known. */
  reply(visit: Visit, target?: Target): Promise<A | TextReply>
}

// Bytes of a URL; a longer one cannot be a request of ours.
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
 * Builds the engine of one router. Checks in this order, and the first that fails answers: prefix, length, who asks,
 * route, method, what `admit` asks for, parameters; then the route's own.
 *
 * @throws TypeError for an unusable prefix.
 */
export function createEngine<R extends Route<unknown>, Visit extends Visited, Who, A extends HttpReply>(
  options: EngineOptions<R, Visit, Who, A>,
): Engine<Visit, A> {
  const { authenticate, admit, checkParam, answer, refuse } = options
  const prefix = parsePrefix(options.prefix)
  const routes = options.routes.map((route) => ({ path: route.path, route, handlers: methodsOf(route) }))

  function admitPath(visit: Visit, target: Target | undefined): asserts target is Target {
    if (target === undefined || !prefix.covers(target.pathname)) throw new ProblemError('route_not_found')
    if (visit.request.url.length > URL_LENGTH) throw new ProblemError('uri_too_long')
  }

  async function serve(found: Match<(typeof routes)[number]> | undefined, visit: Visit, target: Target | undefined) {
    const who = await authenticate(visit, found?.route.route)
    if (found === undefined || target === undefined) throw new ProblemError('route_not_found')
    const { handlers } = found.route
    const handler = handlers.get(visit.request.method) as HandlerOf<R> | undefined
    if (handler === undefined)
      throw new ProblemError('method_not_allowed', { headers: { allow: [...handlers.keys()].join(', ') } })
    admit?.(visit, handler)
    return answer(handler, { who, params: checkParams(found.params, checkParam), search: target.search }, visit)
  }

  const table = createTable<(typeof routes)[number], [Visit, Target | undefined], A | TextReply>(prefix, routes, {
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
      // What is not a request rejects here: `toHandler` answers it.
      const target = given ?? splitUrl(visit.request.url)
      return table.fetch(target?.pathname ?? '', visit, target)
    },
  }
}

/**
 * A fetch-style handler, and what a mount needs to know of it. Of its second argument only the caller's address is read:
 * the `remoteAddress` that our adapters pass, or what Deno and Bun pass in its place.
 */
export interface Mountable<A extends HttpReply = HttpReply> {
  (request: Request, info?: unknown): Promise<Response>
  /** The same function, for hosts that take an object with `fetch`. */
  fetch(request: Request, info?: unknown): Promise<Response>
  /** The same answer before it becomes a `Response`: what our Node adapter sends, at a fraction of the cost. */
  reply(request: Request, info?: unknown): Promise<A>
}

/** `answer` as a handler that never rejects: untyped callers hand over anything, and what is not a request is answered too. */
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
