import { describe, expect, it } from 'vitest'
import type { BrowserWindow, BrowserWindowInput } from '../../src/internal/contract/browser-windows.js'
import type { Context, ContextRegistryInspector } from '../../src/internal/contract/contexts.js'
import type { DeliveryInspector } from '../../src/internal/contract/delivery.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { Refusal } from '../../src/internal/refusal.js'
import { listActions } from '../../src/internal/views/actions.js'
import { withLiveCounts } from '../../src/internal/views/counts.js'
import { countWorkers, listWorkers, pageWorkers } from '../../src/internal/views/workers.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { createRandom } from '../campaign/fuzz-random.js'
import { createSubject, get, type RouterOptions } from '../diagnostics/subject.js'
import { browserWindow, connection, context, node } from '../diagnostics/world.js'
import { describeWorlds } from '../plugs/world.js'
import { createInspectionContext, FIRST, listOf, many, never } from './subject.js'

const contextsOf = (entries: ReturnType<typeof context>[]) => {
  const { list, served } = listOf(entries)
  const contexts: ContextRegistryInspector = { listContexts: list, getContext: () => null }
  return { contexts, served }
}

describe('/actions', () => {
  const connections = [
    connection({ connection_id: '1', actions: ['\u{1F600}', 'b', 'b', '\uFFFD'], client_type: 'web' }),
    connection({ connection_id: '2', user_id: 'bob', actions: ['b', 'a'], client_type: 'console' }),
    connection({ connection_id: '3', user_id: 'bob', actions: ['gone'], status: 'disconnected' }),
  ]

  it.each([
    1, 2, 100,
  ])('lists what connected connections offer by the bytes of its name, %i at a time', async (limit) => {
    const { list } = listOf(connections)
    const names: string[] = []
    let cursor: string | null = null
    do {
      const page: Awaited<ReturnType<typeof listActions>> = await listActions(
        { listConnections: list, getConnection: () => null },
        {},
        { limit, cursor },
        createInspectionContext().ctx,
      )
      names.push(...page.items.map((action) => action.name))
      expect(page.completeness).toMatchObject({ complete: true, examined: { registry: 3 } })
      cursor = page.next_cursor
    } while (cursor !== null)
    expect(names).toEqual(['a', 'b', '\uFFFD', '\u{1F600}'])
  })

  it('counts each connection once and each user once', async () => {
    const { list } = listOf(connections)
    const { items } = await listActions(
      { listConnections: list, getConnection: () => null },
      {},
      FIRST,
      createInspectionContext().ctx,
    )
    expect(items[1]).toEqual({
      name: 'b',
      description: null,
      parameters_schema: null,
      observed_connections: 2,
      observed_users: 2,
      observed_client_types: ['console', 'web'],
      observed_client_types_omitted: 0,
    })
  })

  it('says that a sample was cut, and fails with a registry that fails', async () => {
    const { list } = listOf(many(30, (i) => connection({ connection_id: String(i), actions: [`action-${i}`] })))
    const { items, completeness } = await listActions(
      { listConnections: list, getConnection: () => null },
      {},
      FIRST,
      createInspectionContext({ examined: 10 }).ctx,
    )
    expect([items.length, completeness]).toEqual([
      10,
      { complete: false, truncated_sources: ['registry'], examined: { registry: 10 }, limits: { registry: 10 } },
    ])
    const down = () => Promise.reject(new Refusal('unavailable'))
    for (const registry of [
      { listConnections: down, getConnection: () => null },
      { listConnections: list, listActions: down, getConnection: () => null },
    ])
      await expect(listActions(registry, {}, FIRST, createInspectionContext().ctx)).rejects.toThrow(Refusal)
  })
})

describe('workers', () => {
  const entries = [
    context({ context_id: 'idle' }),
    context({ context_id: 'active', status: 'active' }),
    context({ context_id: 'stale', status: 'stale' }),
    context({ context_id: 'closed', status: 'closed' }),
    context({ context_id: 'assigned idle', task_id: 't' }),
    context({ context_id: 'assigned active', task_id: 't', status: 'active' }),
    context({ context_id: 'assigned stale', task_id: 'u', status: 'stale' }),
    context({ context_id: 'assigned closed', task_id: 't', status: 'closed' }),
    context({ context_id: 'owned', ownership: 'user-owned' }),
    context({ context_id: 'other', user_id: 'bob' }),
  ]
  const idsOf = (items: { context_id: string }[]) => items.map((item) => item.context_id)

  it('tells idle from assigned from other', async () => {
    const { contexts } = contextsOf(entries)
    const workers = await listWorkers(contexts, { user_id: 'alice' }, 100, createInspectionContext().ctx)
    expect([idsOf(workers.idle), idsOf(workers.assigned)]).toEqual([
      ['idle'],
      ['assigned idle', 'assigned active', 'assigned stale'],
    ])
    expect(workers).toMatchObject({
      user_id: 'alice',
      idle_count: 1,
      assigned_count: 3,
      other_count: 4,
      completeness: { complete: true, examined: { context_registry: 8 } },
    })
    expect(await countWorkers(contexts, { user_id: 'alice' }, createInspectionContext().ctx)).toMatchObject({
      idle_count: 1,
      assigned_count: 3,
      other_count: 4,
    })
  })

  it('cuts each list at the limit, counts beyond it, and says so', async () => {
    const { contexts } = contextsOf(entries)
    const cut = await listWorkers(contexts, { user_id: 'alice' }, 2, createInspectionContext().ctx)
    expect([cut.idle.length, cut.assigned.length, cut.assigned_count]).toEqual([1, 2, 3])
    expect(cut.completeness).toMatchObject({ complete: false, truncated_sources: ['context_registry'] })
    expect(
      (await countWorkers(contexts, { user_id: 'alice' }, createInspectionContext().ctx)).completeness.complete,
    ).toBe(true)
  })

  it('does not believe a registry that ignores the filter by ownership', async () => {
    const { list } = listOf(entries.filter((entry) => entry.user_id === 'alice'))
    const contexts: ContextRegistryInspector = { listContexts: (_, page) => list({}, page), getContext: () => null }
    expect((await listWorkers(contexts, { user_id: 'alice' }, 100, createInspectionContext().ctx)).idle_count).toBe(1)
    const page = await pageWorkers(contexts, { user_id: 'alice' }, FIRST, createInspectionContext().ctx, () => true)
    expect(idsOf(page.items)).not.toContain('owned')
  })

  it('returns zeros for an unknown user, not 404', async () => {
    const router = createSubject({ inspectors: createFakeInspectors({ contexts: entries }) })
    const { status, body } = await get(router, '/workers?user_id=missing')
    expect([status, body]).toMatchObject([
      200,
      { idle: [], assigned: [], idle_count: 0, assigned_count: 0, other_count: 0, completeness: { complete: true } },
    ])
    expect((await get(router, '/workers/tasks/t?user_id=bob')).body).toEqual({
      items: [],
      next_cursor: null,
      has_more: false,
    })
    expect(idsOf((await get(router, '/workers/tasks/t?user_id=alice')).body.items)).toEqual([
      'assigned idle',
      'assigned active',
    ])
    expect(idsOf((await get(router, '/workers/available?user_id=alice')).body.items)).toEqual(['idle'])
  })

  it('skips pages of other contexts within the limit, and then returns an empty page with a cursor', async () => {
    const { contexts, served } = contextsOf([
      ...many(40, (i) => context({ context_id: `busy-${i}`, status: 'active' })),
      context({ context_id: 'idle' }),
    ])
    const isIdle = (entry: { status: string }) => entry.status === 'idle'
    const far = await pageWorkers(
      contexts,
      { user_id: 'alice' },
      { limit: 5, cursor: null },
      createInspectionContext().ctx,
      isIdle,
    )
    expect([idsOf(far.items), far.has_more]).toEqual([['idle'], false])
    const near = await pageWorkers(
      contexts,
      { user_id: 'alice' },
      { limit: 9, cursor: null },
      createInspectionContext({ examined: 20 }).ctx,
      isIdle,
    )
    expect([near.items, near.has_more, near.next_cursor]).toEqual([[], true, '20'])
    expect(served.items).toBe(41 + 20)
    const one = await pageWorkers(
      contexts,
      { user_id: 'alice' },
      { limit: 1, cursor: null },
      createInspectionContext().ctx,
      isIdle,
    )
    expect(idsOf(one.items)).toEqual(['idle'])
  })

  it.each<[what: string, page: object]>([
    ['has more, but no token', { items: [], next_cursor: null, has_more: true }],
    ['repeats its token', { items: [], next_cursor: 'x', has_more: true }],
  ])('does not run in circles when a registry %s', async (_what, page) => {
    let asked = 0
    const contexts: ContextRegistryInspector = {
      listContexts: () => {
        asked += 1
        return page as never
      },
      getContext: () => null,
    }
    await pageWorkers(contexts, { user_id: 'alice' }, FIRST, createInspectionContext().ctx, () => true).catch(() => {})
    expect(asked).toBeLessThanOrEqual(2)
  })
})

describe("a window's counts", () => {
  const windows = [browserWindow({ window_id: 'w-1' }), browserWindow({ window_id: 'w-2' })]
  const entries = [
    context({ context_id: '1', window_id: 'w-1' }),
    context({ context_id: '2', window_id: 'w-1', status: 'active' }),
    context({ context_id: '3', window_id: 'w-1', task_id: 't' }),
    context({ context_id: '4', window_id: 'w-1', status: 'stale', task_id: 't' }),
    context({ context_id: '5', window_id: 'w-1', status: 'closed' }),
    context({ context_id: '6', window_id: 'w-1', ownership: 'user-owned' }),
  ]
  const counts = (of: readonly BrowserWindowInput[]) =>
    of.map((w) => [w.worker_count, w.idle_count, w.busy_count, w.counts_source])

  it('are live from contexts, with zeros where there is no worker', async () => {
    expect(counts(await withLiveCounts(windows, contextsOf(entries).contexts, createInspectionContext().ctx))).toEqual([
      [3, 1, 1, 'contexts'],
      [0, 0, 0, 'contexts'],
    ])
  })

  it('are the snapshot where there is no context registry', async () => {
    expect(counts(await withLiveCounts(windows, undefined, createInspectionContext().ctx))).toEqual([
      [41, 42, 43, 'snapshot'],
      [41, 42, 43, 'snapshot'],
    ])
  })

  it('come from the index of a registry that keeps one, whatever it says of other windows', async () => {
    const countByWindow = () => [
      { window_id: 'w-2', worker_count: 7, idle_count: 1, busy_count: 2 },
      { window_id: 'w-9', worker_count: 9, idle_count: 9, busy_count: 9 },
    ]
    const contexts = { listContexts: never, getContext: () => null, countByWindow }
    expect(counts(await withLiveCounts(windows, contexts, createInspectionContext().ctx))).toEqual([
      [0, 0, 0, 'contexts'],
      [7, 1, 2, 'contexts'],
    ])
  })

  it('are null, and no snapshot, for a window that the bound did not reach', async () => {
    expect(
      counts(await withLiveCounts(windows, contextsOf(entries).contexts, createInspectionContext({ examined: 3 }).ctx)),
    ).toEqual([
      [null, null, null, 'contexts'],
      [null, null, null, 'contexts'],
    ])
    expect(
      counts(await withLiveCounts(windows, contextsOf(entries).contexts, createInspectionContext({ examined: 6 }).ctx)),
    ).toEqual([
      [3, 1, 1, 'contexts'],
      [null, null, null, 'contexts'],
    ])
  })

  it.each([
    ['an error', new Refusal('unavailable')],
    ['nothing', undefined],
  ])('fail with a registry that throws %s', async (_what, error) => {
    for (const contexts of [
      { listContexts: () => Promise.reject(error), getContext: () => null },
      { listContexts: never, getContext: () => null, countByWindow: () => Promise.reject(error) },
    ])
      expect(
        await withLiveCounts(windows, contexts, createInspectionContext().ctx).then(
          () => 'answered',
          (thrown) => [thrown],
        ),
      ).toEqual([error])
  })
})

describeWorlds('workers of windows in random worlds', (open) => {
  const idsOf = (kind: string, many: number) => Array.from({ length: many }, (_, i) => `${kind}${i}`)
  const [users, clients, ids] = [idsOf('user', 3), idsOf('client', 3), idsOf('window', 8)]

  it.each([1, 2, 3])('are the live contexts that the list of the window shows (seed %i)', async (seed) => {
    const random = createRandom(seed, 0)
    const world = await open()
    const { contexts, browserWindows } = world.facilities
    for (const [i, window_id] of ids.entries())
      await browserWindows.report({ window_id, user_id: random.pick(users), client_id: `extension${i % 2}` })
    for (let i = 0; i < 120; i++) {
      const context_id = `context${i}`
      const owner = { user_id: random.pick(users), client_id: random.pick([...clients, 'extension0']) }
      const status = random.pick(['active', 'idle'] as const)
      const ownership = random.chance(0.8) ? 'worker' : 'user-owned'
      const window_id = random.pick([...ids, 'unreported', null])
      await contexts.report({ context_id, ...owner, client_type: 'browser', status, ownership, window_id })
      if (random.chance(0.3)) await contexts.assignTask(context_id, `task${i}`)
      if (random.chance(0.2)) await contexts.close(context_id)
    }
    const { contextRegistry, ...inspectors } = world.inspectors
    const { countByWindow: _, ...walked } = contextRegistry as ContextRegistryInspector
    const router = createSubject({ inspectors: { ...inspectors, contextRegistry: walked } })
    const items = await world.list<BrowserWindow>('/browser-windows')
    expect(items).toHaveLength(ids.length)
    expect(((await get(router, '/browser-windows?limit=100')).body as { items: BrowserWindow[] }).items).toEqual(items)
    let workers = 0
    for (const { window_id, user_id, worker_count, idle_count, busy_count } of items) {
      const path = `/contexts?window_id=${window_id}&user_id=${user_id}&ownership=worker`
      const live = (await world.list<Context>(path)).filter(({ status }) => status === 'active' || status === 'idle')
      const busy = live.filter(({ task_id }) => task_id !== null)
      const idle = live.filter(({ task_id, status }) => task_id === null && status === 'idle')
      expect([worker_count, idle_count, busy_count]).toEqual([live.length, idle.length, busy.length])
      const counts = { worker_count, idle_count, busy_count, counts_source: 'contexts' }
      expect(await world.ask(`/browser-windows/${window_id}`)).toMatchObject(counts)
      workers += live.length
    }
    expect(workers).toBeGreaterThan(0)
    await world.close()
  })
})

describe('counts', () => {
  it('show every enum value, and that they are whole', async () => {
    const router = createSubject({
      inspectors: createFakeInspectors({ contexts: [context()], browserWindows: [], connections: [connection()] }),
    })
    expect((await get(router, '/contexts/count')).body).toEqual({
      total: 1,
      by_status: { active: 0, idle: 1, closed: 0, stale: 0 },
      by_client_type: { browser: 1, console: 0, mobile: 0, web: 0, unknown: 0 },
      by_ownership: { 'user-owned': 0, worker: 1, unknown: 0 },
      completeness: {
        complete: true,
        truncated_sources: [],
        examined: { context_registry: 1 },
        limits: { context_registry: 10_000 },
      },
      observed_at: '2026-01-02T03:04:05.678Z',
    })
    expect((await get(router, '/browser-windows/count')).body).toMatchObject({
      total: 0,
      by_status: { open: 0, stale: 0, closed: 0 },
      by_ownership: { 'user-owned': 0, worker: 0 },
      by_type: { normal: 0, popup: 0, panel: 0, app: 0, devtools: 0 },
      by_state: { normal: 0, minimized: 0, maximized: 0, fullscreen: 0 },
    })
    expect((await get(router, '/connections/count?status=disconnected')).body).toMatchObject({
      total: 0,
      by_status: { connected: 0, disconnected: 0 },
    })
  })

  describe('of connections of silent nodes', () => {
    const connections = [
      connection({ node_id: 'node-1' }),
      connection({ connection_id: 'conn-2', node_id: 'node-1', status: 'disconnected' }),
      connection({ connection_id: 'conn-3', node_id: 'node-2' }),
    ]
    const silent = node({ node_id: 'node-1', stale: true })
    const countedOf = async (delivery: Inspectors['delivery'], options: RouterOptions = {}) => {
      const inspectors = { ...createFakeInspectors({ connections }), delivery }
      const { status, body } = await get(createSubject({ inspectors, ...options }), '/connections/count')
      return [status, body.by_status?.connected, body.of_silent_nodes]
    }
    const deliveryOf = (nodes: object[]) => createFakeInspectors({ delivery: { nodes } }).delivery as DeliveryInspector

    it('are those that are connected', async () => {
      expect(await countedOf(deliveryOf([silent, node({ node_id: 'node-2' })]))).toEqual([200, 2, 1])
    })

    it.each([
      ['there is no delivery', undefined],
      ['delivery lists no node', deliveryOf([])],
      ['a node does not say whether it is silent', deliveryOf([silent, node({ node_id: 'node-2', stale: null })])],
      ['delivery fails', { ...deliveryOf([silent]), listNodes: () => Promise.reject(new Error('down')) }],
      ['delivery hangs', { ...deliveryOf([silent]), listNodes: () => new Promise<never>(() => {}) }],
    ])('are unknown where %s', async (_, delivery) => {
      expect(await countedOf(delivery, { onError: null })).toEqual([200, 2, null])
    })

    it('are unknown for callers that see some users only, without an error', async () => {
      const onError: unknown[] = []
      const options = { authorize: () => ({ user_ids: ['alice'] }), onError: (error: unknown) => onError.push(error) }
      expect(await countedOf(deliveryOf([silent]), options)).toEqual([200, 2, null])
      expect(onError).toEqual([])
    })
  })

  it('of more than the bound are a sample that says so, and exact where an index answers', async () => {
    const entries = many(25, (i) => context({ context_id: String(i) }))
    const { contexts } = contextsOf(entries)
    const limits = { examined: 10 }
    const sampled = await get(createSubject({ inspectors: { contextRegistry: contexts }, limits }), '/contexts/count')
    expect(sampled.body).toMatchObject({
      total: 10,
      completeness: { complete: false, truncated_sources: ['context_registry'], examined: { context_registry: 10 } },
    })
    const exact = {
      total: 25,
      by_status: { active: 0, idle: 25, closed: 0, stale: 0 },
      by_client_type: { browser: 25, console: 0, mobile: 0, web: 0 },
      by_ownership: { worker: 25, 'user-owned': 0 },
    }
    for (const [answer, total, examined] of [
      [exact, 25, 0],
      [{ ...exact, examined: 7 }, 25, 7],
      [null, 10, 10],
    ] as const) {
      const counted = await get(
        createSubject({ inspectors: { contextRegistry: { ...contexts, countContexts: () => answer } }, limits }),
        '/contexts/count',
      )
      expect(counted.body).toMatchObject({
        total,
        completeness: { complete: total === 25, examined: { context_registry: examined } },
      })
    }
  })
})
