/**
 * Runs a battery over a client of the store: node-redis on one server. With `REDIS_CLIENTS=second`, which `npm run test:all`
 * sets, over the other client on a Cluster with several shards; with `others`, which `npm run search` sets, over the other ways.
 */
import { afterAll, beforeAll, describe, expect } from 'vitest'
import type { RedisClient } from '../../src/redis/store/client.js'
import { type Connected, clients, describeRedis, type Server, startCluster, startServer } from './server.js'

/** Options of a facility of a new deployment. */
export interface Place {
  client: RedisClient
  deploymentId: string
  onError?: null
  shards: number
}

const FIRST = 'node-redis'
const OTHERS = ['ioredis', 'node-redis cluster', 'ioredis cluster'] as const
type Kind = typeof FIRST | (typeof OTHERS)[number]
/** Which of them a run takes. */
const CHOSEN: Record<string, readonly Kind[]> = {
  second: ['ioredis cluster'],
  others: ['ioredis', 'node-redis cluster'],
}
const chosen = CHOSEN[process.env.REDIS_CLIENTS ?? ''] ?? [FIRST]

/** Keys that a test has written in the name of another application. */
export const planted = new Set<string>()

/** Returns the keys of deployments that have no end. */
const ENDLESS = `local found, cursor = {}, '0'
repeat
  local page = redis.call('SCAN', cursor, 'MATCH', 'relayscope:{*', 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do if redis.call('PEXPIRETIME', key) == -1 then found[#found + 1] = key end end
until cursor == '0'
return table.concat(found, ' ')`

let deployments = 0

/** Shared by all test files of this process: starting the servers takes longer than most tests. */
const started = new Map<boolean, Promise<readonly Server[]>>()
function startFor(isCluster: boolean): Promise<readonly Server[]> {
  const known = started.get(isCluster)
  if (known) return known
  const servers = isCluster
    ? startCluster().then((cluster) => cluster.servers)
    : startServer().then((server) => [server])
  started.set(isCluster, servers)
  return servers
}

/**
 * Runs `body` once per kind of client; `place()` returns a new deployment.
 * @param others The other ways into a store that show anything else than the contracts do over all of them.
 */
export function describeStores(
  name: string,
  body: (kind: string, place: () => Place, servers: () => readonly Server[]) => void,
  others: readonly Kind[] = OTHERS,
): void {
  describeRedis(name, () => {
    for (const kind of chosen.filter((one) => one === FIRST || others.includes(one)))
      describe(`over ${kind}`, () => {
        const isCluster = kind.endsWith('cluster')
        const shards = isCluster ? 5 : 1
        let servers: readonly Server[]
        let connected: Connected
        beforeAll(async () => {
          servers = await startFor(isCluster)
          await Promise.all(servers.map(({ cli }) => cli('FLUSHALL')))
          connected = await clients[kind](servers.map(({ port }) => port))
        })
        afterAll(async () => {
          await connected?.close()
          // After every suite: whatever it wrote, no key of a deployment stays forever.
          const endless = await Promise.all(servers.map(({ cli }) => cli('EVAL', ENDLESS, '0')))
          expect(endless.flatMap((found) => found.split(/\s+/)).filter((key) => key && !planted.has(key))).toEqual([])
        })
        const place = () => ({ client: connected.client, deploymentId: `d${++deployments}`, shards, onError: null })
        body(kind, place, () => servers)
      })
  })
}
