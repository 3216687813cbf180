/** What the event stream of a session brings, in which writes, and what it costs a reader that stops. */
import { describe, expect, it, vi } from 'vitest'
import { createCooperativeSiteEventBus } from '../../src/cooperative-site/index.js'
import type { SiteEventBus, Subscription } from '../../src/internal/contract/event-bus.js'
import { createTopic } from '../../src/internal/event-ring/topic.js'
import { event } from '../contract/event-bus.js'
import { holdTime, publish, START, watch } from './viewer.js'
import { changed, createWorld, TOPIC } from './world.js'

holdTime()

describe('the event stream of a session', () => {
  it('begins with ready, then sends events with their positions', async () => {
    const world = await createWorld()
    publish(world, 1, 3)
    const viewer = await watch(world)
    expect(viewer.response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    await viewer.read()
    const epoch = viewer.frames[0]?.id?.split(':')[0]
    expect(viewer.retries).toEqual([5_000])
    expect(viewer.frames).toEqual([
      {
        event: 'ready',
        id: `${epoch}:3`,
        data: {
          subscription_id: expect.any(String),
          session_id: world.session_id,
          site_id: 'notes',
          queue_limit: 100,
          replay: false,
          heartbeat_ms: 15_000,
        },
      },
    ])
    const message = changed({ id: 7 })
    await world.ask('alice', 'POST', '/messages', { body: message })
    await viewer.read()
    expect(viewer.frames[1]).toEqual({
      event: 'site_event',
      id: `${epoch}:4`,
      data: {
        event_id: message.message_id,
        name: 'note_changed',
        site_id: 'notes',
        seq: 4,
        published_at: new Date(START).toISOString(),
        data: { id: 7 },
      },
    })
  })

  it('sends a burst in one write, and the same bytes to every viewer', async () => {
    const world = await createWorld()
    const viewers = [await watch(world), await watch(world, 'carol')]
    for (const viewer of viewers) await viewer.read()
    const reads = viewers.map((viewer) => viewer.reader.read())
    publish(world, 1, 20)
    const chunks = await Promise.all(reads)
    expect(chunks[0]?.value).toBe(chunks[1]?.value)
    expect(new TextDecoder().decode(chunks[0]?.value).match(/event: site_event/g)).toHaveLength(20)
  })

  it('splits a burst of large events without losing one', async () => {
    const world = await createWorld()
    const viewer = await watch(world)
    await viewer.read()
    const large = 'x'.repeat(40_000)
    for (let n = 1; n <= 10; n++) world.bus.publish(TOPIC, { ...event(n), data: large })
    while (viewer.frames.length < 11) await viewer.read()
    expect(viewer.writes).toBe(6)
    expect(viewer.frames.slice(1).map(({ data }) => (data as { seq: number }).seq)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ])
  })

  it('drops no more events of a reader that stalls within a burst than of one that stalled before it', async () => {
    const world = await createWorld()
    const viewer = await watch(world)
    await viewer.read()
    const large = 'x'.repeat(30_000)
    for (let n = 1; n <= 100; n++) world.bus.publish(TOPIC, { ...event(n), data: large })
    await viewer.read()
    expect(viewer.frames).toHaveLength(4)
    publish(world, 101, 350)
    while (viewer.frames.length < 105) await viewer.read()
    expect(viewer.frames[4]?.data).toEqual({
      reason: 'overflow',
      dropped: 247,
      dropped_total: 247,
      first_seq: 4,
      last_seq: 250,
    })
    expect(viewer.frames.slice(5).map(({ data }) => (data as { seq: number }).seq)).toEqual(
      Array.from({ length: 100 }, (_, i) => 251 + i),
    )
  })

  it('sends all events of a bus that returns them all in one call', async () => {
    const bus = createCooperativeSiteEventBus()
    // A host's own bus, made before readers could take a part.
    const whole: SiteEventBus = {
      ...bus,
      subscribe(topic, options) {
        const subscription = bus.subscribe(topic, options)
        const take = subscription.take.bind(subscription)
        return Object.assign(subscription, { take: () => take() })
      },
    }
    const world = await createWorld({ bus: whole })
    const viewer = await watch(world)
    await viewer.read()
    const large = 'x'.repeat(30_000)
    for (let n = 1; n <= 10; n++) bus.publish(TOPIC, { ...event(n), data: large })
    while (viewer.frames.length < 11) await viewer.read()
    expect(viewer.frames.slice(1).map(({ data }) => (data as { seq: number }).seq)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ])
  })

  it.each([
    ['by portions', (subscription: Subscription) => subscription],
    [
      'at once',
      (subscription: Subscription) => {
        const take = subscription.take.bind(subscription)
        return Object.assign(subscription, { take: () => take() })
      },
    ],
  ])('replaces an invalid event of a host’s own bus that delivers %s by a gap', async (_how, hand) => {
    const topic = createTopic({ queueSize: 100, position: { epoch: 'e', seq: 0 } })
    const bus = createCooperativeSiteEventBus()
    const onError = vi.fn()
    const own: SiteEventBus = { ...bus, subscribe: (_topic, options) => hand(topic.subscribe(options)) }
    const world = await createWorld({ bus: own, onError })
    const viewers = [await watch(world), await watch(world)]
    for (const viewer of viewers) await viewer.read()
    for (const seq of [1, 2, 3]) {
      const given = { ...event(seq), seq }
      topic.append(seq === 2 ? { ...given, published_at: undefined as never } : given)
    }
    for (const viewer of viewers) {
      while (viewer.frames.length < 4) await viewer.read()
      expect(viewer.frames.slice(1)).toMatchObject([
        { event: 'site_event', id: 'e:1' },
        {
          event: 'gap',
          id: 'e:2',
          data: { reason: 'link_lost', dropped: 1, dropped_total: 1, first_seq: 2, last_seq: 2 },
        },
        { event: 'site_event', id: 'e:3' },
      ])
    }
    // By portions viewers share the encoding, and so the report.
    expect(onError).toHaveBeenCalled()
    expect(world.relay.streams).toBe(2)
  })

  it('drops events of a stalled reader instead of buffering them, and reports exactly which', async () => {
    const world = await createWorld()
    const stalled = await watch(world)
    await stalled.read()
    const other = await watch(world, 'carol')
    await other.read()
    for (let n = 1; n <= 250; n++) {
      publish(world, n, n)
      await other.read()
    }
    expect(other.frames.filter((frame) => frame.event === 'site_event')).toHaveLength(250)
    const epoch = stalled.frames[0]?.id?.split(':')[0]
    await stalled.read()
    await stalled.read()
    expect(stalled.frames[1]).toEqual({
      event: 'gap',
      id: `${epoch}:150`,
      data: { reason: 'overflow', dropped: 150, dropped_total: 150, first_seq: 1, last_seq: 150 },
    })
    expect(stalled.frames.slice(2).map(({ id }) => id)).toEqual(
      Array.from({ length: 100 }, (_, i) => `${epoch}:${151 + i}`),
    )
    expect(stalled.frames.length).toBe(102)
  })

  it('writes a heartbeat after 15 s of silence, but none to a stalled reader', async () => {
    const world = await createWorld()
    const viewer = await watch(world)
    const stalled = await watch(world)
    await stalled.read()
    void viewer.drain()
    await vi.advanceTimersByTimeAsync(14_000)
    publish(world, 1, 1)
    await vi.advanceTimersByTimeAsync(14_000)
    expect(viewer.comments).toEqual([])
    await vi.advanceTimersByTimeAsync(1_500)
    expect(viewer.comments).toEqual([''])
    await vi.advanceTimersByTimeAsync(60_000)
    expect(viewer.comments).toHaveLength(5)
    await stalled.read()
    expect(stalled.comments).toEqual([])
    expect(stalled.frames.at(-1)?.event).toBe('site_event')
  })

  it('sends only the fields of the event schema, even if a custom bus has more', async () => {
    const topic = createTopic({ queueSize: 10, position: { epoch: 'e', seq: 0 }, onUnread() {} })
    const subscribe: SiteEventBus['subscribe'] = (_, options) => topic.subscribe(options)
    const world = await createWorld({ bus: { ...createCooperativeSiteEventBus(), subscribe } })
    const viewer = await watch(world)
    await viewer.read()
    const name = 'note_changed'
    const published = { ...event(1), seq: 1, site_id: 'notes', name, secret: 'not for viewers' }
    topic.append(published)
    await viewer.read()
    expect(viewer.frames.at(-1)).toMatchObject({ event: 'site_event', data: { name } })
    expect(JSON.stringify(viewer.frames)).not.toContain('not for viewers')
  })
})
