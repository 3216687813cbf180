import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createStore } from '../../src/redis/store.js'
import { openSubscriber } from '../../src/redis/subscriber.js'
import { type Connected, clients, describeRedis, type Server, startCluster, startServer } from './server.js'

describeRedis('a subscriber', () => {
  let server: Server
  let cluster: Awaited<ReturnType<typeof startCluster>>
  beforeAll(async () => {
    ;[server, cluster] = await Promise.all([startServer(), startCluster()])
  })
  afterAll(async () => {
    await Promise.all([server.stop(), cluster.stop()])
  })
  const single = () => [server.port]
  const nodes = () => cluster.servers.map(({ port }) => port)

  describe.each([
    ['node-redis', single],
    ['ioredis', single],
    ['node-redis cluster', nodes],
    ['ioredis cluster', nodes],
  ] as const)('over %s', (kind, ports) => {
    let connected: Connected
    beforeAll(async () => {
      connected = await clients[kind](ports())
    })
    afterAll(() => connected.close())

    it('hears what is published in every shard, until it unsubscribes', async () => {
      const store = createStore({ client: connected.client, deploymentId: 'sub', shards: 4 })
      const bell = new EventTarget()
      const heard: string[] = []
      const subscriber = openSubscriber({
        client: connected.client,
        onMessage: (channel, message) => {
          heard.push(`${channel} ${message}`)
          bell.dispatchEvent(new Event(message))
        },
        onLink: () => {},
      })
      for (let shard = 0; shard < 4; shard++) {
        const channel = store.key(shard, 'bell')
        await subscriber.subscribe(channel)
        const rung = once(bell, `m${shard}`)
        expect(await store.command(['SPUBLISH', channel, `m${shard}`], channel)).toBe(1)
        await rung
      }
      expect(heard).toEqual([0, 1, 2, 3].map((shard) => `${store.key(shard, 'bell')} m${shard}`))
      await subscriber.unsubscribe(store.key(0, 'bell'))
      expect(await store.command(['SPUBLISH', store.key(0, 'bell'), 'x'], store.key(0, 'bell'))).toBe(0)
      await subscriber.close()
      await subscriber.close()
    })
  })
})
