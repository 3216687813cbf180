/** Every battery over every way in: both clients on one server, both on a Cluster with several shards. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { RedisClient } from '../../src/redis/client.js'
import { type Connected, clients, describeRedis, type Server, startCluster, startServer } from './server.js'

/** What a facility of a fresh deployment is made with. */
export interface Place {
  client: RedisClient
  deploymentId: string
  shards: number
}

let deployments = 0

/** Runs `body` once per client and kind of store; `place()` names a deployment that nobody has used yet. */
export function describeStores(
  name: string,
  body: (kind: string, place: () => Place, servers: () => readonly Server[]) => void,
): void {
  describeRedis(name, () => {
    for (const [kind, nodes, shards] of [
      ['node-redis', 1, 1],
      ['ioredis', 1, 1],
      ['node-redis cluster', 3, 5],
      ['ioredis cluster', 3, 5],
    ] as const)
      describe(`over ${kind}`, () => {
        let connected: Connected
        let servers: readonly Server[] = []
        let stop: () => Promise<unknown>
        beforeAll(async () => {
          if (nodes === 1) {
            const server = await startServer()
            stop = server.stop
            servers = [server]
            connected = await clients[kind]([server.port])
          } else {
            const cluster = await startCluster(nodes)
            stop = cluster.stop
            servers = cluster.servers
            connected = await clients[kind](cluster.servers.map(({ port }) => port))
          }
        })
        afterAll(async () => {
          await connected?.close()
          await stop?.()
        })
        const place = () => ({ client: connected.client, deploymentId: `d${++deployments}`, shards })
        body(kind, place, () => servers)
      })
  })
}
