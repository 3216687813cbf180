/** What every event bus promises, whatever carries the events between processes. */
import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { BusItem, PublishedEvent, SiteEventBus, Subscription } from '../../src/internal/contract/event-bus.js'

/** An event whose data tells it from its neighbours. */
export function event(n: number): PublishedEvent {
  return { event_id: `e${n}`, name: 'changed', site_id: 's', published_at: '2026-01-01T00:00:00.000Z', data: n }
}

export async function collect(subscription: Subscription, count: number): Promise<BusItem[]> {
  const got: BusItem[] = []
  while (got.length < count) {
    const { value, done } = await subscription.next()
    if (done) break
    got.push(value)
  }
  return got
}

export const dataOf = (deliveries: BusItem[]) =>
  deliveries.map((delivery) => (delivery.type === 'event' ? delivery.event.data : delivery))

export interface BusUnderTest {
  bus: SiteEventBus
  /** Resolves when everything published before has reached this process. */
  delivered(): Promise<void>
  close(): Promise<void>
}

export function eventBusBattery(name: string, make: (options: { queueSize?: number }) => Promise<BusUnderTest>): void {
  const using = async (options: { queueSize?: number }, work: (under: BusUnderTest) => Promise<void>) => {
    const under = await make(options)
    try {
      await work(under)
    } finally {
      await under.close()
    }
  }

  describe(`the event bus over ${name}`, () => {
    it('yields events in order to every subscription, with a seq that counts from 1', () =>
      using({}, async ({ bus, delivered }) => {
        const readers = [bus.subscribe('t'), bus.subscribe('t')]
        await delivered()
        for (let n = 1; n <= 5; n++) await bus.publish('t', event(n))
        for (const reader of readers) {
          const got = await collect(reader, 5)
          expect(dataOf(got)).toEqual([1, 2, 3, 4, 5])
          expect(got.map((delivery) => delivery.type === 'event' && delivery.event.seq)).toEqual([1, 2, 3, 4, 5])
        }
      }))

    it('delivers the trace of an event, and refuses an invalid one', () =>
      using({}, async ({ bus, delivered }) => {
        const reader = bus.subscribe('t')
        await delivered()
        const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
        await expect(bus.publish('t', { ...event(1), trace: 'x' })).rejects.toMatchObject({ code: 'invalid_input' })
        await bus.publish('t', { ...event(2), trace })
        await bus.publish('t', event(3))
        const [traced, other] = await collect(reader, 2)
        expect(traced).toMatchObject({ event: { data: 2, trace } })
        expect(other).not.toHaveProperty('event.trace')
      }))

    it('replays nothing to a later subscription', () =>
      using({}, async ({ bus, delivered }) => {
        await bus.publish('t', event(1))
        await delivered()
        const late = bus.subscribe('t')
        await delivered()
        await bus.publish('t', event(2))
        expect(dataOf(await collect(late, 1))).toEqual([2])
        expect(late.position.seq).toBe(2)
      }))

    it.each([
      ['is read', () => {}],
      ['was read a moment ago', (reader: Subscription) => reader.close()],
    ])('replays nothing to a later subscription of a topic that %s', (_, ends) =>
      using({}, async ({ bus, delivered }) => {
        const reader = bus.subscribe('t')
        await delivered()
        ends(reader)
        // None of them has come back from a store when the next one subscribes.
        for (let n = 1; n <= 20; n++) {
          await bus.publish('t', event(n))
          const late = bus.subscribe('t')
          expect([late.pending, late.dropped]).toEqual([0, 0])
          await bus.publish('t', event(-n))
          expect(dataOf(await collect(late, 1))).toEqual([-n])
          late.close()
        }
        expect(reader.closed ? [] : (await collect(reader, 40)).length).toEqual(reader.closed ? [] : 40)
      }))

    it('replays nothing to a subscription before whose place is known something was published', () =>
      using({}, async ({ bus, delivered }) => {
        const first = bus.subscribe('t')
        await bus.publish('t', event(1))
        const late = bus.subscribe('t')
        await delivered()
        await bus.publish('t', event(2))
        expect(dataOf(await collect(late, 1))).toEqual([2])
        first.close()
      }))

    it('keeps topics apart', () =>
      using({}, async ({ bus, delivered }) => {
        const a = bus.subscribe('a')
        const b = bus.subscribe('b')
        await delivered()
        await bus.publish('b', event(1))
        await bus.publish('a', event(2))
        expect(dataOf(await collect(a, 1))).toEqual([2])
        expect(dataOf(await collect(b, 1))).toEqual([1])
      }))

    it('drops the oldest of a reader that stalls, and says exactly what is missing where it is missing', () =>
      using({}, async ({ bus, delivered }) => {
        const stalled = bus.subscribe('t')
        await delivered()
        for (let n = 1; n <= 250; n++) await bus.publish('t', event(n))
        await delivered()
        expect(stalled.pending).toBe(100)
        expect(stalled.dropped).toBe(150)
        const [gap, ...rest] = await collect(stalled, 101)
        expect(gap).toEqual({ type: 'gap', reason: 'overflow', dropped: 150, first_seq: 1, last_seq: 150 })
        expect(dataOf(rest)).toEqual(Array.from({ length: 100 }, (_, i) => 151 + i))
        expect(stalled.pending).toBe(0)
        expect(stalled.dropped).toBe(150)
      }))

    it('ends a waiting iteration when the subscription is closed or its signal aborts', () =>
      using({}, async ({ bus }) => {
        const controller = new AbortController()
        const aborted = bus.subscribe('t', { signal: controller.signal })
        const closed = bus.subscribe('t')
        const waits = [aborted.next(), closed.next(), closed.next()]
        controller.abort()
        closed.close()
        closed.close()
        expect(await Promise.all(waits)).toEqual(Array(3).fill({ done: true, value: undefined }))
        expect(aborted.closed).toBe(true)
        expect(bus.subscribe('t', { signal: controller.signal }).closed).toBe(true)
        expect(await bus.publish('t', event(1))).toBe(0)
      }))

    it('refuses an invalid signal or wake', () =>
      using({}, async ({ bus }) => {
        for (const signal of [null, 5, 'x', {}, { aborted: false }, new EventTarget()])
          expect(() => bus.subscribe('t', { signal: signal as AbortSignal })).toThrow(
            expect.objectContaining({ code: 'invalid_input', detail: 'signal: must be an AbortSignal' }),
          )
        expect(() => bus.subscribe('t', { wake: 'up' as unknown as () => void })).toThrow(
          expect.objectContaining({ code: 'invalid_input', detail: 'wake: must be a function' }),
        )
        expect(await bus.publish('t', event(1))).toBe(0)
      }))

    it.each<[string, Partial<PublishedEvent>]>([
      ['published_at', { published_at: undefined as never }],
      ['published_at', { published_at: 'yesterday' }],
      ['published_at', { published_at: '2026-01-01' }],
      ['event_id', { event_id: undefined as never }],
      ['name', { name: 7 as never }],
      ['site_id', { site_id: null as never }],
    ])('refuses an event whose %s is missing or invalid: %o', (field, change) =>
      using({}, async ({ bus, delivered }) => {
        const reader = bus.subscribe('t')
        await delivered()
        const bad = { ...event(1), ...change }
        for (const publishing of [bus.publish('t', bad), bus.publishOnce?.('t', bad)])
          if (publishing)
            await expect(publishing).rejects.toMatchObject({
              code: 'invalid_input',
              detail: expect.stringMatching(`^${field}: `),
            })
        await bus.publish('t', event(2))
        expect(await collect(reader, 1)).toMatchObject([{ type: 'event', event: { seq: 1, data: 2 } }])
      }))

    it('leaves nothing on a signal when it is closed, whether or not its reader looks again', () =>
      using({}, async ({ bus }) => {
        const { signal } = new AbortController()
        const wakes: string[] = []
        const idle = bus.subscribe('t', { signal })
        const parked = bus.subscribe('t', { signal, wake: () => wakes.push('parked') })
        parked.take()
        expect(getEventListeners(signal, 'abort')).toHaveLength(2)
        await bus.close()
        expect(getEventListeners(signal, 'abort')).toEqual([])
        expect(idle.closed).toBe(true)
        await Promise.resolve()
        expect(wakes).toEqual(['parked'])
      }))

    it('ends every subscription when it is closed', () =>
      using({}, async ({ bus }) => {
        const waiting = bus.subscribe('t').next()
        await bus.close()
        expect(await waiting).toEqual({ done: true, value: undefined })
      }))
  })
}
