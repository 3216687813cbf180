/** The routes of docs/mounting.md, called as their frameworks call them. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Consumer, createConsumer } from './consumer.js'

const KEY = 'the-key-of-the-frameworks'

type Module = Record<string, unknown>
type Call = (module: Module, request: Request) => unknown

/** Files of frameworks, and how each framework calls what its file exports. */
const FRAMEWORKS: Record<string, Call> = {
  'app/ops/[...path]/route.js': ({ GET }, request) => (GET as (request: Request) => unknown)(request),
  'src/hooks.server.js': ({ handle }, request) =>
    (handle as (input: object) => unknown)({ event: { request }, resolve: () => new Response(null, { status: 404 }) }),
  'app/routes/ops.$.js': ({ loader }, request) => (loader as (input: object) => unknown)({ request, params: {} }),
  'src/pages/ops/[...path].js': ({ GET }, request) => (GET as (input: object) => unknown)({ request, params: {} }),
  'server/routes/ops/[...path].js': (module, request) => (module.default as (event: object) => unknown)({ request }),
  'routes/ops/[...path].js': (module, request) => (module.default as (event: object) => unknown)({ req: request }),
  'elysia.mjs'({ ops }, request) {
    let route: ((context: object) => unknown) | undefined
    ;(ops as (app: object) => unknown)({ get: (_path: string, handler: typeof route) => (route = handler) })
    return route?.({ request })
  },
}

describe('a framework with fetch-style routes', () => {
  let consumer: Consumer
  beforeAll(async () => {
    vi.stubGlobal('defineEventHandler', (handler: unknown) => handler)
    vi.stubGlobal('toWebRequest', ({ request }: { request: Request }) => request)
    consumer = await createConsumer()
  })
  afterAll(() => {
    vi.unstubAllEnvs()
    vi.unstubAllGlobals()
    Reflect.deleteProperty(globalThis, 'relay')
    return consumer?.remove()
  })

  const load = (name: string): Promise<Module> =>
    import(/* @vite-ignore */ pathToFileURL(join(consumer.dir, 'examples/frameworks', name)).href)

  it.each(
    Object.keys(FRAMEWORKS),
  )('%s answers diagnostics with the key, the dashboard, and nothing else', async (name) => {
    const module = await load(name)
    // A build imports the module too, and has no key.
    vi.stubEnv('SERVICE_ADMIN_KEY', KEY)
    const call = async (path: string, headers: Record<string, string> = {}) => {
      const answer = await (FRAMEWORKS[name] as Call)(module, new Request(`http://localhost${path}`, { headers }))
      return answer as Response
    }
    expect((await call('/ops/diagnostics/connections')).status).toBe(403)
    const answer = await call('/ops/diagnostics/connections', { 'x-admin-key': KEY })
    expect([answer.status, await answer.json()]).toMatchObject([200, { items: [] }])
    expect(await (await call('/ops/dashboard/')).text()).toContain('data-api="../../ops/diagnostics"')
    expect((await call('/ops/none')).status).toBe(404)
  })
})
