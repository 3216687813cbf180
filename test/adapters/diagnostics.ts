/**
 * The real router over fixed data, mounted next to the subject, and the requests it must answer the same on every host.
 */
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { apiKeyAuth } from '../../src/internal/http/auth.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createWorld, NOW } from '../diagnostics/world.js'

export const KEY = 'the-key-of-the-battery'
const WITH_KEY = [`X-Admin-Key: ${KEY}`]

export const diagnostics = createDiagnosticsRouter({
  inspectors: createFakeInspectors(createWorld()),
  auth: apiKeyAuth(KEY),
  prefix: '/admin',
  deployment: { id: 'battery', mode: 'direct' },
  now: () => NOW,
})

export interface RouterRow {
  line: string
  headers: string[]
}

const get = (path: string): RouterRow => ({ line: `GET /admin${path}`, headers: WITH_KEY })

/** Each route of the table, asked for something known. */
const routes = diagnostics.routes.map(({ path }) => {
  const known: Record<string, string> = {
    connection_id: 'conn-1',
    context_id: 'ctx-1',
    window_id: 'win-1',
    instance_id: 'inst-1',
    user_id: 'alice',
  }
  const query = /^\/(?:workers|rpc\/instances|delivery\/status)/.test(path) ? '?user_id=alice' : ''
  return path.replaceAll(/\{(\w+)\}/g, (_, name: string) => known[name] ?? 'unknown') + query
})

const odd = [
  '/',
  '/capabilities/',
  '/users/a%2Fb/summary',
  '/users/a%252Fb/summary',
  '/users/%ff/summary',
  '/users/%ZZ/summary',
  '/users/%c0%af/summary',
  '/users/%00/summary',
  '/users/%0d%0a/summary',
  '/users/%E2%80%AE/summary',
  '/users/__proto__/summary',
  `/users/${'x'.repeat(257)}/summary`,
  '/%ff',
  '/nope',
  '/connections?limit=0',
  '/connections?limit=1&limit=2',
  '/connections?status=',
  '/connections?nope=1',
  '/connections?cursor=AAAA',
  '/connections?limit=1',
  '/delivery/status?user_id=alice&client_id=desk&command_id=..',
  `/capabilities?${'x'.repeat(8_192)}`,
]

export const routerRows: RouterRow[] = [
  get(''),
  ...[...routes, ...odd].map(get),
  { line: 'HEAD /admin/capabilities', headers: WITH_KEY },
  { line: 'GET /admin/capabilities', headers: [] },
  { line: 'GET /admin/nope', headers: [] },
  { line: 'GET /admin/capabilities', headers: [...WITH_KEY, ...WITH_KEY] },
  { line: 'GET /admin/capabilities', headers: [...WITH_KEY, 'X-Expected-Deployment-Id: other'] },
  { line: 'GET /admin/capabilities', headers: [...WITH_KEY, 'Content-Length: 10485760'] },
  ...['POST', 'PUT', 'DELETE', 'PROPFIND', 'TRACE'].map((method) => ({
    line: `${method} /admin/capabilities`,
    headers: WITH_KEY,
  })),
  { line: 'OPTIONS /admin/capabilities', headers: [...WITH_KEY, 'Origin: http://evil.test'] },
]
