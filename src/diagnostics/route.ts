/** Defines the routes of this router over its inspectors. */
import type * as z from 'zod'
import type { Capability } from '../contract/capabilities.js'
import type { FamilyName, Present } from '../contract/families.js'
import type { ReadRoute, TypedReadRoute } from '../http/read-route.js'
import type { ViewContext } from '../views/reading.js'
import type { Service } from './service-index.js'

/** What a route works with in addition to its inspectors. */
interface RouteView extends ViewContext {
  readonly service: Service
  /** How long the whole request may take. */
  readonly deadlineMs: number
}

/** A route of the diagnostics router, which has made sure that an inspector that it `needs` is there. */
export interface DiagnosticsRoute extends ReadRoute<Present, RouteView> {
  needs: readonly Capability[]
  /**
   * Whether the response contains only users that the caller may see, so that callers with access to some users may
   * request it. If absent, they receive 403 `not_narrowable`.
   */
  scopable?: true
  /** Whether the response itself lists failed sources, so that their failures do not fail the request. */
  reportsFailures?: true
  /** Optional inspectors that the response also uses, if present. */
  alsoReads?: readonly FamilyName[]
  /**
   * Whether the response can change without a new version of its sources: because time passes, a report arrives every
   * second, or a source stops answering. It is then read and compared each time.
   */
  unversioned?: true
  /**
   * The name under which `extensions.operations` advertises the route; for routes without a capability of their own.
   */
  operation?: string
}

/** The routes of one family or view. */
export interface RouteSection {
  /** The OpenAPI tag, and its description. */
  tag: string
  about: string
  routes: readonly DiagnosticsRoute[]
}

export const routeSection = (tag: string, about: string, routes: readonly DiagnosticsRoute[]): RouteSection => ({
  tag,
  about,
  routes,
})

/** Defines a route; `read` is checked against `path`, `query` and `response`. */
export function diagnosticsRoute<
  Path extends string,
  Response extends z.ZodType,
  Query extends z.ZodObject = z.ZodObject<Record<never, never>>,
>(
  definition: TypedReadRoute<Present, RouteView, Path, Query, Response> &
    Pick<DiagnosticsRoute, 'needs' | 'scopable' | 'operation' | 'reportsFailures' | 'alsoReads' | 'unversioned'>,
): DiagnosticsRoute {
  return definition as unknown as DiagnosticsRoute
}
