/** Settings of a store that a node reports when it starts, and an observer with its first list of sources. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { SourceRow } from '../../src/internal/diagnostics/sources.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createObserver, get } from './router.js'
import { clients, describeRedis, startCluster, startServer } from './server.js'
import { soon } from './wait-for.js'

describeRedis('the settings of a store', () => {
  it('are reported once by a node and an observer if the store evicts keys', async () => {
    const server = await startServer({ args: ['--maxmemory-policy', 'allkeys-lru'] })
    onTestFinished(() => server.stop())
    const { client, close } = await clients.ioredis([server.port])
    onTestFinished(close)
    const errors: unknown[] = []
    const store = { client, deploymentId: 'd', onError: (error: unknown) => void errors.push(error) }
    const facilities = createRedisFacilities(store)
    const evicts = { name: 'StoreWarning', message: expect.stringMatching(/maxmemory-policy allkeys-lru.*noeviction/) }
    await soon(() => expect(errors).toMatchObject([evicts]))
    await facilities.close()
    const router = createObserver(store)
    for (let n = 0; n < 2; n++) {
      const { body } = await get(router, '/sources')
      const codes = body.items.map(({ warnings }: SourceRow) => warnings?.map(({ code }) => code))
      expect(new Set(codes.map(String))).toEqual(new Set(['store_evicts,store_not_persistent']))
    }
    await soon(() => expect(errors).toMatchObject([evicts, evicts]))
    const { items } = (await get(router, '/findings')).body
    expect(items).toMatchObject([{ kind: 'store_evicts', subject: { source: 'registry' } }])
  })

  describe('of a Cluster', () => {
    it.each([
      'node-redis cluster',
      'ioredis cluster',
    ] as const)('are reported to a node with fewer shards than masters, over %s', async (kind) => {
      const cluster = await startCluster()
      onTestFinished(() => cluster.stop())
      const { client, close } = await clients[kind](cluster.servers.map(({ port }) => port))
      onTestFinished(close)
      const errors: unknown[] = []
      const onError = (error: unknown) => void errors.push(error)
      const enough = createRedisFacilities({ client, deploymentId: 'enough', shards: 3, onError: null })
      const few = createRedisFacilities({ client, deploymentId: 'few', onError })
      await soon(() => expect(errors).toMatchObject([{ message: expect.stringMatching(/1 shard, .* 3 masters/) }]))
      await Promise.all([enough.close(), few.close()])
    })
  })
})
