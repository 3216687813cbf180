/** The event bus over a shared store: the battery, two nodes of one deployment, and what happens when the link is lost. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { SiteEventBus } from '../../src/internal/contract/event-bus.js'
import { createRedisEventBus } from '../../src/redis/event-bus/facility.js'
import { keyOf, shardPrefix } from '../../src/redis/store/keys.js'
import { BadRow } from '../../src/redis/table/rows.js'
import { collect, dataOf, event, eventBusBattery } from '../contract/event-bus.js'
import { describeStores } from './matrix.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

describeStores('the event bus in Redis', (kind, place) => {
  eventBusBattery(kind, async (options) => {
    const bus = createRedisEventBus({ ...place(), ...options })
    const settled = async () => void (await Promise.all(['t', 'a', 'b'].map((topic) => bus.prepare(topic))))
    return { bus, delivered: settled, close: async () => bus.close() }
  })

  describe(`two nodes over ${kind}`, () => {
    const buses: SiteEventBus[] = []
    afterEach(async () => {
      await Promise.all(buses.splice(0).map((bus) => bus.close()))
    })

    it('deliver each event to the subscriptions of both, in one order and with one count', async () => {
      const options = place()
      const [a, b] = [createRedisEventBus(options), createRedisEventBus(options)]
      buses.push(a, b)
      const readers = [a.subscribe('t'), b.subscribe('t'), b.subscribe('t')]
      await Promise.all([a.prepare('t'), b.prepare('t')])
      expect(await a.publish('t', event(1))).toBe(1)
      expect(await b.publish('t', event(2))).toBe(2)
      await a.publish('t', event(3))
      for (const reader of readers) {
        expect(dataOf(await collect(reader, 3))).toEqual([1, 2, 3])
        expect(reader.position.seq).toBe(3)
      }
      expect(new Set(readers.map(({ position }) => position.epoch)).size).toBe(1)
    })

    it('publish an event once that both get at the same time, and return that to one of them', async () => {
      const options = place()
      const [a, b] = [createRedisEventBus(options), createRedisEventBus(options)]
      buses.push(a, b)
      const readers = [a.subscribe('t'), b.subscribe('t')]
      await Promise.all([a.prepare('t'), b.prepare('t')])
      const both = await Promise.all(
        Array.from({ length: 50 }, (_, n) => Promise.all([a.publishOnce('t', event(n)), b.publishOnce('t', event(n))])),
      )
      for (const answers of both) expect(answers.filter((answer) => answer === null)).toHaveLength(1)
      const [first, second] = await Promise.all(readers.map((reader) => collect(reader, 50)))
      expect(first).toEqual(second)
      expect(dataOf(first ?? []).sort((x, y) => Number(x) - Number(y))).toEqual(Array.from({ length: 50 }, (_, n) => n))
      expect(readers.map(({ position, pending }) => [position.seq, pending])).toEqual([
        [50, 0],
        [50, 0],
      ])
    })

    it('report the same position to a viewer that moves from one to the other', async () => {
      const options = place()
      const [a, b] = [createRedisEventBus(options), createRedisEventBus(options)]
      buses.push(a, b)
      await b.prepare('t')
      for (let n = 1; n <= 20; n++) await a.publish('t', event(n))
      await Promise.all([a.prepare('t'), b.prepare('t')])
      expect(b.subscribe('t').position).toEqual(a.subscribe('t').position)
      expect(b.subscribe('t').position.seq).toBe(20)
    })

    it('keep topics of other deployments apart', async () => {
      const [a, b] = [createRedisEventBus(place()), createRedisEventBus(place())]
      buses.push(a, b)
      const reader = b.subscribe('t')
      await b.prepare('t')
      await a.publish('t', event(1))
      await b.publish('t', event(2))
      expect(dataOf(await collect(reader, 1))).toEqual([2])
    })
  })
})

describeRedis('the connection of an event bus', () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer()
  })
  afterAll(() => server.stop())

  describe.each(['node-redis', 'ioredis'] as const)('over %s', (kind) => {
    let connected: Connected
    let deployments = 0
    let buses: SiteEventBus[] = []
    let reported: unknown[] = []
    beforeAll(async () => {
      connected = await clients[kind]([server.port])
    })
    afterEach(async () => {
      await Promise.all(buses.map((bus) => bus.close()))
      buses = []
      reported = []
    })
    afterAll(() => connected.close())

    const open = (deploymentId: string, client = connected.client) => {
      const bus = createRedisEventBus({ client, deploymentId, onError: (error) => reported.push(error) })
      buses.push(bus)
      return bus
    }

    it('that is down for a while appears as a gap of exactly the missed events', async () => {
      const id = `lost-${kind}-${++deployments}`
      const bus = open(id)
      const reader = bus.subscribe('t')
      await bus.prepare('t')
      await bus.publish('t', event(1))
      expect(dataOf(await collect(reader, 1))).toEqual([1])
      // What another node publishes between the loss of our link and its return.
      const key = `relayscope:{${id}:0}:bus:topic:t`
      await server.cli('HINCRBY', key, 'seq', '4')
      await server.cli('CLIENT', 'KILL', 'TYPE', 'pubsub')
      expect(dataOf(await collect(reader, 1))).toEqual([
        { type: 'gap', reason: 'link_lost', dropped: 4, first_seq: 2, last_seq: 5 },
      ])
      await bus.publish('t', event(6))
      expect(await collect(reader, 1)).toMatchObject([{ type: 'event', event: { seq: 6 } }])
    })

    it('that receives nothing although it is connected is detected', async () => {
      const id = `deaf-${kind}-${++deployments}`
      const bus = open(id)
      const reader = bus.subscribe('t')
      await bus.prepare('t')
      // An event that was counted and never came.
      await server.cli('HINCRBY', `relayscope:{${id}:0}:bus:topic:t`, 'seq', '3')
      expect(dataOf(await collect(reader, 1))).toEqual([
        { type: 'gap', reason: 'link_lost', dropped: 3, first_seq: 1, last_seq: 3 },
      ])
      await bus.prepare('t')
      await bus.publish('t', event(4))
      expect(dataOf(await collect(reader, 1))).toEqual([4])
    })

    it.each([
      ['went back', (key: string) => server.cli('HSET', key, 'seq', '0')],
      ['forgot the topic', (key: string) => server.cli('DEL', key)],
    ])('to a store that %s leads to a new epoch, and a gap of unknown size', async (_, lose) => {
      const id = `back-${kind}-${++deployments}`
      const bus = open(id)
      const reader = bus.subscribe('t')
      await bus.prepare('t')
      for (let n = 1; n <= 3; n++) await bus.publish('t', event(n))
      expect(dataOf(await collect(reader, 3))).toEqual([1, 2, 3])
      const { epoch } = reader.position
      await lose(`relayscope:{${id}:0}:bus:topic:t`)
      await bus.publish('t', event(4))
      expect(dataOf(await collect(reader, 2))).toEqual([
        { type: 'gap', reason: 'link_lost', dropped: null, first_seq: null, last_seq: null },
        4,
      ])
      expect(reader.position.epoch).not.toBe(epoch)
      expect(reader.position.seq).toBe(1)
    })

    it('treats an invalid event as a gap, and reports it', async () => {
      const id = `hostile-${kind}-${++deployments}`
      const bus = open(id)
      const reader = bus.subscribe('t')
      await bus.prepare('t')
      const channel = `relayscope:{${id}:0}:bus:on:t`
      const { epoch } = reader.position
      const uncountable = ['9007199254740992', '9999999999999999'].map((seq) => `${epoch}\n${seq}\n{"name":"x"}`)
      const { published_at: _, ...undated } = event(2)
      const bad = [{ seq: 1 }, undated, { ...undated, published_at: 'yesterday' }]
      const events = bad.map((given, i) => `${epoch}\n${i + 1}\n${JSON.stringify(given)}`)
      const messages = ['', 'x', ...uncountable, 'a\rb\n1\n{"name":"x"}', ...events]
      // At once, so that the bus cannot compare its position with the store's in between.
      const script = `for _, message in ipairs(ARGV) do redis.call('SPUBLISH', KEYS[1], message) end redis.call('HSET', KEYS[2], 'seq', 3)`
      await server.cli('EVAL', script, '2', channel, `relayscope:{${id}:0}:bus:topic:t`, ...messages)
      await bus.publish('t', event(4))
      expect(dataOf(await collect(reader, 2))).toEqual([
        { type: 'gap', reason: 'link_lost', dropped: 3, first_seq: 1, last_seq: 3 },
        4,
      ])
      expect(reported).toHaveLength(8)
      expect(reported.every((error) => error instanceof BadRow)).toBe(true)
    })

    const hset = (name: string, value: string) => (key: string) => server.cli('HSET', key, name, value)
    it.each([
      ['a seq that cannot be counted on', hset('seq', '9007199254740991')],
      ['a seq beyond all counting', hset('seq', '9'.repeat(30))],
      ['a seq below zero', hset('seq', '-5')],
      ['a seq that is no number', hset('seq', '0x10')],
      ['an epoch that no frame can carry', hset('epoch', 'a\rb')],
    ])('to a store that holds %s continues in a new epoch, and reports it', async (_, spoil) => {
      const id = `spoilt-${kind}-${++deployments}`
      const bus = open(id)
      const reader = bus.subscribe('t')
      await bus.prepare('t')
      const { epoch } = reader.position
      await spoil(`relayscope:{${id}:0}:bus:topic:t`)
      await bus.publish('t', event(1))
      expect(dataOf(await collect(reader, 2))).toEqual([
        { type: 'gap', reason: 'link_lost', dropped: null, first_seq: null, last_seq: null },
        1,
      ])
      expect(reader.position.epoch).not.toBe(epoch)
      expect(reader.position.seq).toBe(1)
      expect(reported).toEqual([expect.any(BadRow)])
    })

    it('to a store with an absurd position recovers, and does not block the node', async () => {
      const id = `absurd-${kind}-${++deployments}`
      const bus = open(id)
      const reader = bus.subscribe('t')
      await bus.prepare('t')
      await hset('seq', '9007199254740992')(`relayscope:{${id}:0}:bus:topic:t`)
      expect(await collect(reader, 1)).toMatchObject([{ type: 'gap', reason: 'link_lost', dropped: null }])
      await bus.publish('t', event(1))
      expect(await collect(reader, 1)).toMatchObject([{ type: 'event', event: { seq: 1 } }])
      expect(reported).toEqual([expect.any(BadRow)])
    })

    it('starts a new epoch of the least recently used topic of a user with too many', async () => {
      const id = `topics-${kind}-${++deployments}`
      const bus = open(id)
      const [oldest, newest] = ['users/alice/t0', 'users/alice/t1']
      const held = (topic: string) => server.cli('EXISTS', keyOf(shardPrefix(id, 0), ['bus', 'topic', topic]))
      await bus.publish(oldest, event(1))
      const of = keyOf(shardPrefix(id, 0), ['bus', 'of', 'alice'])
      const touched = (msAgo: number) => `${Date.now() - msAgo}`
      const others = Array.from({ length: 9_999 }, (_, n) => [touched(1_000), `other${n}`]).flat()
      await server.cli('ZADD', of, ...others)
      await server.cli('ZADD', of, touched(60_000), oldest)
      await bus.publish(oldest, event(2))
      expect(await held(oldest)).toBe('1')
      await bus.publish(newest, event(1))
      expect([await held(oldest), await held(newest), await server.cli('ZCARD', of)]).toEqual(['1', '1', '10000'])
      await server.cli('ZADD', of, touched(60_000), oldest)
      await bus.publish('users/alice/t2', event(1))
      expect([await held(oldest), await held(newest), await server.cli('ZCARD', of)]).toEqual(['0', '1', '10000'])
    })

    it('counts the topics of a user exactly as long as they are kept', async () => {
      const id = `topics-${kind}-${++deployments}`
      const bus = open(id)
      const of = keyOf(shardPrefix(id, 0), ['bus', 'of', 'alice'])
      await bus.publish('users/alice/t0', event(1))
      await server.cli('PEXPIRE', of, '60000')
      await bus.publish('users/alice/t0', event(2))
      expect(Number(await server.cli('PTTL', of))).toBeGreaterThan(300_000)
      await server.cli('ZADD', of, `${Date.now() - 600_000}`, 'gone')
      await bus.publish('users/alice/t1', event(1))
      expect((await server.cli('ZRANGE', of, '0', '-1')).split('\n')).toEqual(['users/alice/t0', 'users/alice/t1'])
    })

    it('to a store that is down makes publish and prepare fail, and a subscription wait until it is back', async () => {
      const own = await startServer()
      const other = await clients[kind]([own.port])
      try {
        await own.kill()
        const bus = createRedisEventBus({
          client: other.client,
          deploymentId: 'down',
          commandTimeoutMs: 100,
          onError: null,
        })
        buses.push(bus)
        await expect(bus.publish('t', event(1))).rejects.toMatchObject({ code: 'unavailable' })
        await expect(bus.prepare('t')).rejects.toMatchObject({ code: 'unavailable' })
        const reader = bus.subscribe('t')
        const back = await startServer({ port: own.port })
        try {
          const first = collect(reader, 1)
          const publishing = setInterval(() => void bus.publish('t', event(1)).catch(() => {}), 50)
          expect(dataOf(await first)).toEqual([1])
          clearInterval(publishing)
        } finally {
          await bus.close()
          await back.stop()
        }
      } finally {
        await other.close()
        await own.stop()
      }
    })
  })
})
