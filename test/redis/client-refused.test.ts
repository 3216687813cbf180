/** Clients and options of a client that a store cannot use are refused by name. */
import { type ClusterOptions, Cluster as IoCluster, Redis } from 'ioredis'
import { createClient, createClientPool, createSentinel } from 'redis'
import { expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import type { RedisClient } from '../../src/redis/store/client.js'

it.each<[what: string, make: () => unknown, error: RegExp]>([
  ['a pool', () => createClientPool(), /a pool of node-redis \(createClientPool\)/],
  [
    'a Sentinel of node-redis',
    () => createSentinel({ name: 'm', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }),
    /a Sentinel of node-redis \(createSentinel\)/,
  ],
  ['a client in legacy mode', () => createClient().legacy(), /legacy mode/],
  ['a transaction', () => createClient().multi(), /pipeline or transaction/],
  ['a pipeline', () => new Redis({ lazyConnect: true }).pipeline(), /pipeline or transaction/],
  ['readonly', () => createClient({ readonly: true }), /"readonly" of the node-redis client/],
  ['readOnly', () => new Redis({ readOnly: true, lazyConnect: true }), /"readOnly" of the ioredis client/],
  ['keyPrefix', () => new Redis({ keyPrefix: 'app:', lazyConnect: true }), /"keyPrefix" of the ioredis client/],
  [
    'keyPrefix of a Cluster',
    () => new IoCluster([], { keyPrefix: 'app:', lazyConnect: true } as ClusterOptions),
    /"keyPrefix" of the ioredis client/,
  ],
  [
    'keyPrefix of the nodes of a Cluster',
    () => new IoCluster([], { redisOptions: { keyPrefix: 'app:' }, lazyConnect: true }),
    /"keyPrefix" of the ioredis client/,
  ],
  ['monitor', () => new Redis({ monitor: true, lazyConnect: true }), /"monitor" of the ioredis client/],
  [
    'a replica behind a Sentinel',
    () => new Redis({ sentinels: [{ host: 'h', port: 1 }], name: 'm', role: 'slave', lazyConnect: true }),
    /"role" of the ioredis client/,
  ],
])('refuses %s by name at construction', (_, make, error) => {
  const client = make() as RedisClient
  expect(() => createRedisFacilities({ client, deploymentId: 'd' })).toThrow(error)
  expect(() => redisComposition({ client, deploymentId: 'd' })).toThrow(error)
})
