/** Which route a path names. itty-router is behind this file and nowhere else. */
import { Router } from 'itty-router'
import { decodeSegment, type Prefix } from './target.js'

const PARAMETER = /\{(\w+)\}/g

/** The names of the parameters in a template, which is a path in OpenAPI's form: `/users/{user_id}/summary`. */
export const paramNames = (template: string): string[] =>
  [...template.matchAll(PARAMETER)].map(([, name]) => name as string)

/** A template with something else in the place of each parameter. */
export const fillTemplate = (template: string, fill: (name: string) => string): string =>
  template.replaceAll(PARAMETER, (_, name: string) => fill(name))

/** A route that a path names. */
interface Match<R> {
  route: R
  /** Percent-decoded once; `null` where that is not well-formed. */
  params: Record<string, string | null>
}

export interface Matcher<R> {
  /** Whether a request with this path, undecoded, is the router's to answer. */
  owns(pathname: string): boolean
  /** The route of a path below the prefix. A literal stands before a parameter in its place. */
  match(pathname: string): Match<R> | undefined
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

/** Matches paths below `prefix` to `routes`, whose paths are templates. */
export function createMatcher<R extends { path: string }>(prefix: Prefix, routes: readonly R[]): Matcher<R> {
  const table = Router()
  for (const { path } of routes) table.all(fillTemplate(path, (name) => `:${name}`))
  // Its patterns and not its `fetch`, which would read a URL and a query anew for every request and resolve the dot
  // segments that a parameter is refused for.
  const patterns = table.routes.map(([, pattern]) => pattern)
  const hasRespelledLiteral = createSpelling(routes.map(({ path }) => path.split('/')))
  const rest = (pathname: string) => pathname.slice(prefix.path.length)
  return {
    owns: (pathname) => prefix.owns(pathname) && !hasRespelledLiteral(rest(pathname)),
    match(pathname) {
      const path = rest(pathname)
      // To itty slashes at the end are none; a segment before the last is never empty to it.
      if ((path.length > 1 && path.endsWith('/')) || hasRespelledLiteral(path)) return undefined
      for (const [i, pattern] of patterns.entries()) {
        const found = pattern.exec(path)
        if (!found) continue
        const params = Object.entries(found.groups ?? {}).map(([name, text]) => [name, decodeSegment(text)] as const)
        return { route: routes[i] as R, params: Object.fromEntries(params) }
      }
      return undefined
    },
  }
}
