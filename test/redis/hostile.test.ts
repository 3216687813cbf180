import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createStore } from '../../src/redis/store/store.js'
import { closedAfterTest } from './closing.js'
import { createObserver, get } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

const neverRight = (): never => {
  throw new Error('a broken hook')
}

const IDS = ['*', '?', '[a-z]', '\\', 'a:b', '{x}', '}{', '}:', 'a%3Ab', '%', 'A', 'a', "x'y", 'é', 'e\u0301']

describeRedis('a store that others write to', () => {
  let server: Server
  let host: Connected
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await host.close()
    await server.stop()
  })

  const facilitiesOf = (deploymentId: string) =>
    closedAfterTest(createRedisFacilities({ client: host.client, deploymentId, onError: null }))
  const contextOf = (context_id: string, user_id: string) => ({
    context_id,
    user_id,
    client_id: 'c',
    client_type: 'web' as const,
    status: 'idle' as const,
  })

  it('lists the scopes of commands, whatever another application has added', async () => {
    const { dispatcher } = facilitiesOf('scopes')
    await dispatcher.dispatch({ user_id: 'ann', client_id: 'c', command_id: 'k', action: 'a', scope_id: 's' })
    await server.cli('ZADD', 'relayscope:{scopes:0}:delivery:scope-order', '0.5', '%zz')
    const router = createObserver({ client: host.client, deploymentId: 'scopes' })
    const { status, body } = await get(router, '/delivery/tenants')
    expect([status, body.items.map((row: { scope_id: string }) => row.scope_id)]).toEqual([200, ['s']])
  })

  it('returns exactly the data of an id, whatever its characters', async () => {
    const { contexts, connections, ingest } = facilitiesOf('ids')
    for (const user_id of [...IDS, 'alice', 'bob']) {
      await contexts.report(contextOf(`ctx ${user_id}`, user_id))
      const client = { user_id, client_id: user_id, instance_id: user_id }
      await connections.connect({ ...client, client_type: 'web', actions: [user_id], metadata: { secret: user_id } })
      await ingest({ ...client, message_id: user_id, stream: 'log', kind: 'event', payload: user_id })
    }
    const router = createObserver({ client: host.client, deploymentId: 'ids' })
    for (const id of [...IDS, 'alice', 'bob']) {
      const encoded = encodeURIComponent(id)
      const listed = await get(router, `/contexts?user_id=${encoded}`)
      expect(listed.body.items.map((context: { context_id: string }) => context.context_id)).toEqual([`ctx ${id}`])
      const held = await get(router, `/connections?user_id=${encoded}`)
      expect(held.body.items).toMatchObject([{ user_id: id, metadata: { secret: id }, actions: [id] }])
      const [actions, dedup] = [`/actions?user_id=${encoded}`, `/deduplicator/users/${encoded}`]
      expect((await get(router, actions)).body.items).toMatchObject([{ name: id, observed_connections: 1 }])
      expect((await get(router, dedup)).body).toMatchObject({ user_id: id, entries: 1 })
      const stream = encodeURIComponent(`users/${encoded}/log`)
      expect((await get(router, `/history/messages?stream=${stream}`)).body).toMatchObject({
        count: 1,
        items: [{ user_id: id, payload: id }],
      })
    }
    expect((await get(router, '/users')).body.items).toHaveLength(IDS.length + 2)
  })

  it('separates deployments whose names have a common prefix', async () => {
    const names = ['dep1', 'dep10', 'DEP1', 'dep', 'dep1-', 'dep1_']
    for (const name of names) await facilitiesOf(name).contexts.report(contextOf(`of-${name}`, name))
    for (const name of names) {
      const router = createObserver({ client: host.client, deploymentId: name })
      expect((await get(router, '/contexts')).body.items.map((c: { context_id: string }) => c.context_id)).toEqual([
        `of-${name}`,
      ])
      expect((await get(router, '/users')).body.items.map((u: { user_id: string }) => u.user_id)).toEqual([name])
      const foreign = names.find((other) => other !== name) as string
      expect((await get(router, `/contexts/of-${foreign}`)).status).toBe(404)
      expect((await get(router, `/users/${foreign}/summary`)).status).toBe(404)
    }
  })

  it.each([
    '',
    'a}b',
    'a:b',
    'a b',
    'ä',
    '*',
    'x'.repeat(65),
  ])('refuses the deployment id %j at construction', (deploymentId) => {
    expect(() => createStore({ client: host.client, deploymentId })).toThrow(RangeError)
    expect(() => createObserver({ client: host.client, deploymentId })).toThrow(RangeError)
  })

  it.each([0, 65, 1.5, -1, Number.NaN])('refuses %j shards at construction', (shards) => {
    expect(() => createStore({ client: host.client, deploymentId: 'd', shards })).toThrow(RangeError)
  })

  it('rejects an invalid client at construction', () => {
    for (const client of [{}, { get() {} }, new Map(), { status: 'ready', call() {} }])
      expect(() => createStore({ client: client as never, deploymentId: 'd' })).toThrow(TypeError)
  })

  it('skips and reports invalid values, and returns the rest', async () => {
    const { contexts } = facilitiesOf('bad')
    const names = [
      'good-1',
      'text',
      'number',
      'nothing',
      'halves',
      'enum',
      'twin',
      'time',
      'deep',
      'hash',
      'huge',
      'good-2',
    ]
    for (const name of names) await contexts.report(contextOf(name, 'ann'))
    const key = (name: string) => `relayscope:{bad:0}:contexts:row:${encodeURIComponent(name)}`
    const good = await server.cli('GET', key('good-1'))
    const set = (name: string, value: string) => server.cli('SET', key(name), value)
    await set('text', 'no JSON at all')
    await set('number', '42')
    await set('nothing', 'null\nnull')
    await set('halves', good.slice(0, 40))
    await set('enum', good.replace('"idle"', '"sleepy"').replaceAll('good-1', 'enum'))
    // Another row's value under this id.
    await set('twin', good)
    await set('time', good.replaceAll('good-1', 'time').replace(/"updated_ms":\d+/, '"updated_ms":1e300'))
    await set('deep', `${'['.repeat(60_000)}\n{}`)
    await server.cli('DEL', key('hash'))
    await server.cli('HSET', key('hash'), 'a', 'b')
    await server.cli('SETRANGE', key('huge'), String(50 * 1_048_576), 'x')
    const reported: unknown[] = []
    const router = createObserver({
      client: host.client,
      deploymentId: 'bad',
      onError: (error) => reported.push(error),
    })
    const { status, body } = await get(router, '/contexts?limit=50')
    expect(status).toBe(200)
    expect(body.items.map((context: { context_id: string }) => context.context_id)).toEqual(['good-2', 'good-1'])
    expect(body.omitted).toBe(10)
    expect(reported).toHaveLength(10)
    // A report contains the key, never the value.
    expect(reported.map(String).join()).not.toContain('sleepy')
    for (const name of names.slice(1, -1)) expect((await get(router, `/contexts/${name}`)).status).toBe(404)
    const isTruncated = { complete: false, truncated_sources: ['context_registry'] }
    for (const path of ['/users/ann/summary', '/users'])
      expect((await get(router, path)).body).toMatchObject({ completeness: isTruncated })
    expect((await get(router, '/users/ann/summary')).body).toMatchObject({ observed_contexts: 2 })
    for (const path of ['/contexts/count', '/contexts/count?user_id=ann'])
      expect((await get(router, path)).body).toMatchObject({ total: 2, completeness: isTruncated })
    // Page by page, and past where a page is a single script.
    for (const limit of [1, 3]) {
      let [omitted, cursor] = [0, '']
      do {
        const { body } = await get(router, `/contexts?limit=${limit}${cursor && `&cursor=${cursor}`}`)
        omitted += body.omitted ?? 0
        cursor = body.next_cursor
      } while (cursor)
      expect(omitted).toBe(10)
    }
    expect((await get(router, '/contexts?status=closed')).body).toMatchObject({ items: [], omitted: 10 })
  })

  it('calls the onError of the router too, with the route', async () => {
    const { contexts } = facilitiesOf('told')
    await contexts.report(contextOf('ctx', 'ann'))
    await server.cli('SET', 'relayscope:{told:0}:contexts:row:ctx', 'x')
    const told: unknown[] = []
    const router = createDiagnosticsRouter({
      ...redisComposition({ client: host.client, deploymentId: 'told' }),
      auth: noopAuth(),
      onError: (error, place) => told.push(String(error), place),
    })
    expect((await get(router, '/contexts')).status).toBe(200)
    expect(told).toEqual([
      'BadRow: relayscope:{told:0}:contexts:row:ctx is not a row: it has no line break',
      {
        route: '/contexts',
        source: 'context_registry',
        id: 'ctx',
        fields: [{ path: '', expected: 'a row written by this library' }],
      },
    ])
  })

  it.each<[how: string, onError: () => unknown]>([
    ['throws', () => neverRight()],
    ['rejects', async () => neverRight()],
  ])('responds normally when onError %s', async (how, onError) => {
    const { contexts } = facilitiesOf(how)
    await contexts.report(contextOf('ctx', 'ann'))
    await server.cli('SET', `relayscope:{${how}:0}:contexts:row:ctx`, 'x')
    const router = createObserver({ client: host.client, deploymentId: how, onError })
    expect((await get(router, '/contexts')).status).toBe(200)
    // An unhandled rejection would fail the whole run.
    await new Promise(setImmediate)
  })

  it('treats a key of another type as an empty index, and reports it', async () => {
    const { contexts } = facilitiesOf('types')
    await contexts.report(contextOf('ctx', 'ann'))
    for (const index of ['all', 'users', 'user_id:ann']) {
      await server.cli('DEL', `relayscope:{types:0}:contexts:${index}`)
      await server.cli('SET', `relayscope:{types:0}:contexts:${index}`, 'x')
    }
    const reported: unknown[] = []
    const router = createObserver({
      client: host.client,
      deploymentId: 'types',
      onError: (error) => reported.push(error),
    })
    for (const path of ['/contexts', '/contexts?user_id=ann', '/users'])
      expect(await get(router, path)).toMatchObject({ status: 200, body: { items: [], has_more: false } })
    expect(reported.length).toBeGreaterThanOrEqual(3)
    expect((await get(router, '/contexts/ctx')).status).toBe(200)
  })

  it('treats a count that no record can hold as 0', async () => {
    const router = createObserver({ client: host.client, deploymentId: 'counts' })
    const { deduplicator } = facilitiesOf('counts')
    await deduplicator.claim({ user_id: 'ann', message_id: 'm' })
    for (const value of ['99999999999999999', '-5', '1.5'])
      for (const key of ['dedup:counts', 'dedup:counts:ann']) {
        await server.cli('HSET', `relayscope:{counts:0}:${key}`, 'accepted', value, 'duplicates', value)
        for (const path of ['/deduplicator/summary', '/deduplicator/users/ann', '/users/ann/summary'])
          expect([value, path, (await get(router, path)).status]).toEqual([value, path, 200])
      }
  })

  it('returns age 0 for a record from the future', async () => {
    const ahead = createRedisFacilities({
      onError: null,
      client: host.client,
      deploymentId: 'future',
      now: () => Date.now() + 600_000,
    })
    await ahead.contexts.report(contextOf('ctx', 'ann'))
    await ahead.rpc.open({ action: 'a', user_id: 'ann', client_id: 'c' })
    const router = createObserver({ client: host.client, deploymentId: 'future' })
    expect((await get(router, '/contexts')).body.items).toMatchObject([{ status: 'idle' }])
    expect((await get(router, '/rpc/pending')).body.items).toMatchObject([{ age_ms: 0 }])
    await ahead.close()
  })

  it('completes a read when onError throws', async () => {
    const { contexts } = facilitiesOf('reporter')
    await contexts.report(contextOf('ctx', 'ann'))
    await server.cli('SET', 'relayscope:{reporter:0}:contexts:row:ctx', 'x')
    const onError = () => {
      throw new Error('of the reporter')
    }
    const router = createObserver({ client: host.client, deploymentId: 'reporter', onError })
    expect(await get(router, '/contexts')).toMatchObject({ status: 200, body: { items: [] } })
  })
})
