/** The routes of this router: what `http/read.ts` answers, over the set of inspectors. */
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
  /** Its answer says itself which source failed, and why: none of these failures is its own. */
  reportsFailures?: true
  /** Other inspectors that its answer is made of too, where they are there. */
  alsoReads?: readonly FamilyName[]
  /**
   * Its answer becomes another one in ways that no version of its sources tells: by an instant that passes, by a report that
   * comes each second, by a source that answers no more. It is read each time, and compared.
   */
  unversioned?: true
  /** A view that came later than the capabilities' booleans: where it can be asked, `extensions.operations` names it. */
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
