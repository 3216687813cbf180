/** A subscriber hears the channels of every shard, over every client. */
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { createStore } from '../../src/redis/store/store.js'
import { openSubscriber } from '../../src/redis/store/subscriber.js'
import { describeStores } from './matrix.js'

describeStores('a subscriber', (_kind, place) => {
  it('hears what is published in every shard, until it unsubscribes', async () => {
    const where = place()
    const store = createStore({ ...where, shards: 4 })
    const bell = new EventTarget()
    const heard: string[] = []
    const subscriber = openSubscriber({
      client: where.client,
      onMessage: (channel, message) => {
        heard.push(`${channel} ${message}`)
        bell.dispatchEvent(new Event(message))
      },
      onLink: () => {},
    })
    for (let shard = 0; shard < 4; shard++) {
      const channel = store.key(shard, 'bell')
      await subscriber.subscribe(channel)
      const rung = once(bell, `m${shard}`)
      expect(await store.command(['SPUBLISH', channel, `m${shard}`], channel)).toBe(1)
      await rung
    }
    expect(heard).toEqual([0, 1, 2, 3].map((shard) => `${store.key(shard, 'bell')} m${shard}`))
    await subscriber.unsubscribe(store.key(0, 'bell'))
    expect(await store.command(['SPUBLISH', store.key(0, 'bell'), 'x'], store.key(0, 'bell'))).toBe(0)
    await subscriber.close()
    await subscriber.close()
  })
})
