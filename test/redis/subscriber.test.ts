/** A subscriber receives the channels of every shard, over every client. */
import { once } from 'node:events'
import { expect, it } from 'vitest'
import { createStore } from '../../src/redis/store/store.js'
import { openSubscriber } from '../../src/redis/store/subscriber.js'
import { describeStores } from './matrix.js'
import { soon } from './wait-for.js'

/** Longer than a busy machine takes. */
const PATIENT_MS = 60_000

describeStores('a subscriber', (_kind, place) => {
  it('receives messages of every shard, until it unsubscribes', async () => {
    const where = place()
    const store = createStore({ ...where, shards: 4 })
    const signals = new EventTarget()
    const heard: string[] = []
    const subscriber = openSubscriber({
      client: where.client,
      onMessage: (channel, message) => {
        heard.push(`${channel} ${message}`)
        signals.dispatchEvent(new Event(message))
      },
      onLink: () => {},
    })
    for (let shard = 0; shard < 4; shard++) {
      const channel = store.key(shard, 'signals')
      await subscriber.subscribe(channel, PATIENT_MS)
      const arrived = once(signals, `m${shard}`)
      expect(await store.command(['SPUBLISH', channel, `m${shard}`], channel)).toBe(1)
      await arrived
    }
    expect(heard).toEqual([0, 1, 2, 3].map((shard) => `${store.key(shard, 'signals')} m${shard}`))
    await subscriber.unsubscribe(store.key(0, 'signals'), PATIENT_MS)
    expect(await store.command(['SPUBLISH', store.key(0, 'signals'), 'x'], store.key(0, 'signals'))).toBe(0)
    await subscriber.close()
    await subscriber.close()
  })

  it('receives a channel that it subscribes again before its unsubscription is confirmed', async () => {
    const where = place()
    const store = createStore(where)
    const channel = store.key(0, 'signals')
    const heard: string[] = []
    const onMessage = (_: string, message: string) => heard.push(message)
    const subscriber = openSubscriber({ client: where.client, onMessage, onLink: () => {} })
    await subscriber.subscribe(channel, PATIENT_MS)
    await Promise.all([subscriber.unsubscribe(channel, PATIENT_MS), subscriber.subscribe(channel, PATIENT_MS)])
    expect(await store.command(['SPUBLISH', channel, 'x'], channel)).toBe(1)
    await soon(() => expect(heard).toEqual(['x']))
    await subscriber.close()
  })
})
