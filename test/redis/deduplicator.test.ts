import { createRedisDeduplicator } from '../../src/redis/deduplicator/facility.js'
import { deduplicatorBattery } from '../contract/deduplicator.js'
import { describeStores } from './matrix.js'

describeStores('the deduplicator in Redis', (kind, place) => {
  // The capacity is that of one shard, so that the battery's three need one.
  deduplicatorBattery(kind, (options) => createRedisDeduplicator({ ...place(), shards: 1, ...options }))
})
