/** The registry of sessions over a shared store. */
import { describe, expect, it } from 'vitest'
import { createRedisSessionRegistry, SWEEP_SESSIONS } from '../../src/redis/sessions/facility.js'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { ASK, createClock, FIRST } from '../contract/clock.js'
import { sessionRegistryBattery } from '../contract/sessions.js'
import { lossyClient } from './lossy-client.js'
import { describeStores, planted } from './matrix.js'
import { soon } from './wait-for.js'

const opening = { site_id: 'notes', owner: 'alice' }

describeStores('the registry of sessions in Redis', (kind, place) => {
  sessionRegistryBattery(kind, async (bounds) => {
    const clock = createClock()
    const options = { ...place(), ...(bounds && { shards: 1 }), now: clock.now }
    const sites = createRedisSiteRegistry(options)
    const sessions = createRedisSessionRegistry({ ...options, sites, ...bounds })
    return { sites, sessions, advance: clock.advance, close: () => sessions.disconnect() }
  })

  describe(`two nodes over ${kind}`, () => {
    it('share one registry, and a watcher on one is notified of changes on the other', async () => {
      const options = place()
      const [a, b] = [createRedisSessionRegistry(options), createRedisSessionRegistry(options)]
      try {
        const { session_id } = await a.open(opening)
        let heard = () => {}
        const unwatch = b.watch(session_id, () => heard())
        const changes = [() => a.activate(session_id), () => a.share(session_id, { user_id: 'bob', rights: ['view'] })]
        // The subscription is still being made: repeat the change until a notification arrives.
        await new Promise<void>((resolve) => {
          const again = setInterval(() => void a.share(session_id, { user_id: 'eve', rights: ['view'] }), 20)
          heard = () => {
            clearInterval(again)
            resolve()
          }
        })
        for (const change of changes) {
          const told = new Promise<void>((resolve) => {
            heard = resolve
          })
          await change()
          await told
        }
        expect((await b.get(session_id))?.state).toBe('active')
        expect((await b.getShare(session_id, 'bob'))?.rights).toEqual(['view'])
        unwatch()
      } finally {
        await Promise.all([a.disconnect(), b.disconnect()])
      }
    })

    it('notify a watcher of a change that came before its subscription', async () => {
      const options = place()
      const { client, plan } = lossyClient(options.client)
      const near = createRedisSessionRegistry({ ...options, client, commandTimeoutMs: 60_000 })
      const far = createRedisSessionRegistry(options)
      const { session_id } = await far.open(opening)
      // The first read of a registry is the number of shards: nothing is subscribed before.
      const held = plan.meet('held')
      let told = 0
      near.watch(session_id, () => told++)
      await held
      await far.close(session_id)
      expect(told).toBe(0)
      await plan.release()
      await soon(() => expect(told).toBeGreaterThan(0))
      await near.disconnect()
    })

    it('do not loop with a watcher that restarts with each notification', async () => {
      const sessions = createRedisSessionRegistry(place())
      const { session_id } = await sessions.open(opening)
      let told = 0
      const begin = () => {
        const stop = sessions.watch(session_id, () => {
          stop()
          // If it looped, this stops it.
          if (++told < 100) begin()
        })
      }
      begin()
      await soon(() => expect(told).toBeGreaterThan(0))
      await sessions.activate(session_id)
      for (let n = 0; n < 10; n++) await sessions.get(session_id)
      expect(told).toBeLessThan(100)
      await sessions.disconnect()
    })

    it('notify all watchers, and return to the author of the change, even if one throws', async () => {
      const heard: unknown[] = []
      const sessions = createRedisSessionRegistry({ ...place(), onError: (error) => heard.push(error) })
      const { session_id } = await sessions.open(opening)
      const wrong = new Error('of the host')
      sessions.watch(session_id, () => {
        throw wrong
      })
      let told = 0
      sessions.watch(session_id, () => told++)
      expect(await sessions.activate(session_id)).toMatchObject({ state: 'active' })
      expect(told).toBeGreaterThan(0)
      await soon(() => expect(heard).toContain(wrong))
      await sessions.disconnect()
    })

    it('apply one of two concurrent transitions', async () => {
      const options = place()
      const { client, plan } = lossyClient(options.client)
      const near = createRedisSessionRegistry({ ...options, client, commandTimeoutMs: 60_000 })
      const far = createRedisSessionRegistry(options)
      const { session_id } = await near.open(opening)
      // The session changes between its read and its write.
      const held = plan.meet('held')
      const closing = near.close(session_id, 'late')
      const refused = expect(closing).rejects.toMatchObject({ code: 'invalid_transition' })
      await held
      await far.close(session_id, 'first')
      await plan.release()
      await refused
      expect(await far.get(session_id)).toMatchObject({ state: 'closed', close_reason: 'first' })
    })

    it('keep a session with a reused id, and list it once', async () => {
      const clock = createClock()
      const options = { ...place(), now: clock.now }
      const sessions = createRedisSessionRegistry({ ...options, newId: () => 'again' })
      await sessions.open({ ...opening, ttl_ms: 1_000 })
      await sessions.close('again', 'done')
      clock.advance(3_500_000)
      const { opened_at } = await sessions.open({ site_id: 'board', owner: 'bob' })
      clock.advance(3_600_000)
      const sweep = { max_sessions: 10_000 }
      const store = createStore(options)
      for (let shard = 0; shard < options.shards; shard++) await runScript(store, SWEEP_SESSIONS, shard, sweep)
      expect(await sessions.get('again')).toMatchObject({
        state: 'pending',
        opened_at,
        expires_at: null,
        close_reason: null,
      })
      const list = async (filter: object) => (await sessions.inspector.listSessions(filter, FIRST, ASK)).items
      expect(await list({})).toMatchObject([{ session_id: 'again', owner: 'bob' }])
      for (const filter of [{ owner: 'alice' }, { site_id: 'notes' }]) expect(await list(filter)).toEqual([])
    })

    it('leave nothing of a swept session', async () => {
      const clock = createClock()
      const options = { ...place(), shards: 1, now: clock.now }
      const sessions = createRedisSessionRegistry(options)
      const store = createStore(options)
      const key = (...parts: string[]) => store.key(0, 'sessions', ...parts)
      const open = await sessions.open({ ...opening, ttl_ms: 1_000 })
      const until = new Date(clock.now() + 500).toISOString()
      await sessions.share(open.session_id, { user_id: 'bob', rights: ['view'], expires_at: until })
      const closed = await sessions.open(opening)
      await sessions.close(closed.session_id)
      const left = async () => {
        const sets = [key('all'), key('owner', 'alice'), key('site_id', 'notes'), key('at', 'alice', 'notes')]
        return Promise.all(sets.map((set) => store.command(['ZCARD', set], set)))
      }
      expect(await left()).toEqual([2, 2, 2, 1])
      clock.advance(1_000)
      const sweep = () => runScript(store, SWEEP_SESSIONS, 0, { max_sessions: 10_000 })
      expect(await sweep()).toBe(false)
      expect(await left()).toEqual([2, 2, 2, 0])
      clock.advance(3_600_000)
      expect(await sweep()).toBe(false)
      expect(await left()).toEqual([0, 0, 0, 0])
      const ends = key('share-ends', open.session_id)
      expect(await store.command(['EXISTS', ends], ends)).toBe(0)
    })

    it('skip and report an invalid session, and list the others', async () => {
      const options = { ...place(), shards: 1 }
      const reported: unknown[] = []
      const sessions = createRedisSessionRegistry({ ...options, onError: (error) => reported.push(error) })
      const store = createStore(options)
      const made = [await sessions.open(opening), await sessions.open(opening), await sessions.open(opening)]
      const [spoilt, foreign, good] = made.map(({ session_id }) => session_id) as [string, string, string]
      const key = (id: string) => store.key(0, 'sessions', 'row', id)
      planted.add(key(spoilt)).add(key(foreign))
      await store.command(['SET', key(spoilt), '{}\n{"state":"odd"}'], key(spoilt))
      await store.command(['DEL', key(foreign)], key(foreign))
      await store.command(['LPUSH', key(foreign), 'x'], key(foreign))
      const page = await sessions.inspector.listSessions({}, FIRST, ASK)
      expect([page.items.map(({ session_id }) => session_id), page.omitted]).toEqual([[good], 2])
      expect(reported).toHaveLength(2)
      expect(await sessions.inspector.getSession(spoilt, ASK)).toBeNull()
      expect(reported).toHaveLength(3)
    })
  })
})
