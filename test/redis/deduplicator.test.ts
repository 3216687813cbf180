import { expect, it } from 'vitest'
import { createRedisDeduplicator } from '../../src/redis/deduplicator/facility.js'
import { deduplicatorBattery } from '../contract/deduplicator.js'
import { describeStores } from './matrix.js'
import { createObserver, get } from './router.js'

describeStores('the deduplicator in Redis', (kind, place) => {
  // The capacity is that of one shard, so that the battery's three need one.
  deduplicatorBattery(kind, (options) => createRedisDeduplicator({ ...place(), shards: 1, ...options }))

  it('has the capacity of all shards as soon as one of them has remembered something', async () => {
    const where = place()
    const node = createRedisDeduplicator({ ...where, shards: 6, capacity: 10 })
    const observer = createObserver({ ...where, shards: 6 })
    const capacity = async () => (await get(observer, '/deduplicator/summary')).body.capacity
    expect(await capacity()).toBeNull()
    await node.claim({ user_id: 'ann', message_id: 'm' })
    expect(await capacity()).toBe(60)
  })
})
