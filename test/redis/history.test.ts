import { createRedisMessageHistory } from '../../src/redis/history/facility.js'
import { historyBattery } from '../contract/history.js'
import { historySharesBattery } from '../contract/history-shares.js'
import { describeStores } from './matrix.js'

describeStores('the message history in Redis', (kind, place) => {
  // The bound on all messages is that of one shard, and the battery's users are to share it.
  historyBattery(kind, (options) => createRedisMessageHistory({ ...place(), shards: 1, ...options }))
  historySharesBattery(kind, (options) => createRedisMessageHistory({ ...place(), shards: 1, ...options }))
})
