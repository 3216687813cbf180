/** The menu: every route of the diagnostics router, in the order in which the index lists them. */
import { BROWSER_WINDOW_ROUTES } from './browser-windows.js'
import { CONNECTION_ROUTES } from './connections.js'
import { CONTEXT_ROUTES } from './contexts.js'
import { SESSION_ROUTES, SITE_ROUTES, SUBSCRIPTION_ROUTES } from './cooperative.js'
import { DEDUPLICATOR_ROUTES } from './deduplicator.js'
import { DELIVERY_ROUTES } from './delivery.js'
import { FINDING_ROUTES } from './findings.js'
import { HISTORY_ROUTES } from './history.js'
import type { DiagnosticsRoute, RouteSection } from './route.js'
import { RPC_ROUTES } from './rpc.js'
import { SERVICE_ROUTES } from './service.js'
import { SOURCE_ROUTES } from './sources.js'
import { ACTION_ROUTES, SEARCH_ROUTES, USER_ROUTES } from './users.js'
import { WORKER_ROUTES } from './workers.js'

/** All routes by section. A literal path comes before a parameter at the same position. */
export const SECTIONS: readonly RouteSection[] = [
  SERVICE_ROUTES,
  SOURCE_ROUTES,
  FINDING_ROUTES,
  SEARCH_ROUTES,
  USER_ROUTES,
  ACTION_ROUTES,
  CONNECTION_ROUTES,
  HISTORY_ROUTES,
  RPC_ROUTES,
  DEDUPLICATOR_ROUTES,
  CONTEXT_ROUTES,
  WORKER_ROUTES,
  BROWSER_WINDOW_ROUTES,
  DELIVERY_ROUTES,
  SITE_ROUTES,
  SESSION_ROUTES,
  SUBSCRIPTION_ROUTES,
]

export const ROUTES: readonly DiagnosticsRoute[] = SECTIONS.flatMap(({ routes }) => routes)
