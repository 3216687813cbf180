/** Routing, by itty-router's `Router`. Nothing else imports itty-router. */
import { Router } from 'itty-router'
import type { Awaitable } from '../contract/page.js'
import { decodeSegment, type Prefix } from './target.js'

const PARAMETER = /\{(\w+)\}/g

/** The names of the parameters in a template, which is a path in OpenAPI's form: `/users/{user_id}/summary`. */
export const paramNames = (template: string): string[] =>
  [...template.matchAll(PARAMETER)].map(([, name]) => name as string)

/** Fills the parameters of a path template. */
export const fillTemplate = (template: string, fill: (name: string) => string): string =>
  template.replaceAll(PARAMETER, (_, name: string) => fill(name))

/** A route that a path names. */
export interface Match<R> {
  route: R
  /** Percent-decoded once; `null` if malformed. */
  params: Record<string, string | null>
}

interface TableOptions<R, Args extends unknown[], A extends object> {
  /** Runs before the route is looked up. An error ends the request. */
  before?(...args: Args): void
  /** Serves a path. `found` is `undefined` for an unknown route. */
  serve(found: Match<R> | undefined, ...args: Args): Awaitable<A>
  /** Handles an error of `before` or `serve`. Without it the error is thrown to the caller. */
  catch?(error: unknown, ...args: Args): A
}

export interface Table<Args extends unknown[], A> {
  /** Whether the router serves this undecoded path. */
  owns(pathname: string): boolean
  /** Serves a path that starts with the prefix. A literal segment wins over a parameter. */
  fetch(pathname: string, ...args: Args): Promise<A>
}

/** Whether a path would name one of `templates` only once its literals are decoded. A parameter may be encoded in any way. */
function createSpelling(templates: readonly string[][]) {
  const isLiteral = (part: string) => paramNames(part).length === 0
  return (path: string): boolean => {
    if (!path.includes('%')) return false
    const segments = path.split('/')
    const decoded = segments.map(decodeSegment)
    return templates.some(
      (parts) =>
        parts.length === segments.length &&
        parts.every((part, i) => !isLiteral(part) || part === decoded[i]) &&
        parts.some((part, i) => isLiteral(part) && part !== segments[i]),
    )
  }
}

// Characters that `new URL` leaves unchanged, and that all literal segments consist of.
const PLAIN = /^(?!\.{1,2}$)[\w.-]*$/

/**
 * The path as passed to itty-router, which parses it with `new URL`: that resolves dot segments and turns `\` into `/`.
 * A segment with other than plain characters can only be a parameter, so a placeholder replaces it.
 */
const toRoutable = (segments: readonly string[]): string =>
  segments.map((segment) => (PLAIN.test(segment) ? segment : '~')).join('/')

/** Routes paths below `prefix` to `routes`, whose paths are templates. */
export function createTable<R extends { path: string }, Args extends unknown[], A extends object>(
  prefix: Prefix,
  routes: readonly R[],
  options: TableOptions<R, Args, A>,
): Table<Args, A> {
  type Lookup = { method: string; url: string; segments: readonly string[] | undefined }
  const { before, serve, catch: failed } = options
  const table = Router<Lookup, Args, A>({
    before: before && [(_, ...args) => before(...args) as undefined],
    catch: failed && ((error: unknown, _: Lookup, ...args: Args) => failed(error, ...args)),
  })
  for (const route of routes) {
    const places = route.path.split('/').flatMap((part, i) => paramNames(part).map((name) => [name, i] as const))
    // Taken from the original path, not from the routable one: see `toRoutable`.
    const paramsOf = (segments: readonly string[]) =>
      Object.fromEntries(places.map(([name, i]) => [name, decodeSegment(segments[i] as string)]))
    table.all(
      fillTemplate(route.path, (name) => `:${name}`),
      ({ segments }, ...args) => segments && serve({ route, params: paramsOf(segments) }, ...args),
    )
  }
  table.all('*', (_, ...args) => serve(undefined, ...args))

  const hasRespelledLiteral = createSpelling(routes.map(({ path }) => path.split('/')))
  const rest = (pathname: string) => pathname.slice(prefix.path.length)
  // itty-router ignores trailing slashes.
  const namesNothing = (path: string) => (path.length > 1 && path.endsWith('/')) || hasRespelledLiteral(path)
  return {
    owns: (pathname) => prefix.owns(pathname) && !hasRespelledLiteral(rest(pathname)),
    fetch(pathname, ...args) {
      const path = rest(pathname)
      const segments = namesNothing(path) ? undefined : path.split('/')
      return table.fetch({ method: 'ALL', url: `http://h${toRoutable(segments ?? [])}`, segments }, ...args)
    },
  }
}
