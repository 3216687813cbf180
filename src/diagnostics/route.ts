/** The routes of this router: what `http/read.ts` answers, over the set of inspectors. */
import type * as z from 'zod'
import type { Capability, Inspectors } from '../contract/inspectors.js'
import type { ReadRoute, TypedReadRoute } from '../http/read-route.js'
import type { ViewAsk } from '../views/reading.js'
import type { Service } from './service-index.js'

/** The inspectors as a route sees them: the router has made sure that the one it `needs` is there. */
export type Present = { [Name in keyof Inspectors]-?: NonNullable<Inspectors[Name]> }

/** What a route works with beside its inspectors. */
export interface RouteView extends ViewAsk {
  readonly service: Service
}

/** A route of the diagnostics router. */
export interface DiagnosticsRoute extends ReadRoute<Present, RouteView> {
  needs: readonly Capability[]
}

/** Defines a route; `ask` is checked against `path`, `query` and `response`. */
export function diagnosticsRoute<
  Path extends string,
  Response extends z.ZodType,
  Query extends z.ZodObject = z.ZodObject<Record<never, never>>,
>(
  definition: TypedReadRoute<Present, RouteView, Path, Query, Response> & { needs: readonly Capability[] },
): DiagnosticsRoute {
  return definition as unknown as DiagnosticsRoute
}
