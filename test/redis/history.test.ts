import { expect, it } from 'vitest'
import { createRedisMessageHistory } from '../../src/redis/history/facility.js'
import { strings } from '../../src/redis/store/reply.js'
import { createStore } from '../../src/redis/store/store.js'
import { historyBattery } from '../contract/history.js'
import { historySharesBattery } from '../contract/history-shares.js'
import { describeStores } from './matrix.js'

describeStores('the message history in Redis', (kind, place) => {
  // The bound on all messages is that of one shard, and the battery's users are to share it.
  historyBattery(kind, (options) => createRedisMessageHistory({ ...place(), shards: 1, ...options }))
  historySharesBattery(kind, (options) => createRedisMessageHistory({ ...place(), shards: 1, ...options }))

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
