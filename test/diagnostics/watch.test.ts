/** What `/watch` sends: a snapshot, then changes; no caller queues, and none sees more than a GET would show. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { sliceClock } from '../../src/async/turns.js'
import { WatchDelta, WatchEnd, WatchReset, WatchSnapshot, WatchSync } from '../../src/diagnostics/watch/route.js'
import { ROWS } from '../../src/diagnostics/watch/rows.js'
import { createMemoryFacilities } from '../../src/memory/composition/facilities.js'
import { memoryComposition } from '../../src/memory/composition/inspectors.js'
import { createFakeInspectors } from '../../src/testing/kits.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'
import { CASES, createSubject, createWatched, expectProblem, get, KEY, ORIGIN, PREFIX } from './subject.js'
import { open, target } from './watcher.js'
import { call, connection, NOW } from './world.js'

/** A watched list of connections that the test changes. */
function createChanging() {
  const world = { connections: [connection(), connection({ connection_id: 'conn-2' })] }
  const watched = createWatched({ inspectors: createFakeInspectors(world) })
  return { world, ...watched }
}

// On a busy machine a read would wait for a turn of the real event loop while fake time passes, and seem expensive.
beforeEach(() => void vi.spyOn(sliceClock, 'now').mockReturnValue(0))
afterEach(() => void vi.restoreAllMocks())

describe('a watch', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())
  const tick = (ms = 1_000) => vi.advanceTimersByTimeAsync(ms)

  it('begins with a snapshot of each view, which is what a GET answers', async () => {
    const router = createSubject()
    const views = Object.keys(ROWS)
      .filter((path) => CASES.some((one) => one.path === path))
      .slice(0, 8)
    const { response, take, leave } = await open(router, views)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toContain('text/event-stream')
    const frames = await take()
    expect(frames.map(({ event, data }) => [event, data.view, data.version])).toEqual(
      views.map((view) => ['snapshot', view, 1]),
    )
    for (const { data } of frames) {
      const { body } = await get(router, data.view)
      expect(data.page).toEqual(body)
      expect(data.row_id).toEqual(ROWS[data.view])
    }
    leave()
  })

  it('sends frames of the form that the document says', async () => {
    const SCHEMAS = { snapshot: WatchSnapshot, delta: WatchDelta, sync: WatchSync, reset: WatchReset, end: WatchEnd }
    let key = KEY
    const auth = {
      authenticate: async (request: Request) => (request.headers.get('x-admin-key') === key ? { name: 'admin' } : null),
    }
    const world = { connections: [connection()] }
    const router = createSubject({ inspectors: createFakeInspectors(world), auth: auth as never })
    const { take } = await open(router, ['/connections'])
    const frames = await take()
    for (let i = 2; i < 5; i++) {
      world.connections.push(connection({ connection_id: `conn-${i}` }))
      await tick()
      if (i !== 3) frames.push(...(await take()))
    }
    await tick(11_000)
    frames.push(...(await take()))
    key = 'another'
    await tick(61_000)
    frames.push(...(await take()))
    for (const { event, data } of frames) {
      const schema = SCHEMAS[event as keyof typeof SCHEMAS]
      expect([event, schema.strict().safeParse(data).error]).toEqual([event, undefined])
    }
    expect(new Set(frames.map(({ event }) => event))).toEqual(new Set(Object.keys(SCHEMAS)))
  })

  it('sends what is new, what is another, what is gone, and the order where it does not follow', async () => {
    const { world, router } = createChanging()
    const { take, leave } = await open(router, ['/connections'])
    await take()
    world.connections[0] = connection({ status: 'disconnected', disconnected_at: connection().last_seen_at })
    world.connections.push(connection({ connection_id: 'conn-3' }))
    await tick()
    const [{ event, data } = { event: '', data: {} }] = await take()
    expect([event, data.from, data.version, data.remove, data.order, data.new_rows]).toEqual([
      'delta',
      1,
      2,
      [],
      null,
      'first',
    ])
    expect(data.upsert.map((row: { connection_id: string }) => row.connection_id)).toEqual(['conn-3', 'conn-1'])
    world.connections.splice(0, 1)
    world.connections.reverse()
    await tick()
    const [next] = await take()
    expect(next?.data).toMatchObject({
      from: 2,
      version: 3,
      upsert: [],
      remove: ['conn-1'],
      order: ['conn-2', 'conn-3'],
    })
    leave()
  })

  it('sends a sync while nothing changes, and ignores changes of age', async () => {
    const world = { calls: [call()] }
    const { router, calls } = createWatched({ inspectors: createFakeInspectors(world) })
    const { take, leave } = await open(router, ['/rpc/pending'])
    await take()
    const next = take()
    for (let i = 0; i < 11; i++) {
      world.calls = [call({ age_ms: 2_000 + i })]
      await tick()
    }
    expect(await next).toMatchObject([{ event: 'sync', data: { view: '/rpc/pending', version: 1 } }])
    expect(calls.filter(({ name }) => name === 'rpc.listPending').length).toBeLessThanOrEqual(12)
    leave()
  })

  it('resets a slow client, however much has changed', async () => {
    const { world, router } = createChanging()
    const { take, leave } = await open(router, ['/connections'])
    await take()
    for (let i = 10; i < 60; i++) {
      world.connections.push(connection({ connection_id: `conn-${i}` }))
      await tick()
    }
    const frames = await take()
    expect(frames.map(({ event }) => event)).toEqual(['reset', 'snapshot'])
    expect(frames[1]?.data.page.items).toHaveLength(52)
    leave()
  })

  it('reads once for all clients that watch the same, and not at all without clients', async () => {
    useFakeTimers()
    const { world, router, calls } = createChanging()
    const watchers = await Promise.all(Array.from({ length: 5 }, () => open(router, ['/connections'])))
    for (const { take } of watchers) await take()
    calls.length = 0
    world.connections.pop()
    await tick()
    for (const { take } of watchers) expect((await take())[0]?.event).toBe('delta')
    expect(calls).toHaveLength(1)
    watchers[0]?.leave()
    for (const { cancel } of watchers.slice(1)) await cancel()
    calls.length = 0
    await tick(5_000)
    expect(calls).toEqual([])
    expect(ourTimers()).toEqual([])
  })

  it('does not read what says of itself that it has not changed', async () => {
    const { registry } = createFakeInspectors({ connections: [connection()] })
    let version = 'v1'
    const inspectors = { registry: { ...registry, version: () => version } } as ReturnType<typeof createFakeInspectors>
    const { router, calls } = createWatched({ inspectors })
    const { take, leave } = await open(router, ['/connections'])
    await take()
    calls.length = 0
    await tick(5_000)
    expect(new Set(calls.map(({ name }) => name))).toEqual(new Set(['registry.version']))
    version = 'v2'
    await tick()
    expect(calls.at(-1)?.name).toBe('registry.listConnections')
    leave()
  })

  it('sends nothing while its source fails, and continues when it is back', async () => {
    const world = { connections: [connection()] }
    let isFailing = false
    const { router } = createWatched({ inspectors: createFakeInspectors(world), onError: null }, ({ proceed }) => {
      if (isFailing) throw new Error('down')
      return proceed()
    })
    const { take, leave } = await open(router, ['/connections'])
    await take()
    isFailing = true
    const next = take()
    await tick(30_000)
    isFailing = false
    world.connections.push(connection({ connection_id: 'conn-9' }))
    await tick()
    expect(await next).toMatchObject([{ event: 'delta', data: { from: 1, version: 2 } }])
    leave()
  })

  it('ends within a minute for a caller that is no longer authenticated', async () => {
    let key = KEY
    const auth = {
      authenticate: async (request: Request) => (request.headers.get('x-admin-key') === key ? { name: 'admin' } : null),
    }
    const { take } = await open(createSubject({ auth: auth as never }), ['/connections'])
    await take()
    key = 'another'
    await tick(61_000)
    const frames = await take()
    expect(frames.at(-1)).toEqual({ event: 'end', data: { reason: 'forbidden', retry: null } })
    expect(await take()).toEqual([])
  })

  it('shows each who watches the same the users in sight of that one', async () => {
    const authorize = ({ request }: { request: Request }) => ({ user_ids: [request.headers.get('x-team') ?? ''] })
    const router = createSubject({ authorize })
    const views = ['alice', 'bob'].map(async (team) => {
      const { take, leave } = await open(router, ['/connections'], {
        headers: { 'x-admin-key': KEY, 'x-team': team },
      })
      const [snapshot] = await take()
      leave()
      return new Set(snapshot?.data.page.items.map((row: { user_id: string }) => row.user_id))
    })
    expect(await Promise.all(views)).toEqual([new Set(['alice']), new Set(['bob'])])
  })

  it('shows a limited caller only its users, and ends when they change', async () => {
    let user_ids = ['bob']
    const router = createSubject({ authorize: () => ({ user_ids }) })
    const { take } = await open(router, ['/connections'])
    const [snapshot] = await take()
    expect(snapshot?.data.page.items.map((row: { user_id: string }) => row.user_id)).toEqual(['bob', 'bob'])
    user_ids = ['alice']
    await tick(61_000)
    expect((await take()).at(-1)?.data.reason).toBe('scope_changed')
  })
})

describe('no watch', () => {
  it.each([
    ['without a view', '/watch'],
    ['of an unknown route', target('/nope')],
    ['of one record', target('/connections/conn-1')],
    ['of a count', target('/connections/count')],
    ['of an unknown filter', target('/connections?nope=1')],
    ['of the same view twice', target('/users', '/users')],
    ['of nine views', target(...Array.from({ length: 9 }, (_, i) => `/users?limit=${i + 1}`))],
    ['of a view elsewhere', target('http://elsewhere/connections')],
    ['with another parameter', `${target('/users')}&limit=5`],
    ['with a view that is not UTF-8', '/watch?view=%ff'],
  ])('is begun %s', async (_what, path) => {
    const { router, calls } = createWatched()
    expectProblem(await get(router, path), 422, 'invalid_query')
    expect(calls).toEqual([])
  })

  it('is begun without a key, of a source that fails, of one that is not there, or by HEAD', async () => {
    const router = createSubject()
    expect((await router(new Request(`${ORIGIN}${PREFIX}${target('/users')}`))).status).toBe(403)
    expect((await get(router, target('/users'), { method: 'HEAD' })).status).toBe(405)
    const failing = createWatched({ onError: null }, () => Promise.reject(new Error('no'))).router
    expectProblem(await get(failing, target('/connections')), 500, 'internal')
    const inspectors = createFakeInspectors({ calls: [] })
    expectProblem(await get(createSubject({ inspectors }), target('/connections')), 501, 'inspector_absent')
    expectProblem(await get(createSubject({ inspectors: {} }), target('/connections')), 501, 'inspector_absent')
  })

  it('is opened for a caller that holds thirty-two', async () => {
    const router = createSubject()
    const watches = await Promise.all(Array.from({ length: 32 }, () => open(router, ['/connections'])))
    expectProblem(await get(router, target('/connections')), 429, 'share_exceeded')
    watches[0]?.leave()
    const { leave, response } = await open(router, ['/connections'])
    expect(response.status).toBe(200)
    for (const one of watches) one.leave()
    leave()
  })

  it('is opened beyond the limit by concurrent requests, or kept for a client that has disconnected', async () => {
    const router = createSubject()
    const all = Array.from({ length: 40 }, () => open(router, ['/connections']).catch(() => null))
    const watches = await Promise.all(all)
    expect(watches.filter((one) => one?.response.status === 200)).toHaveLength(32)
    expect(watches.filter((one) => one?.response.status === 429)).toHaveLength(8)
    for (const one of watches) one?.leave()
    const gone = new AbortController()
    const statuses: number[] = []
    const slow = createWatched(
      { onError: null, onAccess: ({ status }) => statuses.push(status) },
      async ({ proceed }) => {
        gone.abort()
        return proceed()
      },
    )
    await get(slow.router, target('/connections'), { signal: gone.signal })
    // The same as for a client that leaves a list: nothing here has failed.
    expect(statuses).toEqual([504])
    expect(slow.calls.length).toBeGreaterThan(0)
    const others = await Promise.all(Array.from({ length: 32 }, () => open(slow.router, ['/connections'])))
    expect(others.filter(({ response }) => response.status === 200)).toHaveLength(32)
    for (const { leave } of others) leave()
  })

  it('keeps a reader of what could not be read', async () => {
    useFakeTimers()
    const { router, calls } = createWatched({ onError: null }, ({ name, proceed }) => {
      if (name.startsWith('rpc')) throw new Error('no')
      return proceed()
    })
    expectProblem(await get(router, target('/connections', '/rpc/pending')), 500, 'internal')
    calls.length = 0
    await vi.advanceTimersByTimeAsync(5_000)
    expect([calls, ourTimers()]).toEqual([[], []])
    // A later watch is not shown what was read before it opened.
    const { leave } = await open(router, ['/connections'])
    expect(calls.map(({ name }) => name)).toContain('registry.listConnections')
    leave()
    vi.useRealTimers()
  })
})

it('names the rows of every list that has some', () => {
  const lists = CASES.filter(({ route }) => 'items' in ((route.response as { shape?: object }).shape ?? {}))
  const unnamed = lists.map(({ path }) => path).filter((path) => !ROWS[path])
  // These show one record or one user each, which the list above them contains.
  expect(unnamed.every((path) => /\{|^\/workers|^\/history\/messages/.test(path))).toBe(true)
})

it('over live objects reads nothing while nothing happens', async () => {
  const facilities = createMemoryFacilities({ now: () => NOW })
  const { inspectors } = memoryComposition(facilities)
  const { router, calls } = createWatched({ inspectors })
  const { take, leave } = await open(router, ['/connections', '/contexts'])
  await take()
  const reads = () => calls.filter(({ name }) => name.includes('.list')).length
  expect(reads()).toBe(2)
  await vi.waitFor(() => expect(calls.length).toBeGreaterThan(6), { timeout: 60_000 })
  expect(reads()).toBe(2)
  await facilities.connections.connect({ user_id: 'a', client_id: 'c', instance_id: 'i', client_type: 'web' })
  expect((await take())[0]?.data).toMatchObject({ view: '/connections', from: 1, remove: [] })
  expect(reads()).toBe(3)
  leave()
  await facilities.close()
})
