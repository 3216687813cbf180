import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Inspectors } from '../../src/contract/families.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { shardOf } from '../../src/redis/store/keys.js'
import { ASK, FIRST } from '../contract/clock.js'
import { createObserver, get, type Router } from './router.js'
import { type Connected, clients, describeRedis, startCluster } from './server.js'

const SHARDS = 6
const USERS = Array.from({ length: 24 }, (_, i) => `user-${i}`)

/** What `CLUSTER KEYSLOT` answers, and with it the node of three that has the slot. */
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
      // The number of shards is in shard 0: an observer that knows it already is what an operator has.
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

    it('lists the users that can be reached, and names every source that was cut', async () => {
      const { status, body } = await get(router, '/users?limit=100')
      expect(status).toBe(200)
      expect(body.items.map((user: { user_id: string }) => user.user_id)).toEqual(
        USERS.filter((id) => !isLost(id)).sort(),
      )
      expect(body.completeness).toMatchObject({ complete: false })
      expect(body.completeness.truncated_sources).toContain('context_registry')
    })

    it('counts what can be reached, and says so', async () => {
      const reached = USERS.filter((id) => !isLost(id)).length
      const contexts = await get(router, '/contexts/count')
      expect(contexts).toMatchObject({ status: 200, body: { total: reached, completeness: { complete: false } } })
      const actions = await get(router, '/actions')
      expect(actions).toMatchObject({ status: 200, body: { items: [{ observed_connections: reached }] } })
      expect(actions.body.completeness).toMatchObject({ complete: false, truncated_sources: ['registry'] })
    })

    it('counts in no window of which it may have lost a part, and says so', async () => {
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

    it('walks a list up to the lost shard, and answers 503 for the rest', async () => {
      let cursor: string | null = null
      const seen: string[] = []
      for (;;) {
        const page = await get(router, `/contexts?limit=3${cursor ? `&cursor=${cursor}` : ''}`)
        if (page.status !== 200) {
          expect([page.status, page.body.code]).toEqual([503, 'inspector_unavailable'])
          break
        }
        seen.push(...page.body.items.map((context: { user_id: string }) => context.user_id))
        expect(page.body.has_more).toBe(true)
        cursor = page.body.next_cursor
      }
      const before = USERS.filter((id) => shardOf(id, SHARDS) < Math.min(...lost))
      expect(seen.sort()).toEqual(before.sort())
    })

    it('answers for a user whose shard is there, and 503 where nobody can tell', async () => {
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
