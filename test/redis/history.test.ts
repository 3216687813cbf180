import { expect, it } from 'vitest'
import { createRedisMessageHistory } from '../../src/redis/history/facility.js'
import { strings } from '../../src/redis/store/reply.js'
import { createStore } from '../../src/redis/store/store.js'
import { ASK, createClock } from '../contract/clock.js'
import { historyBattery } from '../contract/history.js'
import { historySharesBattery } from '../contract/history-shares.js'
import { describeStores } from './matrix.js'

describeStores('the message history in Redis', (kind, place) => {
  // The bound on all messages is that of one shard, and the battery's users are to share it.
  historyBattery(kind, (options) => createRedisMessageHistory({ ...place(), shards: 1, ...options }))
  historySharesBattery(kind, (options) => createRedisMessageHistory({ ...place(), shards: 1, ...options }))

  it(`returns the newest messages of a stream that several users append to, over ${kind}`, async () => {
    const clock = createClock()
    const history = createRedisMessageHistory({ ...place(), now: clock.now })
    const users = ['ann', 'bob', 'cyd', 'dan', 'eve', 'fay', 'gus']
    const stream = 'users/ann/notes'
    const about = { stream, client_id: 'c', instance_id: 'i', kind: 'event' as const, payload: null }
    const appended: string[] = []
    for (let n = 0; n < 20; n++) {
      // Alternates between the users, with some repetitions.
      const user_id = users[(n * n) % users.length] as string
      const { message_id } = await history.append({ ...about, user_id, message_id: `m${n}` })
      appended.push(message_id)
      clock.advance(1)
    }
    for (const limit of [1, 2, 5, 19, 20, 100]) {
      const { items, truncated } = await history.inspector.readMessages({ stream, limit }, ASK)
      expect(items.map(({ message_id }) => message_id)).toEqual(appended.slice(-limit))
      expect(truncated).toBe(limit < 20)
    }
  })

  it(`keeps the messages of one user in sequence order, whatever their times are, over ${kind}`, async () => {
    const clock = createClock()
    const history = createRedisMessageHistory({ ...place(), now: clock.now })
    const about = { user_id: 'ann', client_id: 'c', instance_id: 'i', kind: 'event' as const, payload: null }
    for (const by of [0, -5_000, 1]) {
      clock.advance(by)
      await history.append({ ...about, stream: 'users/ann/notes', message_id: `m${by}` })
    }
    const { items } = await history.inspector.readMessages({ stream: 'users/ann/notes', limit: 9 }, ASK)
    expect(items.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
  })

  it(`remembers a bounded number of streams that have emptied, over ${kind}`, async () => {
    const where = { ...place(), shards: 1 }
    const history = createRedisMessageHistory({ ...where, maxMessages: 2 })
    const store = createStore(where)
    const about = { user_id: 'ann', client_id: 'c', instance_id: 'i', kind: 'event' as const, payload: null }
    for (let n = 0; n < 7; n++) await history.append({ ...about, message_id: 'm', stream: `users/ann/s${n}` })
    const last = store.key(0, 'emptied', 'last')
    const remembered = strings(await store.command(['HKEYS', last], last))
    // Five have emptied; the bound is that of the messages, and the oldest are forgotten first.
    expect(remembered.sort()).toEqual(['users/ann/s3', 'users/ann/s4'])
  })
})
