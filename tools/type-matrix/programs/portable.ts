/** What needs no types of Node's: the router, its handlers, and every subpath whose types are of the platform. */
import {
  type Connection,
  createDiagnosticsRouter,
  type DiagnosticsRouter,
  type Inspectors,
  Refusal,
  resolveAdminAuth,
} from 'relayscope'
import { createCooperativeSiteClient } from 'relayscope/browser'
import { toDenoHandler } from 'relayscope/deno'
import { toExpressMiddleware } from 'relayscope/express'
import { toHonoHandler } from 'relayscope/hono'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { createCooperativeSitePublisher } from 'relayscope/publisher'
import { createFakeInspectors } from 'relayscope/testing'

export * as site from 'relayscope/cooperative-site'
export * as redis from 'relayscope/redis'

export const router: DiagnosticsRouter = createDiagnosticsRouter({
  ...memoryComposition(createMemoryFacilities()),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
export const answer: Promise<Response> = router(new Request('http://localhost/ops/diagnostics/capabilities'))
export const owned: boolean = router.owns('/ops/diagnostics')
export const worker: { fetch(request: Request): Promise<Response> } = router
export const fakes: Inspectors = createFakeInspectors({ connections: [] as Connection[] })
export const refusal = new Refusal('unavailable', 'the store is away')
export const mounts = [toNodeHandler(router), toExpressMiddleware(router), toDenoHandler(router), toHonoHandler(router)]
// @ts-expect-error there is no silent default
createDiagnosticsRouter({ inspectors: {} })

const headers = { authorization: 'Bearer viewer' }
export const viewers = [
  createCooperativeSiteClient({ baseUrl: '/relay', sessionId: 's', headers }),
  createCooperativeSiteClient({ baseUrl: '/relay', sessionId: 's', headers: async () => new Headers(headers) }),
]
export const publisher = createCooperativeSitePublisher({
  runtime: {
    identity: () => ({ client_id: 'notes', instance_id: 'boot-7' }),
    baseUrl: 'http://127.0.0.1:8080/relay',
    authorize: (given) => given.set('authorization', 'Bearer host'),
  },
})
