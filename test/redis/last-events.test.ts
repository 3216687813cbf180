/** The last events of a deployment's sites, which never affect publishing. */
import { expect, it } from 'vitest'
import { siteStream } from '../../src/internal/contract/ingest.js'
import { createRedisEventBus } from '../../src/redis/event-bus/facility.js'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { createStore } from '../../src/redis/store/store.js'
import { ASK, FIRST } from '../contract/clock.js'
import { event } from '../contract/event-bus.js'
import { notes } from '../contract/sites.js'
import { describeStores, planted } from './matrix.js'

describeStores('the last events of sites in Redis', (_kind, place) => {
  async function open() {
    const options = { ...place(), shards: 1 }
    const reported: unknown[] = []
    const sites = createRedisSiteRegistry({ ...options, onError: (error) => reported.push(error) })
    const bus = createRedisEventBus({ ...options, newId: () => 'epoch' })
    await sites.put(notes)
    const store = createStore(options)
    const key = store.key(0, 'bus', 'last', 'alice')
    const send = (...args: string[]) => store.command(args, key)
    const topic = siteStream('alice', 'notes')
    const life = async () => {
      const { items } = await sites.inspector.listSites({}, FIRST, ASK)
      const found = await sites.inspector.getSite('notes', ASK)
      expect(items).toEqual([found])
      return [found?.last_event_at, found?.last_position]
    }
    return { sites, bus, key, send, topic, life, reported }
  }

  it('are in the list and in the record, even long after the topic was forgotten', async () => {
    const { bus, topic, life, send, key } = await open()
    expect(await life()).toEqual([null, null])
    await bus.publish(topic, event(1))
    await bus.publish(topic, { ...event(2), published_at: '2026-01-01T00:00:01.000Z' })
    expect(await life()).toEqual(['2026-01-01T00:00:01.000Z', 'epoch:2'])
    expect(Number(await send('PTTL', key))).toBeGreaterThan(86_400_000)
  })

  it('do not prevent publishing, whatever the key contains', async () => {
    const { bus, topic, life, send, key, reported } = await open()
    planted.add(key)
    await send('LPUSH', key, 'x')
    await bus.publish(topic, event(1))
    expect(await life()).toEqual([null, null])
    expect(reported.length).toBeGreaterThan(0)
    await send('DEL', key)
    for (const noted of [
      '',
      'x',
      'soon epoch:1',
      '2026-01-01T00:00:00.000Z epoch:x',
      '2026-01-01T00:00:00.000Z e:1e9',
    ]) {
      await send('HSET', key, topic, noted)
      expect(await life()).toEqual([null, null])
    }
  })

  it('are forgotten for one user with too many topics, and for no other', async () => {
    const { bus, topic, life, send, key } = await open()
    const fill = Array.from({ length: 10_000 }, (_, n) => [`t${n}`, 'x']).flat()
    for (let from = 0; from < fill.length; from += 2_000) await send('HSET', key, ...fill.slice(from, from + 2_000))
    await bus.publish(siteStream('bob', 'board'), event(1))
    expect(Number(await send('HLEN', key))).toBe(10_000)
    await bus.publish(topic, event(1))
    expect(Number(await send('HLEN', key))).toBe(1)
    expect(await life()).toEqual(['2026-01-01T00:00:00.000Z', 'epoch:1'])
  })
})
