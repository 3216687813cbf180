import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Context } from '../../src/internal/contract/contexts.js'
import type { Inspectors } from '../../src/internal/contract/families.js'
import type { Page, PageQuery } from '../../src/internal/contract/page.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { shardOf } from '../../src/redis/store/keys.js'
import { ASK, FIRST, walk } from '../contract/clock.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, startCluster } from './server.js'

const SHARDS = 6
const USERS = Array.from({ length: 24 }, (_, i) => `user-${i}`)

/** Returns the node of three that has the slot, which `CLUSTER KEYSLOT` returns. */
const slotOwner = (slot: number) => Math.floor(slot / Math.ceil(16_384 / 3))

describeRedis('a Cluster that has lost a node', () => {
  describe.each(['node-redis cluster', 'ioredis cluster'] as const)('seen over %s', (kind) => {
    let cluster: Awaited<ReturnType<typeof startCluster>>
    let connected: Connected
    let router: Router
    let inspectors: Inspectors
    let lost: number[]
    beforeAll(async () => {
      cluster = await startCluster(3, ['--cluster-require-full-coverage', 'no'])
      connected = await clients[kind](cluster.servers.map(({ port }) => port))
      const where = { client: connected.client, deploymentId: 'lossy' }
      const { contexts, connections, close } = createRedisFacilities({ ...where, shards: SHARDS })
      for (const user_id of USERS) {
        const client = { user_id, client_id: 'c', client_type: 'web' as const }
        const window_id = `w-${user_id}`
        await contexts.report({
          ...client,
          context_id: `of-${user_id}`,
          status: 'idle',
          ownership: 'worker',
          window_id,
        })
        await connections.connect({ ...client, instance_id: 'i', actions: ['open'] })
      }
      await close()
      const slots = await Promise.all(
        Array.from({ length: SHARDS }, (_, shard) => cluster.servers[0]?.cli('CLUSTER', 'KEYSLOT', `{lossy:${shard}}`)),
      )
      const owners = slots.map((slot) => slotOwner(Number(slot)))
      // The number of shards is in shard 0: like an operator's, this observer knows it already.
      router = createObserver({ ...where, commandTimeoutMs: 800 })
      expect((await get(router, '/contexts')).status).toBe(200)
      inspectors = redisComposition({ ...where, commandTimeoutMs: 800, onError: null }).inspectors
      await inspectors.contextRegistry?.listContexts({}, FIRST, ASK)
      const victim = owners.find((owner) => owner !== owners[0]) as number
      lost = owners.flatMap((owner, shard) => (owner === victim ? [shard] : []))
      await cluster.servers[victim]?.kill()
    })
    afterAll(async () => {
      await connected.close()
      await cluster.stop()
    })
    const isLost = (userId: string) => lost.includes(shardOf(userId, SHARDS))

    it('lists the reachable users, and names every truncated source', async () => {
      const { status, body } = await get(router, '/users?limit=100')
      expect(status).toBe(200)
      expect(body.items.map((user: { user_id: string }) => user.user_id)).toEqual(
        USERS.filter((id) => !isLost(id)).sort(),
      )
      expect(body.completeness).toMatchObject({ complete: false })
      expect(body.completeness.truncated_sources).toContain('context_registry')
    })

    it('returns truncated counts of the reachable shards', async () => {
      const reached = USERS.filter((id) => !isLost(id)).length
      const contexts = await get(router, '/contexts/count')
      expect(contexts).toMatchObject({ status: 200, body: { total: reached, completeness: { complete: false } } })
      const actions = await get(router, '/actions')
      expect(actions).toMatchObject({ status: 200, body: { items: [{ observed_connections: reached }] } })
      expect(actions.body.completeness).toMatchObject({ complete: false, truncated_sources: ['registry'] })
    })

    it('omits windows that the lost shard may contain, and marks the result as truncated', async () => {
      const there = USERS.find((id) => !isLost(id)) as string
      const gone = USERS.find(isLost) as string
      const windows = [there, gone].map((user_id) => ({ window_id: `w-${user_id}`, user_id }))
      const ids = windows.map(({ window_id }) => window_id)
      const owned = await inspectors.contextRegistry?.countByWindow?.(ids, ASK, windows)
      expect(owned?.map(({ window_id }) => window_id)).toEqual([`w-${there}`])
      expect(owned?.truncated).toBe(true)
      const anybodys = await inspectors.contextRegistry?.countByWindow?.(ids, ASK)
      expect([anybodys?.length, anybodys?.truncated]).toEqual([0, true])
    })

    it.each([
      'newest',
      'oldest',
    ])('returns 503 for a list of all shards, the %s first, because the order is unknown', async (order) => {
      const { status, body } = await get(router, `/contexts?order=${order}`)
      expect([status, body.code]).toEqual([503, 'inspector_unavailable'])
    })

    it('walks a list without an order up to the lost shard, and returns 503 for the rest', async () => {
      const { contextRegistry } = inspectors
      const seen: string[] = []
      const list = (page: PageQuery) => contextRegistry?.listContexts({}, page, ASK)
      await expect(
        walk(async (page) => {
          const found = (await list(page)) as Page<Context>
          seen.push(...found.items.map(({ user_id }) => user_id))
          return found
        }, 3),
      ).rejects.toMatchObject({ code: 'unavailable' })
      const before = USERS.filter((id) => shardOf(id, SHARDS) < Math.min(...lost))
      expect(seen.sort()).toEqual(before.sort())
    })

    it('returns a user whose shard is reachable, and 503 if the user is unknown', async () => {
      const there = USERS.find((id) => !isLost(id)) as string
      const gone = USERS.find(isLost) as string
      expect((await get(router, `/users/${there}/summary`)).body).toMatchObject({ observed_contexts: 1 })
      expect((await get(router, `/contexts/of-${there}`)).status).toBe(200)
      expect((await get(router, `/contexts?user_id=${there}`)).status).toBe(200)
      for (const path of [`/contexts/of-${gone}`, `/contexts?user_id=${gone}`, `/users/${gone}/summary`])
        expect((await get(router, path)).status).toBe(503)
    })
  })
})
