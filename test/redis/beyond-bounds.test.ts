/** Every list, count and aggregate of a store with more entries than the scan limit, expired ones first. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CommandFilter, DeliveryCommand } from '../../src/internal/contract/delivery.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { Awaitable, Page, PageQuery } from '../../src/internal/contract/page.js'
import type { SessionFilter } from '../../src/internal/contract/sessions.js'
import type { SiteFilter } from '../../src/internal/contract/sites.js'
import { createRedisBrowserWindowRegistry } from '../../src/redis/browser-windows/facility.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { createRedisMessageHistory } from '../../src/redis/history/facility.js'
import { createRedisRpcCorrelator } from '../../src/redis/rpc/facility.js'
import { createRedisSessionRegistry } from '../../src/redis/sessions/facility.js'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { REPORT_STREAMS } from '../../src/redis/subscriptions/facility.js'
import { type Clock, createClock } from '../contract/clock.js'
import { copyCommand, copyRow, copySessions, copySites, MARK, plantScopes } from './plant.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

/** Scan limits of a request: the default, and a lower one that several shards share. */
const [BOUND, LOWERED] = [10_000, 2_500]
/** Who is there behind all those. */
const ALIVE = ['zoe-0', 'zoe-1', 'zoe-2', 'zoe-3', 'zoe-4']

describeRedis('a store with more entries than the scan limit', () => {
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

  describe.each([
    [1, BOUND],
    [4, LOWERED],
    [12, LOWERED],
  ])('in %i shards, of %i that may be looked at', (shards, bound) => {
    const ctx = { signal: new AbortController().signal, limits: { examined: bound } }
    // More of each family.
    const dead = 1.1 * bound
    const most = bound + 100
    let clock: Clock
    let inspectors: Required<Inspectors>
    let router: Router
    const closing: { close(): unknown }[] = []

    beforeAll(async () => {
      clock = createClock()
      const place = { client: host.client, deploymentId: `beyond-${shards}`, shards }
      // A walk over everything may take longer on a busy machine than the default timeout.
      const where = { ...place, now: clock.now, commandTimeoutMs: 20_000, onError: null }
      // One by one: the loop of a whole node would sweep the dead meanwhile.
      const connections = createRedisConnectionRegistry({ ...where, newId: () => `k-${MARK}`, retentionMs: 1_000 })
      const living = createRedisConnectionRegistry({ ...where, heartbeatTimeoutMs: 3_600_000 })
      const contexts = createRedisContextRegistry(where)
      const windows = createRedisBrowserWindowRegistry(where)
      const history = createRedisMessageHistory(where)
      const rpc = createRedisRpcCorrelator(where)
      const dispatcher = createRedisCommandDispatcher(where)
      const sites = createRedisSiteRegistry({ ...where, maxSites: 100_000, maxSitesPerUser: 100_000 })
      const bySession = (session_id: string) => createRedisSessionRegistry({ ...where, newId: () => session_id })
      closing.push(rpc, dispatcher)

      const client = (user_id: string) => ({ user_id, client_id: 'c', client_type: 'web' as const })
      const report = async (user_id: string, id: string) => {
        await contexts.report({ ...client(user_id), context_id: `x-${id}`, status: 'idle', ownership: 'worker' })
        await windows.report({ user_id, client_id: 'c', window_id: `w-${id}` })
        const timeoutMs = user_id.startsWith('a') ? 200_000 : 900_000
        await rpc.open({ action: 'a', user_id, client_id: 'c', correlation_id: `call-${id}`, timeout_ms: timeoutMs })
      }
      const store = createStore(where)
      const watch = async (user: string, id: string, lease: number) => {
        const stands = { pending: 0, dropped: 0, last_position: null, last_taken_at: null }
        const body = JSON.stringify({ node_id: 'n', opened_at: '2026-01-01T00:00:00.000Z', ...stands })
        const streams = [`v-${id}`, user, `n-of-${user}`, 's', body]
        await runScript(store, REPORT_STREAMS, await store.shardOf(user), { lease, is_short: '', streams })
      }
      const gone = `a-${MARK}`
      await connections.connect({ ...client(gone), instance_id: 'i' })
      await report(gone, MARK)
      await copyRow(place, 'connections', `k-${MARK}`, gone, dead)
      for (const [table, id] of [
        ['contexts', 'x'],
        ['windows', 'w'],
        ['calls', 'call'],
      ] as const)
        await copyRow(place, table, `${id}-${MARK}`, gone, dead)
      await watch(gone, MARK, 15_000)
      await copyRow(place, 'subscriptions', `v-${MARK}`, gone, dead)
      await plantScopes(place, dead, clock.now() + 1_000)
      const key = { user_id: gone, client_id: 'c', command_id: `d-${MARK}` }
      const ended = { ...key, scope_id: 'crowd' }
      const brief = createRedisCommandDispatcher({ ...where, retentionMs: 1_000 })
      await brief.dispatch({ ...ended, action: 'a' })
      await brief.settle({ ...key, state: 'resulted' })
      await brief.close()
      await copyCommand(place, ended, dead)
      await copySites(place, { site_id: `s-gone-${MARK}`, owner: 'many' }, dead, false)
      await bySession(`n-gone-${MARK}`).open({ site_id: `s-${MARK}`, owner: 'many' })
      await copySessions(place, `n-gone-${MARK}`, dead, clock.now() - 4_000_000)
      await bySession(`n-gone-${MARK}`).close(`n-gone-${MARK}`)
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
        await copyRow(place, table, id, 'many', most)
      await watch('many', `many-${MARK}`, 900_000)
      await copyRow(place, 'subscriptions', `v-many-${MARK}`, 'many', most)
      const many = { user_id: 'many', client_id: 'c', command_id: `d-many-${MARK}`, scope_id: 'crowd' }
      await dispatcher.dispatch({ ...many, action: 'a', deadline_ms: 600_000 })
      await copyCommand(place, many, most)
      const site = { site_id: `s-${MARK}`, owner: 'many' }
      await sites.put({ ...site, mode: 'observe' })
      await copySites(place, site, most, true)
      await bySession(`n-${MARK}`).open(site)
      await copySessions(place, `n-${MARK}`, most)
      for (const user_id of ALIVE) {
        await living.connect({ ...client(user_id), instance_id: 'i' })
        await report(user_id, user_id)
        await append(user_id, 'log')
        await watch(user_id, user_id, 900_000)
        await sites.put({ site_id: `s-of-${user_id}`, owner: user_id, mode: 'cooperative' })
        await bySession(`n-of-${user_id}`).open({ site_id: `s-of-${user_id}`, owner: user_id })
        await bySession(`n-of-${user_id}`).activate(`n-of-${user_id}`)
        await dispatcher.dispatch({ user_id, client_id: 'c', command_id: 'd', action: 'a', deadline_ms: 600_000 })
      }
      inspectors = redisComposition(where).inspectors as Required<Inspectors>
      router = createObserver(where, 30_000, bound)
    })
    afterAll(async () => {
      await Promise.all(closing.map((each) => each.close()))
    })

    /** Returns all items of a list, and checks that no page examined more than the scan limit. */
    async function all<T>(list: (page: PageQuery) => Awaitable<Page<T>>) {
      const items: T[] = []
      let cursor: string | null = null
      let pages = 0
      do {
        const page: Page<T> = await list({ limit: 500, cursor })
        expect(page.examined).toBeLessThanOrEqual(bound)
        items.push(...page.items)
        cursor = page.next_cursor
        pages++
      } while (cursor !== null)
      return { items, pages }
    }
    const usersOf = (items: readonly { user_id: string }[]) =>
      items.map(({ user_id }) => user_id).filter((user_id) => user_id !== 'many')

    const LISTS: [string, number, (page: PageQuery) => Awaitable<Page<{ user_id: string }>>][] = [
      ['connections', 0, (page) => inspectors.registry.listConnections({}, page, ctx)],
      ['contexts', most + 1, (page) => inspectors.contextRegistry.listContexts({}, page, ctx)],
      ['windows', most + 1, (page) => inspectors.browserWindowRegistry.listBrowserWindows({}, page, ctx)],
      ['pending calls', most + 1, (page) => inspectors.rpc.listPending({ overdue: false }, page, ctx)],
      ['commands', most + 1, async (page) => (await inspectors.delivery.listCommands?.({}, page, ctx)) as never],
      ['streams', most + 1, async (page) => (await inspectors.history.listStreams?.({}, page, ctx)) as never],
      [
        'sites',
        most + 1,
        async (page) => {
          const listed = await inspectors.sites.listSites({}, page, ctx)
          return { ...listed, items: listed.items.map(({ owner }) => ({ user_id: owner })) }
        },
      ],
      ['viewer streams', most + 1, (page) => inspectors.subscriptions.listSubscriptions({}, page, ctx)],
      [
        'sessions',
        // One of them has ended recently.
        most + 2,
        async (page) => {
          const listed = await inspectors.sessions.listSessions({}, page, ctx)
          return { ...listed, items: listed.items.map(({ owner }) => ({ user_id: owner })) }
        },
      ],
    ]
    it.each(LISTS)('lists all existing %s', async (_, many, list) => {
      const { items, pages } = await all(list)
      expect(usersOf(items).sort()).toEqual(ALIVE)
      expect(items).toHaveLength(many + ALIVE.length)
      expect(pages).toBeGreaterThan(1)
    })

    it('lists every overdue call, after or before all pending ones, oldest first', async () => {
      const { items } = await all((page) => inspectors.rpc.listPending({ overdue: true }, page, ctx))
      const { body } = await get(router, '/rpc/summary')
      expect(body).toMatchObject({ pending: most + 1 + ALIVE.length + items.length, overdue: items.length })
      expect(items.length).toBeGreaterThan(bound)
      expect(items.every(({ overdue }) => overdue)).toBe(true)
      const waiting = (await all((page) => inspectors.rpc.listPending({}, page, ctx))).items
      const started = waiting.map(({ started_at }) => started_at)
      expect(started).toEqual([...started].sort())
    })

    it('lists all entries of one user, and the matches of a filter without an index after all others', async () => {
      const { items } = await all((page) => inspectors.contextRegistry.listContexts({ user_id: 'many' }, page, ctx))
      expect(items).toHaveLength(most + 1)
      for (const filter of [{ node_id: 'elsewhere' }, { ended_reason: 'new_instance' }])
        expect((await all((page) => inspectors.registry.listConnections(filter, page, ctx))).items).toEqual([])
      const filter = { user_id: 'many', status: 'closed' } as const
      expect((await all((page) => inspectors.contextRegistry.listContexts(filter, page, ctx))).items).toEqual([])
    })

    it('counts the viewers of each session after all others, and marks the slowest of a sample as truncated', async () => {
      const sessions = ALIVE.map((user_id) => `n-of-${user_id}`)
      expect(await inspectors.subscriptions.countViewers?.(sessions, ctx)).toEqual(ALIVE.map(() => 1))
      const { status, body } = await get(router, '/subscriptions?order=slowest&limit=500')
      expect([status, body.completeness.complete]).toEqual([200, false])
      expect(body.completeness.examined.subscriptions).toBeLessThanOrEqual(bound)
    })

    it('lists the sites of one owner, and by a filter without an index those after all others', async () => {
      const ids = async (filter: SiteFilter) =>
        (await all((page) => inspectors.sites.listSites(filter, page, ctx))).items.map(({ owner }) => owner)
      expect(await ids({ owner: 'many', mode: 'observe' })).toHaveLength(most + 1)
      expect((await ids({ mode: 'cooperative' })).sort()).toEqual(ALIVE)
      expect(await ids({ owner: 'zoe-1' })).toEqual(['zoe-1'])
    })

    it('lists the sessions of a site, and counts all of them without examining any', async () => {
      const list = async (filter: SessionFilter) =>
        (await all((page) => inspectors.sessions.listSessions(filter, page, ctx))).items.map(({ owner }) => owner)
      expect(await list({ site_id: `s-${MARK}`, state: 'pending' })).toHaveLength(most + 1)
      expect((await list({ state: 'active' })).sort()).toEqual(ALIVE)
      expect(await list({ owner: 'zoe-1' })).toEqual(['zoe-1'])
      expect((await get(router, `/sites/s-${MARK}`)).body.sessions).toBe(most + 1)
    })

    it('lists commands by the most selective filter, and returns an empty page immediately', async () => {
      const list = (filter: CommandFilter) =>
        all(async (page) => (await inspectors.delivery.listCommands?.(filter, page, ctx)) as Page<DeliveryCommand>)
      // In one shard the dead are a page of their own.
      const behind = shards === 1 ? 1 : 0
      const isThere = async (filter: CommandFilter, count: number, before = 0) => {
        const listed = await list(filter)
        expect([filter, listed.items.length]).toEqual([filter, count])
        expect(new Set(listed.items.map(({ user_id, command_id }) => `${user_id} ${command_id}`)).size).toBe(count)
        expect(listed.pages).toBeGreaterThanOrEqual(before + Math.ceil(count / 500))
      }
      await isThere({ scope_id: 'crowd' }, most + 1, behind)
      await isThere({ state: 'waiting' }, most + 1 + ALIVE.length)
      await isThere({ state: 'waiting', client_id: 'none' }, 0)
      await isThere({ overdue: false, scope_id: 'crowd', client_id: 'c' }, most + 1, behind)
      // Dead ones alone.
      await isThere({ state: 'resulted' }, 0)
      for (const filter of [
        { overdue: true },
        { state: 'acknowledged' },
        { user_id: 'many', state: 'failed' },
        { user_id: 'zoe-0', scope_id: 'crowd', state: 'waiting' },
        { scope_id: 'missing' },
      ] as const) {
        const page = await inspectors.delivery.listCommands?.(filter, { limit: 500, cursor: null }, ctx)
        expect(page).toMatchObject({ items: [], has_more: false })
        expect(page?.examined).toBeLessThanOrEqual(1)
      }
    })

    it('examines no more scopes than the scan limit, and continues from there', async () => {
      const few = { ...ctx, limits: { examined: 70 } }
      const page = await inspectors.delivery.listTenants({ limit: 500, cursor: null }, few)
      expect([page.items.length, page.has_more, page.examined]).toEqual([70, true, 70])
      const next = await inspectors.delivery.listTenants({ limit: 50, cursor: page.next_cursor }, few)
      expect([next.items.length, next.has_more, next.examined]).toEqual([50, true, 50])
      expect(next.next_cursor).not.toBe(page.next_cursor)
    })

    it('lists every scope with reservations, those of overdue commands included', async () => {
      const { items } = await all((page) => inspectors.delivery.listTenants(page, ctx))
      const [late, others] = [true, false].map((isLate) =>
        items.filter(({ scope_id }) => scope_id.startsWith('a-') === isLate),
      )
      expect(others?.map(({ scope_id }) => scope_id).sort()).toEqual(['crowd', ...ALIVE])
      expect(late?.length).toBeGreaterThanOrEqual(most)
      expect(late?.every(({ reserved_commands }) => reserved_commands === 1)).toBe(true)
    })

    it.each([
      ['/connections/count', 'registry', ALIVE.length],
      ['/contexts/count', 'context_registry', most + 1 + ALIVE.length],
      ['/browser-windows/count', 'browser_window_registry', most + 1 + ALIVE.length],
      ['/contexts/count?user_id=many', 'context_registry', most + 1],
      ['/workers/count?user_id=many', 'context_registry', most + 1],
    ])('marks %s as a sample', async (path, source, most) => {
      const { status, body } = await get(router, path)
      expect(status).toBe(200)
      expect(body.total ?? body.idle_count).toBeLessThanOrEqual(most)
      expect(body.completeness).toMatchObject({ complete: false, truncated_sources: [source] })
      expect(body.completeness.examined[source]).toBeLessThanOrEqual(bound)
      expect(body.completeness.examined[source]).toBeGreaterThan(0)
    })

    it('returns complete maintained counts, and examines nothing for them', async () => {
      expect((await get(router, '/delivery/summary')).body).toMatchObject({ tracked_commands: ALIVE.length + 1 })
      const { body } = await get(router, '/deduplicator/summary')
      // Nothing was ever claimed here.
      expect(body).toMatchObject({ entries: null, capacity: null })
    })

    it('marks a user with more entries than the scan limit as truncated', async () => {
      const { status, body } = await get(router, '/users/many/summary')
      expect(status).toBe(200)
      const bounded = ['browser_window_registry', 'context_registry', 'history', 'rpc']
      const sources = [...bounded, 'delivery', 'sessions', 'sites', 'subscriptions'].sort()
      expect(body.completeness.complete).toBe(false)
      expect([...body.completeness.truncated_sources].sort()).toEqual(sources)
      for (const count of [
        body.observed_contexts,
        body.observed_browser_windows,
        body.observed_streams,
        body.pending_rpc,
      ])
        if (count !== null) expect(count).toBeGreaterThan(0)
      for (const cost of Object.values(body.completeness.examined)) expect(cost).toBeLessThanOrEqual(bound)
    })

    // Ten thousand users take minutes.
    if (bound === LOWERED)
      it('lists every existing user, page by page', async () => {
        const seen: string[] = []
        let cursor: string | null = null
        do {
          const { status, body } = await get(router, `/users?limit=500${cursor ? `&cursor=${cursor}` : ''}`)
          expect(status).toBe(200)
          for (const cost of Object.values(body.completeness.examined)) expect(cost).toBeLessThanOrEqual(bound)
          seen.push(...body.items.map((user: { user_id: string }) => user.user_id))
          cursor = body.next_cursor
        } while (cursor !== null)
        // Calls of the users before them ended less than an hour ago: some of those are known, too.
        expect(seen.filter((user) => !user.startsWith('a-'))).toEqual(['many', ...ALIVE])
      })
  })
})
