/** What a request may cost the store. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createClock } from '../contract/clock.js'
import { type Counted, countCommands } from './counted-client.js'
import { inBatches } from './in-batches.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

/** Maximum number of commands that an aggregate, a page or a record may cost one shard. */
const MOST = 16

const ROUTES = [
  '/users?limit=500',
  '/users',
  '/users/u-17/summary',
  '/users/missing/summary',
  '/actions?limit=500',
  '/actions?user_id=u-17&client_type=web',
  '/connections?limit=500',
  '/connections?limit=500&client_type=console',
  '/connections/count',
  '/connections/count?user_id=u-17',
  '/contexts?limit=500&status=closed',
  '/contexts/count',
  '/contexts/none',
  '/workers?user_id=u-17',
  '/browser-windows?limit=500',
  '/browser-windows?limit=500&focused=true',
  '/browser-windows/count',
  '/browser-windows/w-17',
  '/rpc/pending?limit=500',
]

/** @param worlds Numbers of shards and of users. */
export const describeCosts = (worlds: [shards: number, users: number][]) =>
  describeRedis('the commands that a request costs', () => {
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

    describe.each(worlds)('with %i shards and %i users', (shards, users) => {
      const clock = createClock()
      const where = { deploymentId: `cost-${shards}`, now: clock.now }
      let facilities: ReturnType<typeof createRedisFacilities>
      let counted: Counted
      let router: Router
      beforeAll(async () => {
        // A busy machine takes its time for a world of this size.
        facilities = createRedisFacilities({ ...where, client: host.client, shards, commandTimeoutMs: 30_000 })
        const { connections, contexts, browserWindows } = facilities
        await inBatches(users, async (i) => {
          const client = { user_id: `u-${i}`, client_id: 'c' }
          const client_type = 'web'
          await contexts.report({
            ...client,
            client_type,
            context_id: `x-${i}`,
            status: 'idle',
            ownership: 'worker',
            window_id: `w-${i}`,
          })
          if (i >= 700) return
          await connections.connect({ ...client, client_type, instance_id: 'i', actions: ['open', `act-${i % 600}`] })
          await browserWindows.report({ ...client, window_id: `w-${i}` })
        })
        counted = countCommands(host.client)
        router = createObserver({ ...where, client: counted.client })
        // With its first request an observer learns the number of shards.
        await get(router, '/connections?limit=1')
      })
      afterAll(() => facilities?.close())

      it.each(ROUTES)('are few for GET %s', async (path) => {
        counted.reset()
        const { status, body } = await get(router, path)
        expect([200, 404]).toContain(status)
        expect(counted.mostPerShard).toBeLessThanOrEqual(MOST)
        if (body.completeness) expect(body.completeness).toMatchObject({ complete: true, truncated_sources: [] })
      })

      it('list every user once, a page at a time', async () => {
        const seen: string[] = []
        let cursor: string | null = null
        do {
          const query: string = cursor ? `&cursor=${cursor}` : ''
          const { body } = await get(router, `/users?limit=500${query}`)
          expect(body.completeness.complete).toBe(true)
          seen.push(...body.items.map((user: { user_id: string }) => user.user_id))
          cursor = body.next_cursor
        } while (cursor !== null)
        expect(seen).toEqual(Array.from({ length: users }, (_, i) => `u-${i}`).sort())
      })

      it('are one read per shard for the next page of a list', async () => {
        const first = await get(router, '/contexts?limit=20')
        counted.reset()
        const { body } = await get(router, `/contexts?limit=20&cursor=${first.body.next_cursor}`)
        expect(body.items).toHaveLength(20)
        const merged = [1, Array.from({ length: shards }, () => 'EVAL_RO')]
        expect([counted.waves, counted.names]).toEqual(shards === 1 ? [2, ['ZRANGE', 'MGET']] : merged)
      })

      it('are enough for every action, even with concurrent requests', async () => {
        const answers = await Promise.all(
          ['/actions?limit=500', '/users?limit=500', '/browser-windows?limit=500'].map((path) => get(router, path)),
        )
        expect(answers.map(({ status, body }) => [status, body.items.length])).toEqual([
          [200, 500],
          [200, 500],
          [200, 500],
        ])
        expect(answers[0]?.body.items.at(-1)).toMatchObject({
          name: expect.any(String),
          observed_connections: expect.any(Number),
        })
        expect(answers[2]?.body.items.every((window: { worker_count: number }) => window.worker_count === 1)).toBe(true)
      })
    })
  })
