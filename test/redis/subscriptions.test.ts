/** The viewer streams of a deployment in a shared store. */
import { describe, expect, it } from 'vitest'
import { SWEEP_TABLES } from '../../src/redis/presence/records.js'
import { runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { createRedisSubscriptionRegistry, END_STREAMS, REPORT_STREAMS } from '../../src/redis/subscriptions/facility.js'
import { ASK, createClock, FIRST } from '../contract/clock.js'
import { listIn, stream, subscriptionRegistryBattery } from '../contract/subscriptions.js'
import { describeStores } from './matrix.js'
import { soon } from './wait-for.js'

describeStores('the viewer streams in Redis', (kind, place) => {
  subscriptionRegistryBattery(kind, async (options) => {
    const subscriptions = createRedisSubscriptionRegistry({ ...place(), ...options })
    return { subscriptions, close: () => subscriptions.close() }
  })

  describe(`two nodes over ${kind}`, () => {
    it('list the streams of both, and leave none behind when they are closed', async () => {
      const options = place()
      const [a, b] = ['a', 'b'].map((nodeId) => createRedisSubscriptionRegistry({ ...options, nodeId })) as [Node, Node]
      a.add(stream('one'))
      b.add(stream('two'))
      const nodes = async () => (await listIn(a)).map(({ node_id }) => node_id).sort()
      await soon(async () => expect(await nodes()).toEqual(['a', 'b']))
      expect(await b.inspector.countViewers?.(['s1'], ASK)).toEqual([2])
      await a.close()
      expect(await nodes()).toEqual(['b'])
      await b.close()
      expect(await nodes()).toEqual([])
    })

    it('list nothing of a dead node after its lease, and delete it', async () => {
      const clock = createClock()
      const options = { ...place(), shards: 1, now: clock.now }
      const store = createStore(options)
      const dead = { lease: 15_000, is_short: '' }
      const body = JSON.stringify({ node_id: 'a', opened_at: '2026-01-01T00:00:00.000Z', ...stream('x').state() })
      // The last report of a node before it dies.
      await runScript(store, REPORT_STREAMS, 0, { ...dead, streams: ['one', 'bob', 's1', 'notes', body] })
      const observer = createRedisSubscriptionRegistry({ ...options, nodeId: 'b' })
      const left = async () => {
        const keys = ['all', 'leaves', 'users'].map((part) => store.key(0, 'subscriptions', part))
        const counts = await Promise.all(keys.map((key) => store.command(['ZCARD', key], key)))
        return [...counts, (await listIn(observer)).length, (await observer.inspector.countViewers?.(['s1'], ASK))?.[0]]
      }
      expect(await left()).toEqual([1, 1, 1, 1, 1])
      clock.advance(14_999)
      expect(await left()).toEqual([1, 1, 1, 1, 1])
      clock.advance(1)
      expect(await left()).toEqual([1, 1, 1, 0, 0])
      await runScript(store, SWEEP_TABLES, 0, { tables: ['subscriptions'] })
      expect(await left()).toEqual([0, 0, 0, 0, 0])
    })

    it('are not affected by reports that arrive twice or late', async () => {
      const options = { ...place(), shards: 1 }
      const store = createStore(options)
      const node = createRedisSubscriptionRegistry(options)
      const body = JSON.stringify({ node_id: 'a', opened_at: '2026-01-01T00:00:00.000Z', ...stream('x').state() })
      const report = () =>
        runScript(store, REPORT_STREAMS, 0, {
          lease: 15_000,
          is_short: '',
          streams: ['one', 'bob', 's1', 'notes', body],
        })
      const end = () => runScript(store, END_STREAMS, 0, { gone: ['one', 'never'] })
      await report()
      await report()
      expect(await node.inspector.countViewers?.(['s1'], ASK)).toEqual([1])
      await end()
      await end()
      expect(await node.inspector.countViewers?.(['s1'], ASK)).toEqual([0])
      expect(await listIn(node)).toEqual([])
    })

    it('return null viewers while a node has more streams than it reports, and list the reported ones', async () => {
      const options = place()
      const node = createRedisSubscriptionRegistry({ ...options, maxReported: 2 })
      const ends = [1, 2, 3].map((n) => node.add(stream(`n${n}`, { user_id: `u${n}` })))
      const viewers = async () => (await node.inspector.countViewers?.(['s1', 'none'], ASK)) ?? []
      await soon(async () => expect(await listIn(node)).toHaveLength(2))
      await soon(async () => expect(await viewers()).toEqual([null, null]))
      for (const end of ends) end()
      await node.close()
    })

    it('skip and report an invalid stream, and return null viewers for its session', async () => {
      const options = { ...place(), shards: 1 }
      const reported: unknown[] = []
      const node = createRedisSubscriptionRegistry({ ...options, onError: (error) => reported.push(error) })
      const store = createStore(options)
      const report = (id: string, session: string, body: object) =>
        runScript(store, REPORT_STREAMS, 0, {
          lease: 15_000,
          is_short: '',
          streams: [id, 'bob', session, 'notes', JSON.stringify(body)],
        })
      const whole = { node_id: 'a', opened_at: '2026-01-01T00:00:00.000Z', ...stream('x').state() }
      await report('good', 's1', whole)
      await report('bad', 's2', { ...whole, pending: -1 })
      const page = await node.inspector.listSubscriptions({}, FIRST, ASK)
      expect([page.items.map(({ subscription_id }) => subscription_id), page.omitted]).toEqual([['good'], 1])
      expect(await node.inspector.countViewers?.(['s1', 's2'], ASK)).toEqual([1, null])
      expect(reported.length).toBeGreaterThan(0)
    })
  })
})

type Node = ReturnType<typeof createRedisSubscriptionRegistry>
