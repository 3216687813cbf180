import { expect, it } from 'vitest'
import { CLAIM_MESSAGE, createRedisDeduplicator } from '../../src/redis/deduplicator/facility.js'
import { runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { createClock } from '../contract/clock.js'
import { deduplicatorBattery } from '../contract/deduplicator.js'
import { describeStores } from './matrix.js'
import { createObserver, get } from './router.js'

describeStores('the deduplicator in Redis', (kind, place) => {
  // The capacity is that of one shard, so that the battery's three need one.
  deduplicatorBattery(kind, (options) => createRedisDeduplicator({ ...place(), shards: 1, ...options }))

  it('grants an expired claim again, even if many older ones were not swept', async () => {
    const clock = createClock()
    const dedup = createRedisDeduplicator({ ...place(), shards: 1, ttlMs: 1_000, now: clock.now })
    const claim = (message_id: string) => dedup.claim({ user_id: 'ann', message_id })
    await Promise.all(Array.from({ length: 200 }, (_, n) => claim(`a${n}`)))
    await claim('z')
    clock.advance(999)
    expect(await claim('z')).toBe(false)
    clock.advance(1)
    expect([await claim('z'), await claim('z')]).toEqual([true, false])
  })

  it('returns the first result for a claim that arrives twice, and refuses any other', async () => {
    const store = createStore({ ...place(), shards: 1 })
    const claim = (attempt: string) =>
      runScript(store, CLAIM_MESSAGE, 0, { attempt, user: 'ann', message: 'm', ttl: 60_000, capacity: 10 })
    expect([await claim('x'), await claim('x'), await claim('y'), await claim('x')]).toEqual([true, true, false, true])
  })

  it('has the capacity of all shards after the first claim in one of them', async () => {
    const where = place()
    const node = createRedisDeduplicator({ ...where, shards: 6, capacity: 10 })
    const observer = createObserver({ ...where, shards: 6 })
    const capacity = async () => (await get(observer, '/deduplicator/summary')).body.capacity
    expect(await capacity()).toBeNull()
    await node.claim({ user_id: 'ann', message_id: 'm' })
    expect(await capacity()).toBe(60)
  })
})
