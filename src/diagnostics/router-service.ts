/** What a router reports about itself, for callers with full access and with access to some users. */
import { CAPABILITIES, capabilitiesOf } from '../contract/capabilities.js'
import type { Inspectors } from '../contract/families.js'
import { deepFreeze, type JsonObject } from '../contract/json.js'
import { VERSION } from '../version.js'
import { openApiDocument } from './openapi.js'
import type { ResolvedOptions } from './options.js'
import type { DiagnosticsRoute } from './route.js'
import { ROUTES } from './routes.js'
import { OPENAPI_PATH, type RouteEntry, type Service } from './service-index.js'
import { WATCH } from './watch/route.js'

/** A route as the index lists it. */
type Listed = Pick<DiagnosticsRoute, 'path' | 'summary' | 'needs' | 'scopable' | 'operation'>

/**
 * @returns a function that returns what the router reports about itself, over some of its inspectors and the routes
 * that are open.
 */
export function createServices({
  deployment,
  extensions,
  dashboardPath,
  limits,
  prefix,
}: Pick<ResolvedOptions, 'deployment' | 'extensions' | 'dashboardPath' | 'limits' | 'prefix'>): (
  inspectors: Inspectors,
  isOpen?: (route: Pick<DiagnosticsRoute, 'scopable'>) => boolean,
) => Service {
  let document: JsonObject | undefined
  // Created on first use: most processes never need it.
  function openApi(): JsonObject {
    document ??= deepFreeze(openApiDocument({ limits, prefix }))
    return document
  }

  return (inspectors, isOpen = () => true) => {
    const offered = CAPABILITIES.offeredBy(inspectors)
    const offers = (name: string) => offered.has(name)
    const routes = [...ROUTES, WATCH.route].map(
      (route: Listed): RouteEntry => ({
        method: 'GET',
        path: route.path,
        summary: route.summary,
        capability: route.operation ?? route.needs[0] ?? null,
        available: isOpen(route) && (route.needs.length === 0 || route.needs.some(offers)),
      }),
    )
    const available = new Set(routes.filter((route) => route.available).map(({ path }) => path))
    const views = new Set(
      [...ROUTES, WATCH.route].flatMap(({ operation, path }) => (operation && available.has(path) ? [operation] : [])),
    )
    return {
      index: deepFreeze({
        service: 'relayscope',
        version: VERSION,
        deployment_id: deployment.id,
        mode: deployment.mode,
        dashboard_path: dashboardPath,
        openapi_path: OPENAPI_PATH,
        routes,
      }),
      capabilities: deepFreeze(
        capabilitiesOf(inspectors, { ...extensions, deployment_id: deployment.id, mode: deployment.mode }, [...views]),
      ),
      offers,
      isAvailable: (path) => available.has(path),
      openApi,
    }
  }
}
