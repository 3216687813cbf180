/** Worlds in which most indexed entries have expired, ahead of the live ones. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/internal/contract/families.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { type Clock, createClock } from '../contract/clock.js'
import { inBatches } from './in-batches.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

const ALIVE = 40
const BOUND = 10_000

const askOf = (scanBudget: number) => ({ signal: new AbortController().signal, limits: { examined: scanBudget } })
const ASK = askOf(BOUND)

/** @param worlds Numbers of shards, and of entries that have expired. */
export const describeExpired = (worlds: [shards: number, dead: number][]) =>
  describeRedis('a store with mostly expired entries', () => {
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

    describe.each(worlds)('with %i shards and %i dead', (shards, dead) => {
      let clock: Clock
      let inspectors: Required<Inspectors>
      let router: Router
      beforeAll(async () => {
        clock = createClock()
        const where = { client: host.client, deploymentId: `dead-${shards}`, now: clock.now }
        const nodeOf = (heartbeatTimeoutMs: number) =>
          // Registries alone: the loop of a whole node would sweep the dead meanwhile.
          ({
            connections: createRedisConnectionRegistry({ ...where, shards, heartbeatTimeoutMs, retentionMs: 60_000 }),
            contexts: createRedisContextRegistry({ ...where, shards }),
          })
        const offer = (to: ReturnType<typeof nodeOf>, user_id: string, action: string, n: number) =>
          to.connections.connect({
            user_id,
            client_id: `c-${n}`,
            instance_id: 'i',
            client_type: n % 2 ? 'web' : 'browser',
            actions: ['open', { name: action, description: `as ${action}` }],
          })
        const report = ({ contexts }: ReturnType<typeof nodeOf>, user_id: string, n: number) =>
          contexts.report({
            context_id: `x-${user_id}-${n}`,
            user_id,
            client_id: 'c',
            client_type: 'web',
            status: 'idle',
            ownership: 'worker',
            window_id: 'w',
          })
        // A dead node's entries, with no write since: they are still in every index.
        const gone = nodeOf(60_000)
        await inBatches(dead, async (i) => {
          await offer(gone, `a-${i}`, 'gone', i)
          await report(gone, `a-${i}`, i)
        })
        clock.advance(59_000)
        const there = nodeOf(3_600_000)
        await inBatches(ALIVE, (i) => offer(there, `z-${i % 20}`, `act-${i % 4}`, i))
        clock.advance(100_000)
        // The claims on these ids were not swept either.
        await inBatches(ALIVE, (i) => report(there, `z-${i % 20}`, i))
        clock.advance(40_000)
        inspectors = redisComposition(where).inspectors as Required<Inspectors>
        router = createObserver(where)
      })

      const actions = async (query = '') => (await get(router, `/actions?limit=500${query}`)).body
      const offered = (name: string, connections: number, users: number) =>
        expect.objectContaining({
          name,
          description: `as ${name}`,
          observed_connections: connections,
          observed_users: users,
        })

      it('lists the actions of live connections only, and all of them', async () => {
        const { items, completeness } = await actions()
        expect(items).toEqual([
          offered('act-0', 10, 5),
          offered('act-1', 10, 5),
          offered('act-2', 10, 5),
          offered('act-3', 10, 5),
          expect.objectContaining({ name: 'open', observed_connections: ALIVE, observed_users: 20 }),
        ])
        expect(completeness).toMatchObject({ complete: true })
        const answer = await inspectors.registry.listActions?.({}, { limit: 500, cursor: null }, ASK)
        expect(answer?.examined).toBeGreaterThanOrEqual(ALIVE)
        expect(answer?.examined).toBeLessThanOrEqual(BOUND)
        const ofType = await actions('&client_type=web')
        expect(ofType.items.map((item: { name: string }) => item.name)).toEqual(['act-1', 'act-3', 'open'])
        const ofUser = await actions('&user_id=z-3')
        expect(ofUser.items).toEqual([
          offered('act-3', 2, 1),
          expect.objectContaining({ name: 'open', observed_connections: 2, observed_users: 1 }),
        ])
        expect((await actions('&user_id=a-3')).items).toEqual([])
      })

      it('marks actions as a sample if the scan limit is too low', async () => {
        const answer = await inspectors.registry.listActions?.({}, { limit: 10, cursor: null }, askOf(shards))
        expect(answer?.truncated).toBe(true)
        expect(answer?.examined).toBeLessThanOrEqual(shards)
        expect(answer?.items.map(({ name }) => name)).not.toContain('gone')
      })

      it('lists the existing users, after all those that do not exist any more', async () => {
        const { items, completeness } = (await get(router, '/users?limit=100')).body
        expect(items.map((user: { user_id: string }) => user.user_id)).toEqual(
          Array.from({ length: 20 }, (_, i) => `z-${i}`).sort(),
        )
        expect(items[0]).toMatchObject({ observed_connections: 2, observed_contexts: 2 })
        expect(completeness).toMatchObject({ complete: true })
        const ids = await inspectors.contextRegistry.listUserIds?.({ after: null, limit: 50 }, ASK)
        expect(ids?.examined).toBe(dead + 20)
      })

      it('never returns an empty list without a cursor if it did not examine everything', async () => {
        const ids = await inspectors.contextRegistry.listUserIds?.({ after: null, limit: 50 }, askOf(300))
        expect(ids).toMatchObject({ reached: expect.stringMatching(/^a-/), examined: 150 })
      })

      it('skips expired entries within the scan limit of one page, and counts them as examined', async () => {
        for (const list of [inspectors.contextRegistry.listContexts, inspectors.registry.listConnections]) {
          const all = await list({}, { limit: 50, cursor: null }, ASK)
          expect(all.items).toHaveLength(ALIVE)
          expect(all.examined).toBeGreaterThanOrEqual(dead)
          expect(all.examined).toBeLessThanOrEqual(BOUND)
        }
        const short = await inspectors.contextRegistry.listContexts({}, { limit: 50, cursor: null }, askOf(70))
        expect(short).toMatchObject({ items: [], has_more: true, examined: 70 })
      })

      it('ends a walk with a low scan limit after every live entry', async () => {
        const seen: string[] = []
        let cursor: string | null = null
        do {
          const page: { items: { context_id: string }[]; next_cursor: string | null; examined?: number } =
            await inspectors.contextRegistry.listContexts({}, { limit: 7, cursor }, askOf(900))
          expect(page.examined).toBeLessThanOrEqual(900)
          seen.push(...page.items.map(({ context_id }) => context_id))
          cursor = page.next_cursor
        } while (cursor !== null)
        expect(seen.sort()).toEqual(Array.from({ length: ALIVE }, (_, i) => `x-z-${i % 20}-${i}`).sort())
      })

      it('counts live entries, and reports what that cost', async () => {
        expect((await get(router, '/contexts/count')).body).toMatchObject({
          total: ALIVE,
          by_status: { idle: ALIVE },
          completeness: { complete: true },
        })
        expect(await inspectors.contextRegistry.countContexts?.({}, ASK)).toMatchObject({ examined: dead + ALIVE })
        const sample = await inspectors.contextRegistry.countContexts?.({}, askOf(500))
        expect(sample).toMatchObject({ truncated: true, examined: 500 })
      })

      it('counts contexts of any client of its user in a window, and none of another user', async () => {
        const owned = (user_id: string) => [{ window_id: 'w', user_id }]
        const { countByWindow } = inspectors.contextRegistry as {
          countByWindow?: (...given: unknown[]) => Promise<unknown[]>
        }
        expect([...((await countByWindow?.(['w'], ASK, owned('z-3'))) ?? [])]).toEqual([
          { window_id: 'w', worker_count: 2, idle_count: 2, busy_count: 0 },
        ])
        expect([...((await countByWindow?.(['w'], ASK, owned('z-none'))) ?? [])]).toMatchObject([
          { window_id: 'w', worker_count: 0 },
        ])
      })

      it('leaves a window out of the counts if it did not examine all of it', async () => {
        const all = await inspectors.contextRegistry.countByWindow?.(['w', 'none'], ASK)
        expect(all).toContainEqual({ window_id: 'w', worker_count: ALIVE, idle_count: ALIVE, busy_count: 0 })
        const few = await inspectors.contextRegistry.countByWindow?.(['w', 'none'], askOf(100))
        expect(few).toMatchObject({ truncated: true })
        expect([...(few ?? [])]).toEqual([{ window_id: 'none', worker_count: 0, idle_count: 0, busy_count: 0 }])
        expect(few?.examined).toBeLessThanOrEqual(100)
      })
    })
  })
