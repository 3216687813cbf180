/** One connection receives messages for all users of a client. */
import { once } from 'node:events'
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { createRedisEventBus, createRedisFacilities, createRedisSessionRegistry } from '../../src/redis/index.js'
import { listen } from '../../src/redis/store/listener.js'
import { createStore } from '../../src/redis/store/store.js'
import { describeStores } from './matrix.js'
import { clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'

describeStores('a listener', (_kind, place) => {
  it('receives a channel for each subscriber until it unsubscribes', async () => {
    const where = place()
    const store = createStore(where)
    const [channel, other] = [store.key(0, 'signals'), store.key(0, 'other')]
    const publish = (to: string, message: string) => store.command(['SPUBLISH', to, message], to)
    const signals = new EventTarget()
    const part = (name: string) => {
      const listening = listen(store, () => signals.dispatchEvent(new Event(`${name} link`)))
      onTestFinished(() => listening.close())
      return { listening, hear: (message: string) => signals.dispatchEvent(new Event(`${name} ${message}`)) }
    }
    const [a, b] = [part('a'), part('b')]
    await Promise.all([a, b].map(({ listening, hear }) => listening.subscribe(0, channel, hear)))
    await b.listening.subscribe(0, other, b.hear)
    const both = [once(signals, 'a 1'), once(signals, 'b 1')]
    await publish(channel, '1')
    await Promise.all(both)
    await a.listening.close()
    await b.listening.unsubscribe(other)
    expect(await publish(other, '2')).toBe(0)
    const left = once(signals, 'b 3')
    expect(await publish(channel, '3')).toBe(1)
    await left
  })

  it('that receives no probe is reopened, notifies all users, and receives again', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
    onTestFinished(() => void vi.useRealTimers())
    const store = createStore(place())
    let isDeaf = true
    // As if the store had sent it, and it had not come.
    const deaf: typeof store = { ...store, command: async (...given) => (isDeaf ? 1 : store.command(...given)) }
    const told: string[] = []
    const heard: string[] = []
    const parts = ['a', 'b'].map((name) => {
      const listening = listen(deaf, (isUp) => told.push(`${name} ${isUp ? 'up' : 'down'}`))
      onTestFinished(() => listening.close())
      return { listening, name, channel: store.key(0, name) }
    })
    for (const { listening, name, channel } of parts)
      await listening.subscribe(0, channel, (m) => heard.push(`${name} ${m}`))
    const isHearing = () => parts.map(({ listening, channel }) => listening.isHearing(channel))
    expect(isHearing()).toEqual([true, true])
    await soon(async () => {
      await vi.advanceTimersByTimeAsync(1_000)
      // A Cluster reports each of its nodes, too.
      expect(told.slice(told.indexOf('a down'))).toEqual(expect.arrayContaining(['b down', 'a up', 'b up']))
      expect(told.slice(-2)).toEqual(['a up', 'b up'])
    })
    isDeaf = false
    for (const { channel } of parts) expect(await store.command(['SPUBLISH', channel, 'x'], channel)).toBe(1)
    await soon(() => expect(heard.sort()).toEqual(['a x', 'b x']))
    await soon(async () => {
      await vi.advanceTimersByTimeAsync(1_000)
      expect(isHearing()).toEqual([true, true])
    })
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
    sessions.watch?.('missing', () => {})
    await facilities.rpc.open({ user_id: 'u', client_id: 'c', action: 'a' })
    const isListening = async () =>
      (
        await facilities.dispatcher.inspector.listNodes(
          { limit: 1, cursor: null },
          { signal: new AbortController().signal },
        )
      ).items[0]?.mailbox_listener_alive
    await soon(async () => expect(await isListening()).toBe(true))
    // On a busy machine, one that received nothing for seconds is replaced by another.
    await soon(async () => expect(await listeners()).toHaveLength(1))
    await Promise.all([bus.close(), sessions.disconnect()])
    await soon(async () => expect(await listeners()).toHaveLength(1))
    await facilities.close()
    await soon(async () => expect(await listeners()).toEqual([]))
  })
})
