/** What a reader makes of an unchanged tag, compared with a fresh answer, while only time passes. */
import { expect } from 'vitest'
import { grow } from '../../src/internal/contract/ages.js'
import type { DiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { isCompared } from '../../src/internal/http/read-route.js'
import type { createMemoryFacilities } from '../../src/memory/composition/facilities.js'

type Facilities = Pick<
  ReturnType<typeof createMemoryFacilities>,
  'connections' | 'contexts' | 'browserWindows' | 'rpc' | 'dispatcher' | 'sites' | 'sessions'
>

const CLIENT = { user_id: 'ann', client_id: 'desk' }
const INSTANCE = { ...CLIENT, instance_id: 'i', client_type: 'browser' } as const
const PATHS = [
  ...ROUTES.filter((route) => isCompared(route) && !route.path.includes('{')).map(({ path }) => path),
  '/connections?silent_for_ms=20000',
  '/connections?status=disconnected',
  '/contexts?status=stale',
  '/contexts/count?status=stale',
  '/workers?user_id=ann',
  '/workers/available?user_id=ann',
  '/rpc/pending?overdue=true',
  '/delivery/commands?overdue=true',
]

interface Known {
  etag: string | null
  // biome-ignore lint/suspicious/noExplicitAny: bodies of every route
  body: any
}

async function ask(router: DiagnosticsRouter, path: string, etag: string | null) {
  const headers: HeadersInit = etag === null ? {} : { 'if-none-match': etag }
  const response = await router(new Request(`http://localhost${path}`, { headers }))
  const text = await response.text()
  return { status: response.status, etag: response.headers.get('etag'), body: text === '' ? null : JSON.parse(text) }
}

/** What a request examined to answer is not confirmed by a tag. */
const unexamined = ({ completeness, ...body }: Known['body']) => ({
  ...body,
  ...(completeness && { completeness: { ...completeness, examined: null } }),
})

/**
 * A client and a node, from which nothing is heard for 100 s.
 *
 * @param advance Moves the clock of the router, by which the node has no loop after `stop`.
 */
export async function holdAges(
  facilities: Facilities,
  router: DiagnosticsRouter,
  advance: (ms: number) => void,
  stop: () => unknown = () => {},
): Promise<void> {
  const { connections, contexts, browserWindows, rpc, dispatcher, sites, sessions } = facilities
  await connections.connect(INSTANCE)
  await contexts.report({ ...INSTANCE, context_id: 'x', status: 'active', ownership: 'worker' })
  await browserWindows.report({ ...CLIENT, window_id: 'w', focused: true, state: 'normal' })
  await dispatcher.attach(INSTANCE, async () => {})
  for (const deadline_ms of [45_000, 600_000])
    await dispatcher.dispatch({ ...CLIENT, command_id: `c-${deadline_ms}`, action: 'a', deadline_ms })
  for (const timeout_ms of [45_000, 600_000])
    (await rpc.open({ ...CLIENT, action: 'a', timeout_ms })).result.catch(() => {})
  await sites.put({ site_id: 's', owner: 'ann', mode: 'observe' })
  await sessions.open({ site_id: 's', owner: 'ann', ttl_ms: 45_000 })
  await dispatcher.reconcile()
  await stop()

  const known = new Map<string, Known & { age: number }>()
  const seen = new Set<string>()
  for (let step = 0; step <= 5; step++) {
    for (const path of PATHS) {
      const before = known.get(path)
      // What a loop in real time changes between two requests is read again.
      for (let tries = 0; ; tries++) {
        const named = await ask(router, path, before?.etag ?? null)
        const fresh = await ask(router, path, null)
        if (named.status === 304 && fresh.etag !== named.etag && tries < 5) continue
        if (named.status === 304 && before) {
          const aged = structuredClone(before.body)
          grow(aged, before.age)
          expect([path, step, unexamined(aged)]).toEqual([path, step, unexamined(fresh.body)])
          if (JSON.stringify(aged.items) !== JSON.stringify(before.body.items)) seen.add(path)
          before.age += 20_000
        } else if (named.status === 200) known.set(path, { ...fresh, age: 20_000 })
        break
      }
    }
    advance(20_000)
  }
  // Their ages grew behind an unchanged tag.
  expect([...seen].sort()).toEqual(expect.arrayContaining(['/delivery/nodes', '/rpc/pending']))
  expect(known.size).toBeGreaterThan(20)
  const { items } = known.get('/delivery/nodes')?.body ?? {}
  expect(items.length).toBe(1)
}
