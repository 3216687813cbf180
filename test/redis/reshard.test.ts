import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { createObserver, get } from './router.js'
import { type Connected, clients, describeRedis, type Server, startCluster } from './server.js'

const USERS = Array.from({ length: 40 }, (_, i) => `user-${i}`)

describeRedis('a Cluster whose slots move', () => {
  describe.each(['node-redis cluster', 'ioredis cluster'] as const)('seen over %s', (kind) => {
    let cluster: Awaited<ReturnType<typeof startCluster>>
    let connected: Connected
    beforeAll(async () => {
      cluster = await startCluster()
      connected = await clients[kind](cluster.servers.map(({ port }) => port))
    })
    afterAll(async () => {
      await connected.close()
      await cluster.stop()
    })

    it('is read and written normally after a shard has moved to another node, and returns at worst 503 in between', async () => {
      const where = { client: connected.client, deploymentId: 'moving', commandTimeoutMs: 1_000 }
      // No writes while slots move: a script would find half of its keys on either side.
      const contexts = createRedisContextRegistry({ ...where, shards: 1 })
      const context = { client_id: 'c', client_type: 'web', status: 'idle' } as const
      for (const user_id of USERS) await contexts.report({ ...context, user_id, context_id: `of-${user_id}` })
      const router = createObserver(where)
      const count = async () => {
        const { status, body } = await get(router, '/contexts?limit=100')
        return status === 200 ? body.items.length : status
      }
      // Read by a script, whose keys the store cannot see before it runs.
      const users = async () => {
        const { status, body } = await get(router, '/users?limit=100')
        // Sources without records may answer while those with some do not.
        return status === 200 && body.completeness.complete ? body.items.length : 503
      }
      expect([await count(), await users()]).toEqual([USERS.length, USERS.length])

      const [first] = cluster.servers
      const slot = (await first?.cli('CLUSTER', 'KEYSLOT', '{moving:0}')) as string
      const ids = await Promise.all(cluster.servers.map((server) => server.cli('CLUSTER', 'MYID')))
      const counts = await Promise.all(cluster.servers.map((server) => server.cli('CLUSTER', 'COUNTKEYSINSLOT', slot)))
      const from = counts.findIndex((keys) => keys !== '0')
      const to = (from + 1) % cluster.servers.length
      const [source, target] = [cluster.servers[from] as Server, cluster.servers[to] as Server]
      await target.cli('CLUSTER', 'SETSLOT', slot, 'IMPORTING', ids[from] as string)
      await source.cli('CLUSTER', 'SETSLOT', slot, 'MIGRATING', ids[to] as string)
      for (;;) {
        const keys = (await source.cli('CLUSTER', 'GETKEYSINSLOT', slot, '30')).split('\n').filter(Boolean)
        if (keys.length === 0) break
        await source.cli('MIGRATE', '127.0.0.1', String(target.port), '', '0', '2000', 'KEYS', ...keys)
        expect([USERS.length, 503]).toContain(await count())
        expect([USERS.length, 503]).toContain(await users())
      }
      for (const server of cluster.servers) await server.cli('CLUSTER', 'SETSLOT', slot, 'NODE', ids[to] as string)
      await expect.poll(count).toBe(USERS.length)
      await contexts.report({ ...context, user_id: 'after', context_id: 'of-after' })
      expect([await count(), await users()]).toEqual([USERS.length + 1, USERS.length + 1])
    })
  })
})
