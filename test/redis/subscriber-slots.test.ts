/** A Cluster of ioredis that becomes ready before it knows its slots, as one does whose node is lost. */
import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { openSubscriber } from '../../src/redis/store/subscriber.js'

/** Like ioredis: a command throws synchronously while its slot is unknown, in its own queue too. */
class Unslotted extends EventEmitter {
  readonly isCluster = true
  status = 'connecting'
  readonly asked: string[] = []
  slots: string[][] = []
  duplicate = () => this
  call() {}
  disconnect() {}
  async connect() {
    this.status = 'ready'
    this.emit('ready')
  }
  ssubscribe(channel: string): Promise<unknown> {
    if (this.status !== 'ready') throw new Error('queued by the client')
    if (this.slots.length === 0) throw new TypeError("Cannot read properties of undefined (reading '0')")
    this.asked.push(channel)
    return Promise.resolve(1)
  }
}

function open(timeoutMs: number) {
  const client = new Unslotted()
  const subscriber = openSubscriber({ client: client as never, onMessage: () => {}, onLink: () => {} })
  return { client, subscribe: () => subscriber.subscribe('signals', timeoutMs) }
}

it('subscribes when the client is ready, not by the client’s own queue', async () => {
  const { client, subscribe } = open(60_000)
  const subscribed = subscribe()
  client.slots = [['a']]
  client.status = 'ready'
  client.emit('ready')
  await subscribed
  expect(client.asked).toEqual(['signals'])
})

it('is unavailable while the client does not know the slot, and keeps nothing of timed-out callers', async () => {
  const { client, subscribe } = open(20)
  await expect(subscribe()).rejects.toMatchObject({ code: 'unavailable' })
  client.status = 'ready'
  client.emit('ready')
  await expect(subscribe()).rejects.toMatchObject({ code: 'unavailable' })
  client.slots = [['a']]
  await subscribe()
  expect(client.asked).toEqual(['signals'])
})

it('connects a lazy client on first use', async () => {
  const { client, subscribe } = open(60_000)
  client.status = 'wait'
  client.slots = [['a']]
  await subscribe()
  expect(client.asked).toEqual(['signals'])
})
