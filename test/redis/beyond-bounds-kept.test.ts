/** Lists and counters of a store with more nodes, commands, actions and messages than the scan limit. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CommandFilter } from '../../src/internal/contract/delivery.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { Awaitable, Page, PageQuery } from '../../src/internal/contract/page.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { createRedisMessageHistory } from '../../src/redis/history/facility.js'
import { shardOf } from '../../src/redis/store/keys.js'
import { type Clock, createClock } from '../contract/clock.js'
import { copyCommand, copyRow, fillDeduplicator, MARK } from './plant.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'

/** Scan limits of a request: the default, and a lower one that several shards share. */
const BOUND = 10_000
const LOWERED = 2_500
/** More in each shard than one question looks at one by one. */
const DEAD = 1_500
/** Actions that one connection may offer. */
const OFFERED = 500
const ALIVE = ['zoe-0', 'zoe-1', 'zoe-2', 'zoe-3', 'zoe-4']
const TTL_MS = 600_000

describeRedis('a store with more counters than the scan limit', () => {
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
    const many = bound + 1_000
    let clock: Clock
    let inspectors: Required<Inspectors>
    let router: Router
    /** A user in each shard. */
    const homes = Array.from({ length: shards }, (_, shard) => {
      for (let i = 0; ; i++) if (shardOf(`home-${i}`, shards) === shard) return `home-${i}`
    })
    const capacity = Math.ceil(many / shards)

    beforeAll(async () => {
      clock = createClock()
      const place = { client: host.client, deploymentId: `kept-${shards}`, shards, now: clock.now }
      const where = { ...place, commandTimeoutMs: 20_000 }

      const gone = createRedisCommandDispatcher({ ...where, nodeId: `n-${MARK}` })
      await gone.reconcile()
      await gone.close()
      await copyRow(place, 'nodes', `n-${MARK}`, '', many)
      clock.advance(3_600_000)
      for (const user_id of ALIVE) {
        const dispatcher = createRedisCommandDispatcher({ ...where, nodeId: user_id })
        const mine = { user_id, client_id: 'c', command_id: 'd' }
        await dispatcher.dispatch({ ...mine, action: 'a', payload: null, deadline_ms: 7_200_000 })
        // The first of them is being delivered.
        if (user_id === ALIVE[0]) {
          const instance = { ...mine, instance_id: 'i' }
          await dispatcher.attach(instance, () => {})
          await soon(async () => expect(await dispatcher.acknowledge(instance)).toBe(true))
        }
        await dispatcher.close()
      }
      // No node is left to end them.
      const last = createRedisCommandDispatcher({ ...where, nodeId: 'zoe-0' })
      const dead = { user_id: `a-${MARK}`, client_id: 'c', command_id: 'd', scope_id: 'crowd' }
      await last.dispatch({ ...dead, action: 'a', payload: null, deadline_ms: 60_000 })
      await last.close()
      await copyCommand(place, dead, DEAD * shards, clock.now() - 1_000)

      const living = createRedisConnectionRegistry({ ...where, heartbeatTimeoutMs: 3_600_000 })
      const dying = createRedisConnectionRegistry({ ...where, heartbeatTimeoutMs: 1_000 })
      const offering = (kind: string, from: number) =>
        Array.from({ length: OFFERED }, (_, i) => `${kind}-${String(from + i).padStart(5, '0')}`)
      const offer = (registry: typeof living, user_id: string, client_id: string, actions: string[]) =>
        registry.connect({ user_id, client_id, instance_id: 'i', client_type: 'web', actions })
      for (let n = 0; n < many / OFFERED; n++) {
        const user_id = ALIVE[n % ALIVE.length] as string
        await offer(living, user_id, `c${n}`, offering('act', n * OFFERED))
      }
      await offer(dying, homes[0] as string, 'c', offering('gone', 0))
      for (const home of homes) await fillDeduplicator(where, home, capacity + 100, { ttl: TTL_MS, capacity })
      clock.advance(60_000)

      const history = createRedisMessageHistory(where)
      const message = { user_id: 'zoe-0', client_id: 'c', instance_id: 'i', stream: 'users/zoe-0/log', kind: 'event' }
      for (let n = 0; n < 200; n++)
        await history.append({ ...message, kind: 'event', message_id: `m${n}`, payload: 'x'.repeat(60_000) })
      inspectors = redisComposition(where).inspectors as Required<Inspectors>
      router = createObserver(where, 30_000, bound)
    })

    /** Returns all items of a list, and checks that no page examined more than the scan limit. */
    async function all<T>(list: (page: PageQuery) => Awaitable<Page<T> | null>): Promise<T[]> {
      const items: T[] = []
      let cursor: string | null = null
      do {
        const page: Page<T> | null = await list({ limit: 500, cursor })
        if (!page) throw new Error('the list is not implemented')
        expect(page.examined).toBeLessThanOrEqual(bound)
        items.push(...page.items)
        cursor = page.next_cursor
      } while (cursor !== null)
      return items
    }

    it('lists the nodes that reported within the hour, after all others', async () => {
      const nodes = await all((page) => inspectors.delivery.listNodes(page, ctx))
      expect(nodes.map(({ node_id }) => node_id).sort()).toEqual(ALIVE)
    })

    it.each<[CommandFilter, string[]]>([
      [{ overdue: false }, ALIVE],
      [{ state: 'acknowledged' }, ALIVE.slice(0, 1)],
      [{ state: 'waiting', overdue: false }, ALIVE.slice(1)],
      [{ user_id: 'zoe-1' }, ['zoe-1']],
    ])('lists every command under %o, behind all that have expired', async (filter, users) => {
      const commands = await all((page) => inspectors.delivery.listCommands?.(filter, page, ctx) ?? null)
      expect(commands.map(({ user_id }) => user_id).sort()).toEqual(users)
    })

    it('lists every expired command that no node has ended', async () => {
      const commands = await all((page) => inspectors.delivery.listCommands?.({ overdue: true }, page, ctx) ?? null)
      expect(new Set(commands.map(({ user_id }) => user_id)).size).toBe(DEAD * shards + 1)
    })

    it('counts every command without a recorded end, and those that are overdue as such', async () => {
      const { status, body } = await get(router, '/delivery/summary')
      // However many have expired, it is known what the others wait for.
      const expiry = DEAD * shards + 1
      const waits = { expiry, client_not_attached: ALIVE.length - 1, outcome: 1, unknown: 0 }
      expect(body.waits_for).toMatchObject(waits)
      const { waiting, attempted, acknowledged } = body.by_state
      expect(body.tracked_commands).toBe(waiting + attempted + acknowledged)
      expect([status, body.tracked_commands, body.due_commands, body.waiting_for_client]).toEqual([
        200,
        ALIVE.length + expiry,
        0,
        ALIVE.length - 1,
      ])
      expect(Date.parse(body.oldest_deadline_at)).toBeLessThanOrEqual(clock.now())
    })

    it('lists every action of connected clients, and does not count dead ones', async () => {
      const names: string[] = []
      let cursor: string | null = null
      do {
        const { status, body } = await get(router, `/actions?limit=500${cursor ? `&cursor=${cursor}` : ''}`)
        expect(status).toBe(200)
        expect(body.completeness).toMatchObject({ complete: true, truncated_sources: [] })
        expect(body.completeness.examined.registry).toBeLessThanOrEqual(bound)
        for (const { name, observed_connections, observed_users } of body.items)
          names.push(observed_connections === 1 && observed_users === 1 ? name : `${name} of others`)
        cursor = body.next_cursor
      } while (cursor !== null)
      expect(names).toEqual(Array.from({ length: many }, (_, i) => `act-${String(i).padStart(5, '0')}`))
    })

    it('counts a full deduplicator, and one whose messages have expired', async () => {
      const full = { entries: capacity * shards, capacity: capacity * shards, evicted: 100 * shards }
      const { body } = await get(router, '/deduplicator/summary')
      expect(body).toMatchObject({ ...full, accepted: (capacity + 100) * shards, duplicates: 0 })
      expect((await get(router, `/deduplicator/users/${homes[0]}`)).body).toMatchObject({ entries: capacity })
      const later = createObserver({
        client: host.client,
        deploymentId: `kept-${shards}`,
        now: () => clock.now() + TTL_MS,
      })
      expect((await get(later, '/deduplicator/summary')).body).toMatchObject({ ...full, entries: 0 })
      expect((await get(later, `/deduplicator/users/${homes[0]}`)).status).toBe(404)
    })

    it('returns the newest messages of a stream that fit into one response, and reports truncation', async () => {
      const { status, body } = await get(router, '/history/messages?stream=users%2Fzoe-0%2Flog&limit=500')
      expect(status).toBe(200)
      expect(body.count).toBe(body.items.length)
      const ids = body.items.map(({ message_id }: { message_id: string }) => message_id)
      expect(ids.length).toBeGreaterThan(100)
      expect(ids).toEqual(Array.from({ length: 200 }, (_, n) => `m${n}`).slice(-ids.length))
      const { truncated } = await inspectors.history.readMessages({ stream: 'users/zoe-0/log', limit: 500 }, ctx)
      expect(truncated).toBe(true)
    })
  })
})
