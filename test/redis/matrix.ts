/**
 * Runs a battery over the ways into a store: node-redis on one server and ioredis on a Cluster with several shards. With
 * `REDIS_CLIENTS=all`, which `npm run test:all` sets, also over the other client on each.
 */
import { afterAll, beforeAll, describe } from 'vitest'
import type { RedisClient } from '../../src/redis/store/client.js'
import { type Connected, clients, describeRedis, type Server, startCluster, startServer } from './server.js'

/** Options of a facility of a new deployment. */
export interface Place {
  client: RedisClient
  deploymentId: string
  onError?: null
  shards: number
}

const KINDS = ['node-redis', 'ioredis', 'node-redis cluster', 'ioredis cluster'] as const
const kinds = process.env.REDIS_CLIENTS === 'all' ? KINDS : (['node-redis', 'ioredis cluster'] as const)

let deployments = 0

/** Shared by all test files of this process: starting the servers takes longer than most tests. */
let started: Promise<{ server: Server; nodes: readonly Server[] }> | undefined
async function start() {
  const [server, cluster] = await Promise.all([startServer(), startCluster()])
  return { server, nodes: cluster.servers }
}

/** Runs `body` once per kind of client; `place()` returns a new deployment. */
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

    for (const kind of kinds)
      describe(`over ${kind}`, () => {
        const isCluster = kind.endsWith('cluster')
        const servers = () => (isCluster ? cluster : [server])
        const shards = isCluster ? 5 : 1
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
