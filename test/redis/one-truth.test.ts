import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { ROUTES } from '../../src/internal/diagnostics/routes.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createRedisFacilities, type RedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { inspectorContract } from '../../src/testing/kits.js'
import { type Clock, createClock } from '../contract/clock.js'
import { describeStores } from './matrix.js'
import { connectObserver } from './observer.js'
import { createObserver } from './router.js'
import type { Connected } from './server.js'
import { soon } from './wait-for.js'
import { createIds, live } from './world.js'

type Router = ReturnType<typeof createDiagnosticsRouter>
type Body = Record<string, unknown> & { items?: Record<string, unknown>[]; next_cursor?: string | null }

const user = encodeURIComponent('a/b')
const inShape = encodeURIComponent('users/%C3%A9/log')

/** Lists, compared over whole walks, and single results. A path that is not compared is in neither. */
const LISTS = [
  '/users',
  '/actions',
  '/actions?client_type=browser',
  `/actions?user_id=${encodeURIComponent('}{')}`,
  '/connections',
  '/connections?status=connected',
  '/connections?client_id=client-1&status=disconnected',
  '/connections?ended_reason=client_closed',
  '/connections/events',
  '/rpc/ended',
  '/rpc/ended?outcome=failed&user_id=zoe',
  '/connections/events?user_id=zoe',
  '/connections/events?event=disconnected&reason=client_closed',
  '/connections?ended_reason=heartbeat_lost&client_type=web',
  `/connections?user_id=${encodeURIComponent('}{')}`,
  '/history/streams',
  '/history/streams?user_id=ann',
  '/rpc/pending',
  '/rpc/pending?action=open&client_id=client-1',
  '/contexts',
  '/contexts?status=stale',
  '/contexts?window_id=window-5',
  '/contexts?ownership=worker&client_type=browser',
  `/workers/available?user_id=${encodeURIComponent('{x}')}`,
  `/workers/tasks/task-1?user_id=${encodeURIComponent('\\')}`,
  '/browser-windows',
  '/browser-windows?status=closed',
  '/browser-windows?ownership=user-owned',
  '/contexts?client_type=web&ownership=worker',
  '/sessions',
  '/sessions?site_id=site-5-1',
  `/sessions?owner=${encodeURIComponent('a/b')}`,
  '/sessions?state=expired',
  '/sessions?owner=bob&state=active',
  '/findings',
  '/subscriptions',
  `/subscriptions?user_id=${encodeURIComponent('a/b')}`,
  '/subscriptions?site_id=site-5-1',
  '/sites',
  `/sites?owner=${encodeURIComponent('a/b')}`,
  '/sites?mode=observe',
  '/sites?owner=zoe&mode=cooperative',
]
const SINGLES = [
  ...['ann', 'bob', 'é', 'a:b', '*', '}{', '{x}', '[a-z]', '\\', '__proto__', 'late', 'missing', '\u{1f600}'].map(
    (id) => `/users/${encodeURIComponent(id)}/summary`,
  ),
  `/users/${user}/summary`,
  '/findings/summary',
  '/actions?name_prefix=act.1',
  ...[
    'a',
    'zoe',
    'client-1',
    'act.',
    'task-1',
    'window-3',
    'context-2-1',
    'site-2-1',
    'missing',
    `${'id-2'.padEnd(32, 'x')}`,
  ].map((q) => `/search?q=${q}`),
  `/search?q=${inShape}`,
  '/connections/count',
  '/connections/count?user_id=zoe&status=connected',
  '/connections/count?ended_reason=client_closed',
  '/connections/count?node_id=elsewhere',
  '/connections?node_id=elsewhere',
  '/contexts/count',
  '/contexts/count?status=stale',
  '/browser-windows/count',
  '/browser-windows/window-3',
  '/browser-windows/none',
  '/browser-windows/window-5',
  '/browser-windows/window-13',
  '/contexts/guest-5',
  '/contexts/context-2-1',
  '/connections/nope',
  '/connections/nope/history',
  `/connections/${'id-2'.padEnd(32, 'x')}`,
  `/connections/${'id-2'.padEnd(32, 'x')}/history`,
  `/rpc/pending/${'id-9'.padEnd(32, 'x')}`,
  '/rpc/summary',
  '/rpc/pending?overdue=true',
  '/rpc/instances/instance-1-0?user_id=bob&client_id=client-0',
  '/rpc/instances/other?user_id=late&client_id=c',
  `/history/messages?stream=${inShape}`,
  `/history/messages?stream=${encodeURIComponent('users/a%2Fb/log')}&limit=1`,
  '/history/messages?stream=none',
  '/deduplicator/summary',
  '/deduplicator/users/ann',
  '/deduplicator/users/missing',
  ...[1, 5, 6, 10, 20, 30, 40, 50, 60].map((n) => `/sessions/${`id-${n}`.padEnd(32, 'x')}`),
  '/subscriptions?order=slowest&limit=7',
  '/subscriptions?order=slowest&user_id=zoe',
  '/sites/site-2-1',
  '/sites/site-7-0',
  '/sites/site-8-0',
  '/sites/none',
  `/workers?user_id=${encodeURIComponent('\\')}`,
  `/workers/count?user_id=${encodeURIComponent('\\')}`,
]

/**
 * Removes expected differences: a deduplicator's capacity is per shard, and a deployment has the sum; and `examined`,
 * because one maintains numbers that the other has to count.
 */
function declared({ status, body }: { status: number; body: Body }, shards: number) {
  if ('evicted' in body) return { status, body: { ...body, capacity: Number(body.capacity) / shards } }
  const { completeness } = body
  if (!completeness || typeof completeness !== 'object') return { status, body }
  return { status, body: { ...body, completeness: { ...completeness, examined: null } } }
}

async function get(router: Router, path: string): Promise<{ status: number; body: Body }> {
  const response = await router(new Request(`http://localhost${path}`))
  return { status: response.status, body: (await response.json()) as Body }
}

/** Returns all items of a list, sorted, because compositions order differently, without expected differences. */
async function walk(router: Router, path: string, limit: number) {
  const items: unknown[] = []
  const complete = new Set<unknown>()
  let cursor: string | null = null
  for (let pages = 0; pages < 500; pages++) {
    const query = `${path.includes('?') ? '&' : '?'}limit=${limit}${cursor ? `&cursor=${cursor}` : ''}`
    const { status, body } = await get(router, path + query)
    expect(status).toBe(200)
    items.push(...(body.items ?? []))
    complete.add((body.completeness as { complete?: boolean } | undefined)?.complete)
    cursor = body.next_cursor ?? null
    if (!body.has_more) return { items: items.map((item) => JSON.stringify(item)).sort(), complete }
  }
  throw new Error('the list does not end')
}

/** Rows of a page: one or all over a single server, and some over a Cluster. */
const limitsOf = (kind: string) => (kind === 'node-redis' ? [1, 500] : [7, 500])

const compare: Parameters<typeof describeStores>[1] = (kind, place, servers) => {
  let direct: Router
  let shared: Router
  let shards: number
  let clock: Clock
  let facilities: RedisFacilities
  let memory: ReturnType<typeof createMemoryFacilities>
  let observer: Connected
  let inspectors: ReturnType<typeof redisComposition>['inspectors']

  beforeAll(async () => {
    const where = place()
    shards = where.shards
    clock = createClock()
    const tell = async <F extends Parameters<typeof live>[0]>(made: F) => {
      await live(made, clock)
      return made
    }
    const options = () => ({
      now: clock.now,
      rpc: { newId: createIds() },
      newId: createIds(),
      bus: { newId: () => 'epoch' },
      nodeId: 'node',
      connections: { nodeId: null },
    })
    memory = await tell(createMemoryFacilities(options()))
    const end = clock.now()
    clock.advance(createClock().now() - end)
    facilities = await tell(createRedisFacilities({ ...where, ...options(), connections: { nodeId: null } }))
    expect(clock.now()).toBe(end)
    observer = await connectObserver(kind, servers(), where.deploymentId)
    direct = createDiagnosticsRouter({ ...memoryComposition(memory), auth: noopAuth(), now: clock.now })
    const there = { client: observer.client, deploymentId: where.deploymentId, now: clock.now }
    inspectors = redisComposition(there).inspectors
    shared = createObserver(there)
  })
  afterAll(async () => {
    await facilities?.close()
    await memory?.close()
    await observer?.close()
  })

  it.each(LISTS)('lists the same for GET %s, as a read-only observer', async (path) => {
    const expected = await walk(direct, path, 7)
    expect(expected.items.length).toBeGreaterThan(0)
    for (const limit of limitsOf(kind)) expect(await walk(shared, path, limit)).toEqual(expected)
  })

  it.each(SINGLES)('returns the same for GET %s', async (path) => {
    expect(declared(await get(shared, path), shards)).toEqual(declared(await get(direct, path), 1))
  })

  it('returns the same churn, once all lost connections are swept', async () => {
    for (const path of ['/connections/churn', '/connections/churn?client_type=web', '/connections/churn?node_id=x']) {
      const expected = await get(direct, path)
      expect(expected.body.items?.length).toBe(2)
      await soon(async () => expect(await get(shared, path)).toEqual(expected))
    }
  })

  it('compares every list, except those of delivery, which have tests of their own', () => {
    const lists = ROUTES.filter(
      ({ page, path }) => page === 'paged' && !path.includes('{') && !path.startsWith('/delivery/'),
    )
    const compared = LISTS.map((path) => path.split('?')[0])
    expect(lists.map(({ path }) => path).filter((path) => !compared.includes(path))).toEqual([])
  })

  it('keeps the documented order', async () => {
    for (const path of ['/users?limit=500', '/actions?limit=500', '/rpc/pending?limit=500']) {
      const [mine, theirs] = [await get(shared, path), await get(direct, path)]
      expect(mine.body.items).toEqual(theirs.body.items)
    }
  })

  describe('the contract of every inspector', () => {
    const cases = inspectorContract(() => inspectors, { users: ['ann', 'bob'] })
    it.each(cases.map((one) => [one.name, one] as const))('%s', (_, { run }) => run().then(() => {}))
  })
}

describeStores('both compositions', compare, ['ioredis cluster'])
