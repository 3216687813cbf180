import { getEventListeners } from 'node:events'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { BusItem, Subscription } from '../../src/internal/contract/event-bus.js'
import { createTopic } from '../../src/internal/event-ring/topic.js'
import { createCooperativeSiteEventBus } from '../../src/memory/cooperative/event-bus.js'
import { collect, dataOf, event, eventBusBattery } from '../contract/event-bus.js'

eventBusBattery('one process', async (options) => {
  const bus = createCooperativeSiteEventBus(options)
  return { bus, delivered: async () => {}, close: async () => bus.close() }
})

/** Everything that is there, without waiting. */
function drain(subscription: Subscription): BusItem[] {
  const got: BusItem[] = []
  for (let taken = subscription.take(); taken; taken = subscription.take())
    if (taken.type === 'gap') got.push(taken)
    else got.push(...taken.events.map((each) => ({ type: 'event' as const, event: each })))
  return got
}

describe('the event bus of one process', () => {
  it('remembers the last event of a topic after its buffer is gone, and evicts from the user with the most topics', async () => {
    let time = 0
    const bus = createCooperativeSiteEventBus({ now: () => time, newId: () => 'epoch' })
    const of = (user: string, n: number) => `users/${user}/sites/${n}/events`
    await bus.publish(of('bob', 0), { ...event(1), published_at: '2026-01-01T00:00:01.000Z' })
    await bus.publish(of('bob', 0), { ...event(2), published_at: '2026-01-01T00:00:02.000Z' })
    time = 86_400_000
    for (let n = 0; n < 10_000; n++) await bus.publish(of('mallory', n), event(n))
    const last = { at: '2026-01-01T00:00:02.000Z', position: { epoch: 'epoch', seq: 2 } }
    expect(bus.lastEvent(of('bob', 0))).toEqual(last)
    expect(bus.lastEvent(of('mallory', 0))).toBeNull()
    expect(bus.lastEvent(of('mallory', 9_999))).toMatchObject({ position: { seq: 1 } })
    expect(bus.lastEvent('missing')).toBeNull()
  })

  it('keeps at most its maximum number of unread topics', async () => {
    let epochs = 0
    const bus = createCooperativeSiteEventBus({ newId: () => `e${++epochs}` })
    const topic = (n: number) => `users/ann/sites/${n}/events`
    const round = async () => {
      for (let n = 0; n < 10_000; n++) await bus.publish(topic(n), event(n))
    }
    await round()
    await round()
    expect(epochs).toBe(10_000)
    // One more, for which the longest untouched has to go.
    await bus.publish(topic(10_000), event(1))
    await bus.publish(topic(9_999), event(1))
    expect(epochs).toBe(10_001)
    await bus.publish(topic(0), event(1))
    expect(epochs).toBe(10_002)
  })

  it('agrees with a model of one bounded queue per subscription, whatever happens in whatever order', async () => {
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.record({ kind: fc.constant('publish' as const), n: fc.integer({ min: 1, max: 9 }) }) },
      { weight: 2, arbitrary: fc.record({ kind: fc.constant('subscribe' as const), n: fc.constant(0) }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('read' as const), n: fc.nat(5) }) },
      { weight: 3, arbitrary: fc.record({ kind: fc.constant('begin to read' as const), n: fc.nat(20) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('close' as const), n: fc.nat(5) }) },
    )
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 60 }), async (queueSize, steps) => {
        const bus = createCooperativeSiteEventBus({ queueSize })
        let seq = 0
        let readers: {
          real: Subscription
          queue: number[]
          lost: number
          since: number
          received: number
          dropped: number
        }[] = []
        for (const { kind, n } of steps) {
          const reader = readers[n % (readers.length || 1)]
          if (kind === 'subscribe')
            readers.push({ real: bus.subscribe('t'), queue: [], lost: 0, since: seq, received: 0, dropped: 0 })
          if (kind === 'publish')
            for (let i = 0; i < n; i++) {
              seq++
              expect(await bus.publish('t', event(seq))).toBe(readers.length)
              for (const each of readers) if (each.queue.push(seq) > queueSize) each.lost += each.queue.shift() ? 1 : 0
            }
          if (kind === 'close' && reader) {
            reader.real.close()
            readers = readers.filter((each) => each !== reader)
          }
          if (kind === 'begin to read' && reader && !reader.lost) {
            const some = 1 + (n % 3)
            const taken = reader.real.take((events, from) => Math.min(some, events.length - from))
            const read = reader.queue.splice(0, some)
            expect(taken?.type === 'run' ? taken.events.map(({ seq }) => seq) : []).toEqual(read)
            reader.received += read.length
          }
          if (kind === 'read' && reader) {
            const first = seq - reader.queue.length - reader.lost + 1
            const gap = reader.lost && {
              type: 'gap',
              reason: 'overflow',
              dropped: reader.lost,
              first_seq: first,
              last_seq: first + reader.lost - 1,
            }
            expect(dataOf(drain(reader.real))).toEqual([...(gap ? [gap] : []), ...reader.queue])
            reader.received += reader.queue.length
            reader.dropped += reader.lost
            reader.queue = []
            reader.lost = 0
          }
          for (const { real, queue, lost, since, received, dropped } of readers) {
            expect(real.pending).toBe(queue.length)
            expect(real.dropped).toBe(dropped + lost)
            expect(seq - since).toBe(received + real.pending + real.dropped)
          }
        }
      }),
    )
  })

  it('returns how many subscriptions an event reaches, and continues its sequence without any', async () => {
    const bus = createCooperativeSiteEventBus()
    expect(await bus.publish('t', event(1))).toBe(0)
    const reader = bus.subscribe('t')
    expect(reader.position.seq).toBe(1)
    expect(await bus.publish('t', event(2))).toBe(1)
    reader.close()
    expect(await bus.publish('t', event(3))).toBe(0)
    expect(bus.subscribe('t').position.seq).toBe(3)
  })

  it('wakes once per tick, and again only after take() found nothing', async () => {
    const bus = createCooperativeSiteEventBus()
    let woken = 0
    const reader = bus.subscribe('t', { wake: () => woken++ })
    bus.publish('t', event(1))
    await Promise.resolve()
    expect(woken).toBe(0)
    drain(reader)
    for (let n = 2; n <= 1_000; n++) bus.publish('t', event(n))
    expect(woken).toBe(0)
    await Promise.resolve()
    expect(woken).toBe(1)
    bus.publish('t', event(1_001))
    await Promise.resolve()
    expect(woken).toBe(1)
    expect(drain(reader)).toHaveLength(101)
  })

  it('returns the same run to readers at the same position', () => {
    const bus = createCooperativeSiteEventBus()
    const readers = [bus.subscribe('t'), bus.subscribe('t'), bus.subscribe('t')]
    for (let n = 1; n <= 3; n++) bus.publish('t', event(n))
    const runs = readers.map((reader) => reader.take())
    expect(runs[1]).toBe(runs[0])
    expect(runs[2]).toBe(runs[0])
    bus.publish('t', event(4))
    expect(readers[0]?.take()).not.toBe(runs[0])
  })

  it('leaves untaken events in the ring, where they are dropped like the rest', () => {
    const bus = createCooperativeSiteEventBus()
    const reader = bus.subscribe('t')
    for (let n = 1; n <= 100; n++) bus.publish('t', event(n))
    expect(reader.take(() => 3)).toMatchObject({ type: 'run', events: [{ seq: 1 }, { seq: 2 }, { seq: 3 }] })
    expect([reader.position.seq, reader.pending, reader.dropped]).toEqual([3, 97, 0])
    for (let n = 101; n <= 350; n++) bus.publish('t', event(n))
    expect([reader.pending, reader.dropped]).toEqual([100, 247])
    const [gap, ...rest] = drain(reader)
    expect(gap).toEqual({ type: 'gap', reason: 'overflow', dropped: 247, first_seq: 4, last_seq: 250 })
    expect(dataOf(rest)).toEqual(Array.from({ length: 100 }, (_, i) => 251 + i))
  })

  it('passes the same run to readers at any position in it', () => {
    const bus = createCooperativeSiteEventBus()
    const readers = [bus.subscribe('t'), bus.subscribe('t')]
    for (let n = 1; n <= 9; n++) bus.publish('t', event(n))
    const asked: [unknown, number][] = []
    for (const [index, count] of [
      [0, 4],
      [0, 2],
      [1, 1],
      [1, 8],
      [0, 3],
    ] as const)
      readers[index]?.take((events, from) => {
        asked.push([events, from])
        return count
      })
    expect(asked.map(([, from]) => from)).toEqual([0, 4, 0, 1, 6])
    expect(new Set(asked.map(([events]) => events)).size).toBe(1)
    expect(readers.map(({ pending }) => pending)).toEqual([0, 0])
  })

  it('loses nothing when the reader fails to take it', () => {
    const bus = createCooperativeSiteEventBus()
    const reader = bus.subscribe('t')
    bus.publish('t', event(1))
    const fail = () => {
      throw new Error('no room')
    }
    expect(() => reader.take(fail)).toThrow('no room')
    expect(dataOf(drain(reader))).toEqual([1])
  })

  it('ends its subscriptions when it is closed', () => {
    const bus = createCooperativeSiteEventBus()
    const reader = bus.subscribe('t')
    bus.publish('t', event(1))
    bus.close()
    expect([reader.closed, reader.pending, reader.dropped]).toEqual([true, 0, 0])
    reader.close()
    expect([reader.closed, reader.pending, reader.dropped]).toEqual([true, 0, 0])
  })

  it('serves calls of next() in order', async () => {
    const bus = createCooperativeSiteEventBus()
    const reader = bus.subscribe('t')
    const waits = [reader.next(), reader.next(), reader.next()]
    bus.publish('t', event(1))
    bus.publish('t', event(2))
    const third = reader.next()
    bus.publish('t', event(3))
    bus.publish('t', event(4))
    const got = await Promise.all([...waits, third])
    expect(got.map(({ value }) => value?.type === 'event' && value.event.data)).toEqual([1, 2, 3, 4])
  })

  it('is iterated with for await, and breaking out ends the subscription', async () => {
    const bus = createCooperativeSiteEventBus()
    const reader = bus.subscribe('t')
    bus.publish('t', event(1))
    for await (const delivery of reader) {
      expect(delivery).toMatchObject({ type: 'event', event: { data: 1, seq: 1 } })
      break
    }
    expect(reader.closed).toBe(true)
    expect(await bus.publish('t', event(2))).toBe(0)
  })

  it('leaves nothing behind when subscriptions come and go', async () => {
    const bus = createCooperativeSiteEventBus()
    for (let n = 0; n < 5_000; n++) {
      const controller = new AbortController()
      const reader = bus.subscribe('t', { signal: controller.signal })
      const waiting = reader.next()
      if (n % 2) bus.publish('t', event(n))
      controller.abort()
      controller.abort()
      await waiting
    }
    expect(await bus.publish('t', event(0))).toBe(0)
  })

  it('keeps neither events without readers nor closed readers', async () => {
    const topic = createTopic({ queueSize: 100, position: { epoch: 'a', seq: 0 } })
    const kept = () => ['slots', 'parked'].map((name) => Reflect.get(topic, name).length)
    topic.append({ ...event(1), seq: 1 })
    expect(kept()).toEqual([0, 0])
    const controller = new AbortController()
    const readers = Array.from({ length: 10 }, () => topic.subscribe({ signal: controller.signal }))
    const waits = readers.map((reader) => reader.next())
    for (const reader of readers.slice(3, 6)) reader.close()
    expect(kept()).toEqual([0, 7])
    topic.append({ ...event(2), seq: 2 })
    expect(await Promise.all(waits)).toHaveLength(10)
    expect(kept()).toEqual([3, 0])
    for (const reader of readers) reader.close()
    expect(kept()).toEqual([0, 0])
    expect(getEventListeners(controller.signal, 'abort')).toEqual([])
  })

  it('does not wake a reader that an earlier reader closed', async () => {
    const bus = createCooperativeSiteEventBus()
    const woken: string[] = []
    const first = bus.subscribe('t', {
      wake() {
        woken.push('first')
        second.close()
      },
    })
    const second = bus.subscribe('t', { wake: () => woken.push('second') })
    const third = bus.subscribe('t', { wake: () => woken.push('third') })
    for (const reader of [first, second, third]) reader.take()
    bus.publish('t', event(1))
    await Promise.resolve()
    expect(woken).toEqual(['first', 'third'])
    expect(second.closed).toBe(true)
    expect(await bus.publish('t', event(2))).toBe(2)
  })

  it('gives the newest hundred in order to every reader of 10,000 events in one tick', async () => {
    const bus = createCooperativeSiteEventBus()
    const readers = Array.from({ length: 20 }, () => bus.subscribe('t'))
    const waiting = readers.map((reader) => collect(reader, 101))
    for (let n = 1; n <= 10_000; n++) bus.publish('t', event(n))
    for (const [index, got] of (await Promise.all(waiting)).entries()) {
      expect(got[0]).toEqual({ type: 'gap', reason: 'overflow', dropped: 9_900, first_seq: 1, last_seq: 9_900 })
      expect(dataOf(got.slice(1))).toEqual(Array.from({ length: 100 }, (_, i) => 9_901 + i))
      expect(readers[index]?.dropped).toBe(9_900)
    }
  })

  it('keeps the position of an unread topic for ten minutes after its last event, then starts a new epoch', () => {
    let time = 0
    const bus = createCooperativeSiteEventBus({ now: () => time })
    bus.publish('t', event(1))
    time = 599_999
    const first = bus.subscribe('t')
    const { epoch } = first.position
    expect(first.position.seq).toBe(1)
    time = 5_000_000
    first.close()
    time += 600_000
    const second = bus.subscribe('t')
    expect(second.position.seq).toBe(0)
    expect(second.position.epoch).not.toBe(epoch)
  })

  it('keeps at most ten thousand unread topics and forgets the longest untouched, never one that is read', async () => {
    const bus = createCooperativeSiteEventBus()
    const reader = bus.subscribe('read')
    bus.publish('first', event(1))
    for (let n = 0; n < 10_000; n++) bus.publish(`t${n}`, event(1))
    expect(bus.subscribe('first').position.seq).toBe(0)
    expect(bus.subscribe('t9999').position.seq).toBe(1)
    expect(await bus.publish('read', event(1))).toBe(1)
    expect(drain(reader)).toHaveLength(1)
  })

  it('keeps the topic of a user with few of them, however many another has', () => {
    const bus = createCooperativeSiteEventBus()
    bus.publish('users/bob/sites/notes/events', event(1))
    for (let n = 0; n < 10_050; n++) bus.publish(`users/mallory/sites/s${n}/events`, event(1))
    expect(bus.subscribe('users/bob/sites/notes/events').position.seq).toBe(1)
    expect(bus.subscribe('users/mallory/sites/s0/events').position.seq).toBe(0)
    expect(bus.subscribe('users/mallory/sites/s10049/events').position.seq).toBe(1)
  })

  it('refuses an invalid queue size, and any call after close', async () => {
    expect(() => createCooperativeSiteEventBus({ queueSize: 0 })).toThrow(RangeError)
    const bus = createCooperativeSiteEventBus()
    bus.close()
    await expect(bus.publish('t', event(1))).rejects.toThrow('closed')
    expect(() => bus.subscribe('t')).toThrow('closed')
  })
})

describe('a topic with external positions', () => {
  const at = (seq: number) => ({ ...event(seq), seq })

  it('reads a skipped position as a gap with reason link_lost, between the events around it', () => {
    const topic = createTopic({ queueSize: 100, position: { epoch: 'a', seq: 7 } })
    const reader = topic.subscribe()
    topic.append(at(8))
    topic.append(at(8))
    topic.append(at(12))
    topic.append(at(3))
    topic.moveTo({ epoch: 'a', seq: 20 })
    expect(dataOf(drain(reader))).toEqual([
      8,
      { type: 'gap', reason: 'link_lost', dropped: 3, first_seq: 9, last_seq: 11 },
      12,
      { type: 'gap', reason: 'link_lost', dropped: 8, first_seq: 13, last_seq: 20 },
    ])
    expect(reader.dropped).toBe(11)
    expect(reader.position).toEqual({ epoch: 'a', seq: 20 })
  })

  it('ignores past positions, and drops events that its queue no longer holds', async () => {
    const topic = createTopic({ queueSize: 2, position: { epoch: 'a', seq: 0 } })
    const reader = topic.subscribe()
    for (const seq of [1, 2, 1]) topic.append(at(seq))
    expect(topic.position).toEqual({ epoch: 'a', seq: 2 })
    topic.moveTo({ epoch: 'a', seq: 10 })
    expect([reader.pending, reader.dropped]).toEqual([2, 8])
    const gap = { type: 'gap', reason: 'link_lost', dropped: 10, first_seq: 1, last_seq: 10 }
    expect(await collect(reader, 1)).toEqual([gap])
  })

  it('refuses a position that cannot be counted on from', () => {
    const topic = createTopic({ queueSize: 100, position: { epoch: 'a', seq: 7 } })
    const reader = topic.subscribe()
    topic.append(at(2 ** 53))
    topic.append(at(7.5))
    topic.moveTo({ epoch: 'a', seq: 2 ** 53 })
    topic.moveTo({ epoch: 'b', seq: Number.NaN })
    expect(topic.position).toEqual({ epoch: 'a', seq: 7 })
    topic.moveTo({ epoch: 'a', seq: Number.MAX_SAFE_INTEGER })
    expect(drain(reader)).toEqual([
      { type: 'gap', reason: 'link_lost', dropped: 2 ** 53 - 8, first_seq: 8, last_seq: 2 ** 53 - 1 },
    ])
  })

  it('reads another epoch as a gap of nulls, and continues from its position', () => {
    const topic = createTopic({ queueSize: 100, position: { epoch: 'a', seq: 7 } })
    const reader = topic.subscribe()
    topic.moveTo({ epoch: 'b', seq: 3 })
    topic.append(at(4))
    expect(dataOf(drain(reader))).toEqual([
      { type: 'gap', reason: 'link_lost', dropped: null, first_seq: null, last_seq: null },
      4,
    ])
    expect(reader.position).toEqual({ epoch: 'b', seq: 4 })
  })
})
