/** Every list, count and aggregate over the store where there is more than may be looked at, the dead before the living. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/contract/inspectors.js'
import type { Awaitable, Page, PageQuery } from '../../src/contract/page.js'
import { createRedisBrowserWindowRegistry } from '../../src/redis/browser-windows/facility.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { createRedisMessageHistory } from '../../src/redis/history/facility.js'
import { createRedisRpcCorrelator } from '../../src/redis/rpc/facility.js'
import { type Clock, createClock } from '../contract/clock.js'
import { copyRow, MARK, plantScopes } from './plant.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

const BOUND = 10_000
/** More than may be looked at, of each family. */
const DEAD = 11_000
const MANY = 10_100
/** Who is there behind all those. */
const ALIVE = ['zoe-0', 'zoe-1', 'zoe-2', 'zoe-3', 'zoe-4']

const ask = { signal: new AbortController().signal, limits: { examined: BOUND } }

describeRedis('a store that holds more than a request may look at', () => {
  let server: Server
  let host: Connected
  beforeAll(async () => {
    server = await startServer()
    host = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await host?.close()
    await server?.stop()
  })

  describe.each([1, 4])('in %i shards', (shards) => {
    let clock: Clock
    let inspectors: Required<Inspectors>
    let router: Router
    const closing: { close(): unknown }[] = []

    beforeAll(async () => {
      clock = createClock()
      const place = { client: host.client, deploymentId: `beyond-${shards}`, shards }
      // A walk over all of it may take longer on a busy machine than a host lets its operators wait.
      const where = { ...place, now: clock.now, commandTimeoutMs: 20_000 }
      // One by one: the loop of a whole node would sweep the dead meanwhile.
      const connections = createRedisConnectionRegistry({ ...where, newId: () => `k-${MARK}`, retentionMs: 1_000 })
      const living = createRedisConnectionRegistry({ ...where, heartbeatTimeoutMs: 3_600_000 })
      const contexts = createRedisContextRegistry(where)
      const windows = createRedisBrowserWindowRegistry(where)
      const history = createRedisMessageHistory(where)
      const rpc = createRedisRpcCorrelator(where)
      const dispatcher = createRedisCommandDispatcher(where)
      closing.push(rpc, dispatcher)

      const client = (user_id: string) => ({ user_id, client_id: 'c', client_type: 'web' as const })
      const report = async (user_id: string, id: string) => {
        await contexts.report({ ...client(user_id), context_id: `x-${id}`, status: 'idle', ownership: 'worker' })
        await windows.report({ user_id, client_id: 'c', window_id: `w-${id}` })
        const call = { action: 'a', user_id, client_id: 'c', correlation_id: `call-${id}` }
        const { result } = await rpc.open({ ...call, timeoutMs: user_id.startsWith('a') ? 200_000 : 900_000 })
        result.catch(() => {})
      }
      const gone = `a-${MARK}`
      await connections.connect({ ...client(gone), instance_id: 'i' })
      await report(gone, MARK)
      await copyRow(place, 'connections', `k-${MARK}`, gone, DEAD)
      for (const [table, id] of [
        ['contexts', 'x'],
        ['windows', 'w'],
        ['calls', 'call'],
      ] as const)
        await copyRow(place, table, `${id}-${MARK}`, gone, DEAD)
      await plantScopes(place, DEAD, clock.now() + 1_000)
      clock.advance(300_000)

      const message = { kind: 'event' as const, instance_id: 'i', message_id: 'm', payload: null }
      const append = (user_id: string, stream: string) =>
        history.append({ ...message, user_id, client_id: 'c', stream: `users/${user_id}/${stream}` })
      await report('many', `many-${MARK}`)
      await append('many', MARK)
      for (const [table, id] of [
        ['contexts', `x-many-${MARK}`],
        ['windows', `w-many-${MARK}`],
        ['calls', `call-many-${MARK}`],
        ['streams', `users/many/${MARK}`],
      ] as const)
        await copyRow(place, table, id, 'many', MANY)
      for (const user_id of ALIVE) {
        await living.connect({ ...client(user_id), instance_id: 'i' })
        await report(user_id, user_id)
        await append(user_id, 'log')
        await dispatcher.dispatch({
          user_id,
          client_id: 'c',
          command_id: 'd',
          action: 'a',
          payload: null,
          deadlineMs: 600_000,
        })
      }
      inspectors = redisComposition(where).inspectors as Required<Inspectors>
      router = createObserver(where, 30_000)
    })
    afterAll(async () => {
      await Promise.all(closing.map((each) => each.close()))
    })

    /** All that a list shows, page by page, none of which may look at more than it may. */
    async function all<T>(list: (page: PageQuery) => Awaitable<Page<T>>) {
      const items: T[] = []
      let cursor: string | null = null
      let pages = 0
      do {
        const page: Page<T> = await list({ limit: 500, cursor })
        expect(page.examined).toBeLessThanOrEqual(BOUND)
        items.push(...page.items)
        cursor = page.next_cursor
        pages++
      } while (cursor !== null)
      return { items, pages }
    }
    const usersOf = (items: readonly { user_id: string }[]) =>
      items.map(({ user_id }) => user_id).filter((user_id) => user_id !== 'many')

    const LISTS: [string, number, (page: PageQuery) => Awaitable<Page<{ user_id: string }>>][] = [
      ['connections', 0, (page) => inspectors.registry.listConnections({}, page, ask)],
      ['contexts', MANY + 1, (page) => inspectors.contextRegistry.listContexts({}, page, ask)],
      ['windows', MANY + 1, (page) => inspectors.browserWindowRegistry.listBrowserWindows({}, page, ask)],
      ['pending calls', MANY + 1, (page) => inspectors.rpc.listPending({}, page, ask)],
      ['streams', MANY + 1, async (page) => (await inspectors.history.listStreams?.({}, page, ask)) as never],
    ]
    it.each(LISTS)('lists every one of the %s that are there', async (_, many, list) => {
      const { items, pages } = await all(list)
      expect(usersOf(items).sort()).toEqual(ALIVE)
      expect(items).toHaveLength(many + ALIVE.length)
      expect(pages).toBeGreaterThan(1)
    })

    it('lists every one of a single user, and what a filter without an index finds behind all others', async () => {
      const { items } = await all((page) => inspectors.contextRegistry.listContexts({ user_id: 'many' }, page, ask))
      expect(items).toHaveLength(MANY + 1)
      const filter = { user_id: 'many', status: 'closed' } as const
      expect((await all((page) => inspectors.contextRegistry.listContexts(filter, page, ask))).items).toEqual([])
    })

    it('looks at no more scopes than it may, and goes on from there', async () => {
      const few = { ...ask, limits: { examined: 70 } }
      const page = await inspectors.delivery.listTenants({ limit: 500, cursor: null }, few)
      expect(page).toMatchObject({ items: [], has_more: true, examined: 70 })
      const next = await inspectors.delivery.listTenants({ limit: 50, cursor: page.next_cursor }, few)
      expect(next).toMatchObject({ items: [], has_more: true, examined: 50 })
      expect(next.next_cursor).not.toBe(page.next_cursor)
    })

    it('lists the scopes that hold reservations, behind all those that hold none', async () => {
      const { items } = await all((page) => inspectors.delivery.listTenants(page, ask))
      expect(items.map(({ scope_id }) => scope_id).sort()).toEqual(ALIVE)
    })

    it.each([
      ['/connections/count', 'registry', ALIVE.length],
      ['/contexts/count', 'context_registry', MANY + 1 + ALIVE.length],
      ['/browser-windows/count', 'browser_window_registry', MANY + 1 + ALIVE.length],
      ['/contexts/count?user_id=many', 'context_registry', MANY + 1],
      ['/workers/count?user_id=many', 'context_registry', MANY + 1],
    ])('says of %s that it is a sample', async (path, source, most) => {
      const { status, body } = await get(router, path)
      expect(status).toBe(200)
      expect(body.total ?? body.idle_count).toBeLessThanOrEqual(most)
      expect(body.completeness).toMatchObject({ complete: false, truncated_sources: [source] })
      expect(body.completeness.examined[source]).toBeLessThanOrEqual(BOUND)
      expect(body.completeness.examined[source]).toBeGreaterThan(0)
    })

    it('counts what it keeps count of in full, and looks at nothing for it', async () => {
      expect((await get(router, '/delivery/summary')).body).toMatchObject({ tracked_commands: ALIVE.length })
      const { body } = await get(router, '/deduplicator/summary')
      expect(body).toMatchObject({ entries: 0 })
    })

    it('says of a user of whom there is more than may be looked at what it did not reach', async () => {
      const { status, body } = await get(router, '/users/many/summary')
      expect(status).toBe(200)
      const sources = ['browser_window_registry', 'context_registry', 'history', 'rpc']
      expect(body.completeness.complete).toBe(false)
      expect([...body.completeness.truncated_sources].sort()).toEqual(sources)
      for (const count of [
        body.observed_contexts,
        body.observed_browser_windows,
        body.observed_streams,
        body.pending_rpc,
      ])
        if (count !== null) expect(count).toBeGreaterThan(0)
      for (const cost of Object.values(body.completeness.examined)) expect(cost).toBeLessThanOrEqual(BOUND)
    })

    it('lists every user who is there, page by page, and no other', async () => {
      const seen: string[] = []
      let cursor: string | null = null
      do {
        const { status, body } = await get(router, `/users?limit=500${cursor ? `&cursor=${cursor}` : ''}`)
        expect(status).toBe(200)
        for (const cost of Object.values(body.completeness.examined)) expect(cost).toBeLessThanOrEqual(BOUND)
        seen.push(...body.items.map((user: { user_id: string }) => user.user_id))
        cursor = body.next_cursor
      } while (cursor !== null)
      expect(seen).toEqual(['many', ...ALIVE])
    })
  })
})
