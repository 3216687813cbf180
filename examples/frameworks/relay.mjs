/** What the routes of a framework share: one set of facilities per process, a router and its dashboard. */

// #region relay
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

function create() {
  const { connections } = createMemoryFacilities()
  const diagnostics = createDiagnosticsRouter({
    ...memoryComposition({ connections }), // only what your relay feeds
    auth: resolveAdminAuth({ strict: true, host: '0.0.0.0' }), // throws unless SERVICE_ADMIN_KEY is set
    prefix: '/ops/diagnostics',
  })
  return { connections, diagnostics, dashboard: createDashboard({ api: '/ops/diagnostics', prefix: '/ops/dashboard' }) }
}

// Development servers load a module again after each change; the connections must stay.
const relay = Reflect.get(globalThis, 'relay') ?? create()
Reflect.set(globalThis, 'relay', relay)
export const { connections, diagnostics, dashboard } = relay

/** Answers a request below `/ops`; `undefined` for any other. */
export function answer(request) {
  const { pathname } = new URL(request.url)
  return [diagnostics, dashboard].find((handler) => handler.owns(pathname))?.(request)
}
// #endregion
