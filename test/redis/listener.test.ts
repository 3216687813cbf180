/** One connection hears for all that share a client, whoever comes and goes. */
import { once } from 'node:events'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { createRedisEventBus, createRedisFacilities, createRedisSessionRegistry } from '../../src/redis/index.js'
import { listen } from '../../src/redis/store/listener.js'
import { createStore } from '../../src/redis/store/store.js'
import { describeStores } from './matrix.js'
import { clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './soon.js'

describeStores('a listener', (_kind, place) => {
  it('hears a channel for each that asked for it, until that one ends', async () => {
    const where = place()
    const store = createStore(where)
    const [channel, other] = [store.key(0, 'bell'), store.key(0, 'other')]
    const publish = (to: string, message: string) => store.command(['SPUBLISH', to, message], to)
    const bell = new EventTarget()
    const part = (name: string) => {
      const listening = listen(where.client, () => bell.dispatchEvent(new Event(`${name} link`)))
      onTestFinished(() => listening.close())
      return { listening, hear: (message: string) => bell.dispatchEvent(new Event(`${name} ${message}`)) }
    }
    const [a, b] = [part('a'), part('b')]
    await Promise.all([a, b].map(({ listening, hear }) => listening.subscribe(channel, hear)))
    await b.listening.subscribe(other, b.hear)
    const both = [once(bell, 'a 1'), once(bell, 'b 1')]
    await publish(channel, '1')
    await Promise.all(both)
    await a.listening.close()
    await b.listening.unsubscribe(other)
    expect(await publish(other, '2')).toBe(0)
    const left = once(bell, 'b 3')
    expect(await publish(channel, '3')).toBe(1)
    await left
  })

  it('that is opened anew tells all of it, and hears them all again', async () => {
    const where = place()
    const store = createStore(where)
    const told: string[] = []
    const heard: string[] = []
    const parts = ['a', 'b'].map((name) => {
      const listening = listen(where.client, (isUp) => told.push(`${name} ${isUp ? 'up' : 'down'}`))
      onTestFinished(() => listening.close())
      return { listening, name, channel: store.key(0, name) }
    })
    const [first] = parts
    for (const { listening, name, channel } of parts)
      await listening.subscribe(channel, (m) => heard.push(`${name} ${m}`))
    first?.listening.renew()
    await first?.listening.renewed()
    // A Cluster says of each of its nodes that it is there.
    expect(new Set(told)).toEqual(new Set(['a down', 'b down', 'a up', 'b up']))
    expect(told.slice(-2)).toEqual(['a up', 'b up'])
    for (const { channel } of parts) expect(await store.command(['SPUBLISH', channel, 'x'], channel)).toBe(1)
    await soon(() => expect(heard.sort()).toEqual(['a x', 'b x']))
  })
})

describeRedis('a node', () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server?.stop())

  it.each([
    'node-redis',
    'ioredis',
  ] as const)('with all its facilities listens on one connection of %s', async (kind) => {
    const { client, close } = await clients[kind]([server.port])
    onTestFinished(close)
    const shared = { client, deploymentId: `one-${kind}` }
    const listeners = async () =>
      String(await server.cli('CLIENT', 'LIST', 'TYPE', 'pubsub'))
        .split('\n')
        .filter(Boolean)
    const facilities = createRedisFacilities(shared)
    const bus = createRedisEventBus(shared)
    const sessions = createRedisSessionRegistry(shared)
    bus.subscribe('t')
    await bus.prepare('t')
    sessions.watch?.('nobody', () => {})
    await facilities.rpc.open({ user_id: 'u', client_id: 'c', action: 'a' })
    const isListening = async () =>
      (
        await facilities.dispatcher.inspector.listNodes(
          { limit: 1, cursor: null },
          { signal: new AbortController().signal },
        )
      ).items[0]?.mailbox_listener_alive
    await soon(async () => expect(await isListening()).toBe(true))
    expect(await listeners()).toHaveLength(1)
    await Promise.all([bus.close(), sessions.disconnect()])
    expect(await listeners()).toHaveLength(1)
    await facilities.close()
    await soon(async () => expect(await listeners()).toEqual([]))
  })
})
