/** Every battery over every way in: both clients on one server, both on a Cluster with several shards. */
import { afterAll, beforeAll, describe } from 'vitest'
import type { RedisClient } from '../../src/redis/store/client.js'
import { type Connected, clients, describeRedis, type Server, startCluster, startServer } from './server.js'

/** What a facility of a fresh deployment is made with. */
export interface Place {
  client: RedisClient
  deploymentId: string
  onError?: null
  shards: number
}

let deployments = 0

/** For all that this process runs, one file after the other: to start them takes longer than most of what they are asked. */
let started: Promise<{ server: Server; nodes: readonly Server[] }> | undefined
async function start() {
  const [server, cluster] = await Promise.all([startServer(), startCluster()])
  return { server, nodes: cluster.servers }
}

/** Runs `body` once per client and kind of store; `place()` names a deployment that nobody has used yet. */
export function describeStores(
  name: string,
  body: (kind: string, place: () => Place, servers: () => readonly Server[]) => void,
): void {
  describeRedis(name, () => {
    let server: Server
    let cluster: readonly Server[]
    beforeAll(async () => {
      started ??= start()
      ;({ server, nodes: cluster } = await started)
      await Promise.all([server, ...cluster].map(({ cli }) => cli('FLUSHALL')))
    })
    const single = () => [server]
    const nodes = () => cluster

    for (const [kind, servers, shards] of [
      ['node-redis', single, 1],
      ['ioredis', single, 1],
      ['node-redis cluster', nodes, 5],
      ['ioredis cluster', nodes, 5],
    ] as const)
      describe(`over ${kind}`, () => {
        let connected: Connected
        beforeAll(async () => {
          connected = await clients[kind](servers().map(({ port }) => port))
        })
        afterAll(() => connected?.close())
        const place = () => ({ client: connected.client, deploymentId: `d${++deployments}`, shards, onError: null })
        body(kind, place, servers)
      })
  })
}
