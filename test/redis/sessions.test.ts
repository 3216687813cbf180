/** The registry of sessions over a shared store. */
import { describe, expect, it } from 'vitest'
import { createRedisSessionRegistry } from '../../src/redis/sessions/facility.js'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { createClock } from '../contract/clock.js'
import { sessionRegistryBattery } from '../contract/sessions.js'
import { describeStores } from './matrix.js'

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
    it('share one registry, and a watcher on one hears of changes made on the other', async () => {
      const options = place()
      const [a, b] = [createRedisSessionRegistry(options), createRedisSessionRegistry(options)]
      try {
        const { session_id } = await a.open(opening)
        let heard = () => {}
        const unwatch = b.watch(session_id, () => heard())
        const changes = [() => a.activate(session_id), () => a.share(session_id, { user_id: 'bob', rights: ['view'] })]
        // The subscription is made meanwhile: repeat the change until it is heard once.
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

    it('let one of two concurrent moves through', async () => {
      const options = place()
      const nodes = [createRedisSessionRegistry(options), createRedisSessionRegistry(options)] as const
      const { session_id } = await nodes[0].open(opening)
      const closes = await Promise.allSettled(nodes.map((node) => node.close(session_id, 'done')))
      expect(closes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected'])
    })

    it('forget a session an hour after its end, and make room for others when one ends', async () => {
      const clock = createClock()
      const sessions = createRedisSessionRegistry({ ...place(), shards: 1, now: clock.now, maxSessions: 2 })
      const first = await sessions.open({ ...opening, ttlMs: 10 })
      const second = await sessions.open(opening)
      await expect(sessions.open(opening)).rejects.toMatchObject({ code: 'capacity_exceeded' })
      clock.advance(10)
      expect((await sessions.get(first.session_id))?.state).toBe('expired')
      await sessions.open(opening)
      await sessions.close(second.session_id)
      clock.advance(3_600_000 - 1)
      expect((await sessions.get(second.session_id))?.state).toBe('closed')
      clock.advance(1)
      expect(await sessions.get(second.session_id)).toBeNull()
      await expect(sessions.activate(second.session_id)).rejects.toMatchObject({ code: 'session_not_found' })
    })

    it('share a session with no more people than it can hold, not counting those whose share has run out', async () => {
      const clock = createClock()
      const sessions = createRedisSessionRegistry({ ...place(), now: clock.now })
      const { session_id } = await sessions.open(opening)
      const until = new Date(clock.now() + 50).toISOString()
      const share = (n: number) => sessions.share(session_id, { user_id: `u${n}`, rights: ['view'], expires_at: until })
      await Promise.all(Array.from({ length: 500 }, (_, n) => share(n)))
      await Promise.all(Array.from({ length: 500 }, (_, n) => share(500 + n)))
      await expect(share(1_000)).rejects.toMatchObject({ code: 'capacity_exceeded' })
      await share(999)
      clock.advance(50)
      await sessions.share(session_id, { user_id: 'late', rights: ['view'] })
      expect(await sessions.getShare(session_id, 'u1')).toBeNull()
    })
  })
})
