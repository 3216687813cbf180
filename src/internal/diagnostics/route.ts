/** Defines the routes of this router over its inspectors. */
import * as z from 'zod'
import type { Capabilities, Capability } from '../contract/capabilities.js'
import { DeploymentMode } from '../contract/delivery.js'
import type { FamilyName, Present } from '../contract/families.js'
import { NAMES, toTimestamp } from '../contract/ids.js'
import { type JsonObject, JsonValue } from '../contract/json.js'
import type { ReadRoute, TypedReadRoute } from '../http/read-route.js'
import type { ViewContext } from '../views/reading.js'

// What the router returns about itself: its index and the responses of its own routes.

/** One route as the index lists it. */
export const RouteEntry = z
  .object({
    method: z.literal('GET').describe('`HEAD` works too.'),
    path: z.string().describe("Relative to the prefix, in OpenAPI's form."),
    summary: z.string().describe('What the route returns.'),
    capability: z
      .string()
      .nullable()
      .describe('The capability that the route needs; `null` if it is always available.'),
    available: z.boolean().describe('Whether this router can answer the route now.'),
  })
  .describe('One route of the router.')
export type RouteEntry = z.infer<typeof RouteEntry>

/** The index of routes. */
export const ServiceIndex = z
  .object({
    service: z.literal('relayscope').describe('The deployment that the router serves.'),
    version: z.string().describe('Version of the library.'),
    deployment_id: z.string().nullable().describe(NAMES.deployment_id),
    mode: DeploymentMode.describe('Whether the deployment is one process or several over one store.'),
    dashboard_path: z.string().describe('Where hosts mount a dashboard, by convention; nothing is mounted there.'),
    openapi_path: z.string().describe('Where this API describes itself, relative to the prefix.'),
    routes: z.array(RouteEntry).describe('Every route, available or not.'),
  })
  .describe('The index of routes.')
export type ServiceIndex = z.infer<typeof ServiceIndex>

/** The description of this API. */
export const OpenApiDocument = z.record(z.string(), JsonValue).describe('An OpenAPI 3.1 document.')

export const OPENAPI_PATH = '/openapi.json'

/** What the router returns about itself. */
export interface Service {
  readonly index: ServiceIndex
  readonly capabilities: Capabilities
  /** Whether its inspectors have the capability. */
  offers(capability: string): boolean
  /** Whether the index lists the route as available. */
  isAvailable(path: string): boolean
  openApi(): JsonObject
}

/** What a route works with in addition to its inspectors. */
interface RouteView extends ViewContext {
  readonly service: Service
  /** How long the whole request may take. */
  readonly deadlineMs: number
}

/** A route of the diagnostics router, which has made sure that an inspector that it `needs` is there. */
export interface DiagnosticsRoute extends ReadRoute<Present, RouteView> {
  requires: readonly Capability[]
  /**
   * Whether the response contains only users that the caller may see, so that callers with access to some users may
   * request it. If absent, they receive 403 `not_narrowable`.
   */
  scopable?: true
  /** Whether the response itself lists failed sources, so that they do not fail the request; 'of_some': unless all failed. */
  reportsFailures?: true | 'of_some'
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
    Pick<DiagnosticsRoute, 'requires' | 'scopable' | 'operation' | 'reportsFailures' | 'alsoReads' | 'unversioned'>,
): DiagnosticsRoute {
  return definition as unknown as DiagnosticsRoute
}

/** The filter of a query: a silence is counted back from now, and becomes the filter `name`. */
export function toFilter<Query extends { silent_for_ms?: number | undefined }>(
  name: 'last_seen_before' | 'updated_before',
  { silent_for_ms, ...filter }: Query,
  { now }: RouteView,
) {
  return silent_for_ms === undefined ? filter : { ...filter, [name]: toTimestamp(now() - silent_for_ms) }
}
