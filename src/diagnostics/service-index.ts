/** What the router says of itself: its index, and what else its own routes answer. */
import * as z from 'zod'
import type { Capabilities } from '../contract/capabilities.js'
import { DeploymentMode } from '../contract/delivery.js'
import type { JsonObject } from '../contract/json.js'

/** One route as the index lists it. */
export const RouteEntry = z.object({
  method: z.literal('GET'),
  /** Relative to the prefix. */
  path: z.string(),
  summary: z.string(),
  /** The capability that it needs; `null` for a route that is always there. */
  capability: z.string().nullable(),
  /** Whether this router can ask it now. */
  available: z.boolean(),
})
export type RouteEntry = z.infer<typeof RouteEntry>

/** The index: what can be asked here. `dashboard_path` is a convention; nothing is mounted there. */
export const ServiceIndex = z.object({
  service: z.literal('relayscope'),
  version: z.string(),
  deployment_id: z.string().nullable(),
  mode: DeploymentMode,
  dashboard_path: z.string(),
  openapi_path: z.string(),
  routes: z.array(RouteEntry),
})
export type ServiceIndex = z.infer<typeof ServiceIndex>

export const OPENAPI_PATH = '/openapi.json'

/** What the router answers of itself. */
export interface Service {
  readonly index: ServiceIndex
  readonly capabilities: Capabilities
  /** Whether its inspectors are capable of that. */
  offers(capability: string): boolean
  /** Whether the index says that the route can be asked. */
  isAvailable(path: string): boolean
  openApi(): JsonObject
}
