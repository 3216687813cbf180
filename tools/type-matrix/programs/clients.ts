/** Every client of the shared store's table is a `RedisClient` as it is made, without a cast. */
import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis-5'
import { createClient, createCluster } from 'redis'
import { createClient as createClient5, createCluster as createCluster5 } from 'redis-5'
import { createRedisFacilities, type RedisClient, redisComposition, watchLink } from 'relayscope/redis'

const rootNodes = [{ url: 'redis://127.0.0.1' }]
const ofNodeRedis = [createClient(), createClient5(), createCluster({ rootNodes }), createCluster5({ rootNodes })]
const ofIoRedis = [new Redis(), new Redis5(), new Cluster([]), new Cluster5([])]
export const clients: RedisClient[] = [...ofNodeRedis, ...ofIoRedis]

createRedisFacilities({ client: createClient(), deploymentId: 'd' })
createRedisFacilities({ client: createClient({ RESP: 3, socket: { host: 'store' } }), deploymentId: 'd' })
createRedisFacilities({ client: createClient5(), deploymentId: 'd' })
createRedisFacilities({ client: createCluster({ rootNodes }), deploymentId: 'd' })
createRedisFacilities({ client: createCluster5({ rootNodes }), deploymentId: 'd' })
createRedisFacilities({ client: new Redis(), deploymentId: 'd' })
createRedisFacilities({ client: new Redis5(), deploymentId: 'd' })
redisComposition({ client: new Cluster([]), deploymentId: 'd' })
redisComposition({ client: new Cluster5([]), deploymentId: 'd' })
for (const client of ofNodeRedis) watchLink(client)

export async function connected() {
  const client = await createClient()
    .on('error', () => {})
    .connect()
  return redisComposition({ client, deploymentId: 'd' })
}
// @ts-expect-error no client at all
redisComposition({ client: {}, deploymentId: 'd' })
