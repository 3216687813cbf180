/** What the router returns about itself: its index and the responses of its own routes. */
import * as z from 'zod'
import type { Capabilities } from '../contract/capabilities.js'
import { DeploymentMode } from '../contract/delivery.js'
import { NAMES } from '../contract/ids.js'
import { type JsonObject, JsonValue } from '../contract/json.js'

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
