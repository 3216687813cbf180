/** What `/search` finds: an exact id in every family, and the beginnings of user ids and action names. */
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { HitKind, SearchResult } from '../../src/internal/views/search.js'
import { createFakeInspectors, type FakeWorld } from '../../src/testing/kits.js'
import { createSubject, expectProblem, get, type RouterOptions } from '../diagnostics/subject.js'
import { connection, context, createWorld } from '../diagnostics/world.js'

async function searchFor(q: string, world: FakeWorld = createWorld(), options: RouterOptions = {}) {
  const router = createSubject({ inspectors: createFakeInspectors(world), ...options })
  const { status, body } = await get(router, `/search?q=${encodeURIComponent(q)}`)
  expect(status).toBe(200)
  return SearchResult.parse(body)
}

describe('/search', () => {
  it('finds an exact id in every family, with a route that shows it', async () => {
    const world = createWorld()
    const router = createSubject({ inspectors: createFakeInspectors(world) })
    const command = (await get(router, '/delivery/commands?limit=1')).body.items[0]
    const windowId = (await get(router, '/browser-windows?limit=1')).body.items[0].window_id
    const message = (await get(router, '/history/streams?limit=1')).body.items[0]
    const node = 'node-9'
    world.connections.push(connection({ connection_id: 'c'.repeat(32), user_id: 'zed', node_id: node }))
    const task = (await get(router, '/contexts?limit=500')).body.items.find((one: { task_id: string }) => one.task_id)
    const first = async (path: string) => (await get(router, path)).body.items[0]
    const ids: Record<HitKind, string> = {
      user: 'alice',
      client: 'desk',
      connection: (await first('/connections?limit=1')).connection_id,
      node,
      context: (await first('/contexts?limit=1')).context_id,
      task: task.task_id,
      browser_window: windowId,
      action: (await first('/actions?limit=1')).name,
      call: 'call-2',
      ended_call: 'over-2',
      stream: message.stream,
      command: command.command_id,
      scope: command.admission.scope_id,
      site: (await first('/sites?limit=1')).site_id,
      session: (await first('/sessions?limit=1')).session_id,
      subscription: (await first('/subscriptions?limit=1')).subscription_id,
    }
    for (const kind of HitKind.options) {
      const { hits, cut } = await searchFor(ids[kind], world)
      const hit = hits.find((one) => one.kind === kind)
      expect([kind, hit?.id, hit?.match, cut]).toEqual([kind, ids[kind], 'exact', []])
      const { status, text } = await get(router, hit?.route as string)
      expect([kind, status]).toEqual([kind, 200])
      expect(text).toContain(JSON.stringify(ids[kind]).slice(1, -1))
    }
  })

  it('finds users and actions by how they begin, exact ones first', async () => {
    const names = ['open', 'open_report', 'opening', 'close', 'ope', 'Open']
    const connections = ['ann', 'anna', 'Ann', 'bo'].map((user_id, i) =>
      connection({ user_id, connection_id: `c-${i}`.padEnd(32, 'x'), actions: names }),
    )
    const of = async (q: string) =>
      (await searchFor(q, { connections })).hits.map(({ kind, id, match }) => [kind, id, match])
    expect(await of('ann')).toEqual([
      ['user', 'ann', 'exact'],
      ['user', 'anna', 'prefix'],
    ])
    expect(await of('open')).toEqual([
      ['action', 'open', 'exact'],
      ['action', 'open_report', 'prefix'],
      ['action', 'opening', 'prefix'],
    ])
    expect(await of('nothing')).toEqual([])
  })

  it('lists some of each kind and names the kinds with more', async () => {
    const connections = Array.from({ length: 30 }, (_, i) =>
      connection({ user_id: `user-${10 + i}`, connection_id: `c-${i}`.padEnd(32, 'x') }),
    )
    const { hits, more } = await searchFor('user-', { connections })
    expect(hits.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, i) => `user-${10 + i}`))
    expect(more).toEqual(['user'])
  })

  it('names a source that was not searched to the end, and one that failed', async () => {
    const contexts = Array.from({ length: 50 }, (_, i) => context({ context_id: `ctx-${i}`, task_id: 'task-1' }))
    const inspectors = createFakeInspectors({ contexts, connections: [connection()] })
    const { contextRegistry } = inspectors
    const cutShort = {
      ...inspectors,
      contextRegistry: { ...contextRegistry, listContexts: () => ({ items: [], next_cursor: 'x', has_more: true }) },
    } as never
    expect(await searchFor('desk', {}, { inspectors: cutShort })).toMatchObject({
      hits: [{ kind: 'client' }],
      cut: ['context_registry'],
    })
    const refuse = () => Promise.reject(new Refusal('unavailable'))
    const failing = { ...inspectors, contextRegistry: { ...contextRegistry, getContext: refuse, listContexts: refuse } }
    expect((await searchFor('desk', {}, { inspectors: failing as never })).cut).toEqual(['context_registry'])
  })

  it('examines the same number of connections, however many there are', async () => {
    const connections = Array.from({ length: 1_200 }, (_, i) =>
      connection({ client_id: `client-${i}`, connection_id: `c-${i}`.padEnd(32, 'x') }),
    )
    expect((await searchFor('missing', { connections: connections.slice(0, 1_000) })).cut).toEqual([])
    expect((await searchFor('missing', { connections })).cut).toEqual(['registry'])
  })

  it('is unavailable where every source failed, and the error hook receives each error', async () => {
    const errors: unknown[] = []
    const refuse = () => Promise.reject(new Refusal('unavailable'))
    const inspectors = { sites: { listSites: refuse, getSite: refuse } }
    const onError = (_: unknown, place: object) => errors.push(place)
    const router = createSubject({ inspectors: inspectors as never, onError })
    expectProblem(await get(router, '/search?q=x'), 503, 'inspector_unavailable')
    expect(errors).toContainEqual(expect.objectContaining({ route: '/search', source: 'sites' }))
  })

  it('does not wait for a source that hangs', async () => {
    const inspectors = createFakeInspectors({ connections: [connection()], contexts: [] })
    const hang = () => new Promise<never>(() => {})
    const hanging = { ...inspectors, contextRegistry: { ...inspectors.contextRegistry, getContext: hang } } as never
    const found = await searchFor('desk', {}, { inspectors: hanging, deadlineMs: 1_000 })
    expect(found).toMatchObject({ hits: [{ kind: 'client' }], cut: ['context_registry'] })
  })

  it('refuses a search for nothing', async () => {
    const router = createSubject()
    for (const query of ['', '?q=', `?q=${'x'.repeat(257)}`])
      expectProblem(await get(router, `/search${query}`), 422, 'invalid_query')
  })
})

describe('/actions?name_prefix', () => {
  const names = ['a', 'ab', 'abc', 'abd', 'ac', '\ue000x', '\ud7ff\u{10ffff}', 'b']
  const router = createSubject({ inspectors: createFakeInspectors({ connections: [connection({ actions: names })] }) })

  it.each([
    ['ab', ['ab', 'abc', 'abd']],
    ['a', ['a', 'ab', 'abc', 'abd', 'ac']],
    ['\ue000', ['\ue000x']],
    ['c', []],
  ])('lists names that begin with %j, page by page', async (prefix, expected) => {
    for (const limit of [1, 2, 500]) {
      const found: string[] = []
      let cursor = ''
      do {
        const { body } = await get(
          router,
          `/actions?name_prefix=${encodeURIComponent(prefix)}&limit=${limit}${cursor && `&cursor=${cursor}`}`,
        )
        found.push(...body.items.map(({ name }: { name: string }) => name))
        cursor = body.next_cursor ?? ''
      } while (cursor)
      expect([limit, found]).toEqual([limit, expected])
    }
  })
})
