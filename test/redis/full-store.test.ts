/** A store without free memory, or without writes: the loop of a node removes what has expired. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createRedisFacilities, type RedisFacilities } from '../../src/redis/composition/facilities.js'
import { ASK, type Clock, createClock, FIRST } from '../contract/clock.js'
import { command, connection, first, key } from '../contract/delivery-commands.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'
import { soon } from './wait-for.js'

for (const kind of ['node-redis', 'ioredis'] as const)
  describeRedis(`a store over ${kind}`, () => {
    let server: Server
    let connected: Connected
    let facilities: RedisFacilities
    let clock: Clock
    beforeEach(async () => {
      server = await startServer({ args: ['--maxmemory-policy', 'noeviction'] })
      connected = await clients[kind]([server.port])
      clock = createClock()
      facilities = createRedisFacilities({
        client: connected.client,
        deploymentId: 'full',
        now: clock.now,
        onError: null,
      })
    })
    afterEach(async () => {
      await facilities.close()
      await connected.close()
      await server.stop()
    })
    const left = async (...kinds: string[]) =>
      (await server.cli('KEYS', 'relayscope:*')).split('\n').filter((name) => kinds.some((kind) => name.includes(kind)))
    // What remembers an attempt ends by the store's own clock, which no test advances.
    const size = async () => (await left('relayscope:')).filter((name) => !name.includes(':once:')).length

    /** What lives by being reported, in numbers that one sweep of a write would not reach. */
    async function fill() {
      for (let i = 0; i < 40; i++) {
        await facilities.connections.connect({ ...first, client_id: `c${i}`, client_type: 'web' })
        await facilities.contexts.report({
          context_id: `x${i}`,
          user_id: 'ada',
          client_id: 'tab',
          client_type: 'web',
          status: 'idle',
          ownership: 'worker',
        })
        for (const user_id of ['ada', `u${i}`]) await facilities.deduplicator.claim({ user_id, message_id: `m${i}` })
        await facilities.dispatcher.dispatch(command(`c${i}`, { payload: 'x'.repeat(10_000) }))
      }
    }

    it('that is full empties itself as commands, reports and connections expire', async () => {
      await fill()
      await facilities.dispatcher.reconcile()
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      await expect(facilities.dispatcher.dispatch(command('more'))).rejects.toMatchObject({ code: 'unavailable' })
      clock.advance(30_250)
      await facilities.dispatcher.reconcile()
      expect(await facilities.dispatcher.inspector.summary(ASK)).toMatchObject({ tracked_commands: 0 })
      expect((await facilities.dispatcher.inspector.listTenants(FIRST, ASK)).items).toEqual([])
      expect(await left(':delivery:payload:', ':delivery:queue:', ':delivery:scope:')).toEqual([])
      clock.advance(24 * 3_600_000)
      for (let i = 0; i < 5; i++) await facilities.dispatcher.reconcile()
      expect(await left(':command:', ':contexts:row:', ':connections:row:', ':dedup:seen', ':dedup:of:')).toEqual([])
    })

    it('that is full refuses a command as a whole: an existing one is listed as before', async () => {
      const ids = ['c1', 'c2', 'c3']
      // In one turn, so that they may share a run; rejected, so that each would take the place of its record.
      const dispatchAll = () =>
        Promise.all(
          ids.map((id) =>
            facilities.dispatcher
              .dispatch(command(id, { require_waiter: true }))
              .then(({ terminal }) => terminal?.reason)
              .catch(({ outcome }) => outcome),
          ),
        )
      const listed = async () =>
        (await facilities.dispatcher.inspector.listCommands?.({}, FIRST, ASK))?.items.map(
          ({ command_id }) => command_id,
        )
      expect(await dispatchAll()).toEqual(ids.map(() => 'no_waiter'))
      // The store decides the order: the calls were not awaited one by one.
      const inOrder = await listed()
      expect(inOrder?.toSorted()).toEqual(ids)
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      expect(await dispatchAll()).toEqual(ids.map(() => 'not_run'))
      await server.cli('CONFIG', 'SET', 'maxmemory', '0')
      expect(await listed()).toEqual(inOrder)
      expect(await dispatchAll()).toEqual(ids.map(() => 'no_waiter'))
    })

    it('that is full still delivers, acknowledges and ends its commands', async () => {
      const tab = connection()
      await facilities.connections.connect({ ...first, client_type: 'web' })
      await facilities.dispatcher.dispatch(command('c1'))
      await facilities.dispatcher.attach(first, tab.deliver)
      await soon(() => expect(tab.ids()).toEqual(['c1']))
      await facilities.dispatcher.dispatch(command('c2'))
      await server.cli('CONFIG', 'SET', 'maxmemory', '1')
      await soon(() => expect(tab.ids()).toContain('c2'))
      expect(await facilities.dispatcher.settle({ ...key('c1'), state: 'resulted' })).toBe(true)
      expect(await facilities.dispatcher.cancel(key('c2'))).toBe(true)
      expect(await left(':delivery:payload:', ':delivery:scope:')).toEqual([])
    })

    it('without writes loses entries that are not reported any more', async () => {
      await fill()
      const before = await size()
      clock.advance(30_000)
      await facilities.dispatcher.reconcile()
      clock.advance(24 * 3_600_000)
      for (let i = 0; i < 5; i++) await facilities.dispatcher.reconcile()
      expect(await left(':contexts:row:', ':connections:row:', ':delivery:command:')).toEqual([])
      expect(await size()).toBeLessThan(before / 4)
    })
  })
