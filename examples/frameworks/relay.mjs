/**
 * What the routes of a framework share: one set of facilities per process, a router and its dashboard. The folder is laid out
 * as the root of a project; each framework has its one file in it.
 */

// #region relay
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

// One object per process: development servers and bundlers load this module more than once.
const facilities = Reflect.get(globalThis, 'relay') ?? createMemoryFacilities()
Reflect.set(globalThis, 'relay', facilities)
export const { connections } = facilities

const createHandlers = () => [
  createDiagnosticsRouter({
    ...memoryComposition({ connections }), // only what your relay feeds
    auth: resolveAdminAuth({ strict: true, host: '0.0.0.0' }), // throws unless SERVICE_ADMIN_KEY is set
    prefix: '/ops/diagnostics',
  }),
  createDashboard({ api: '/ops/diagnostics', prefix: '/ops/dashboard' }),
]
let handlers

/** Answers a request below `/ops`; `undefined` for any other. */
export function answer(request) {
  handlers ??= createHandlers() // at the first request, because a build imports this module without the key
  const { pathname } = new URL(request.url)
  return handlers.find((handler) => handler.owns(pathname))?.(request)
}
// #endregion
