/** The rows about the router itself: its index, its OpenAPI document, its capabilities. */
import * as z from 'zod'
import { DeploymentMode } from '../contract/delivery.js'
import { type Capabilities, Capabilities as CapabilitiesSchema } from '../contract/inspectors.js'
import { JsonRecord } from '../contract/json.js'
import { NoQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

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

/** The rows of the service; what they answer is made by the router, which alone knows all rows. */
export function serviceRows(answers: {
  index(): ServiceIndex
  openApi(): z.input<typeof JsonRecord>
  capabilities(): Capabilities
}): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/',
      summary: 'The routes of this router',
      needs: [],
      query: NoQuery,
      response: ServiceIndex,
      ask: answers.index,
    }),
    diagnosticsRow({
      path: OPENAPI_PATH,
      summary: 'This document',
      needs: [],
      query: NoQuery,
      response: JsonRecord,
      ask: answers.openApi,
    }),
    diagnosticsRow({
      path: '/capabilities',
      summary: 'What can be asked; not a readiness check',
      needs: [],
      query: NoQuery,
      response: CapabilitiesSchema,
      ask: answers.capabilities,
    }),
  ]
}
