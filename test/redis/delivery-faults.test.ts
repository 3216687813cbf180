/** A node of the dispatcher while its store, registry or connection fails. */
import { expect, it } from 'vitest'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { ASK, createClock, FIRST } from '../contract/clock.js'
import { command, connection, eventually, first, key } from '../contract/delivery-commands.js'
import { runsOf } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { clients, startServer } from './server.js'
import { soon } from './wait-for.js'

describeNode('a node of the dispatcher', ({ client, make, server }) => {
  it('rejects dispatches while the store is down, and recovers when it is back', async () => {
    const own = await startServer()
    const other = await clients['node-redis']([own.port])
    const dispatcher = createRedisCommandDispatcher({
      client: other.client,
      deploymentId: 'down',
      commandTimeoutMs: 1_000,
      onError: null,
    })
    try {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await own.kill()
      await expect(dispatcher.dispatch(command('c1'))).rejects.toMatchObject({ code: 'unavailable' })
      const back = await startServer({ port: own.port })
      try {
        // The store came back empty: the node attaches its waiter again.
        await soon(async () =>
          expect((await dispatcher.dispatch(command('c2', { require_waiter: true }))).terminal).toBeNull(),
        )
        await soon(() => expect(tab.ids()).toContain('c2'))
      } finally {
        await dispatcher.close()
        await back.stop()
      }
    } finally {
      await dispatcher.close()
      await other.close()
      await own.stop()
    }
  })

  it('expires a command whose mailbox was overwritten, and other commands of the shard', async () => {
    const { dispatcher, deploymentId } = make({ onError: null })
    const foreign = `relayscope:{${deploymentId}:0}:delivery:queue:ada:other`
    await server().cli('SET', foreign, 'foreign')
    const other = { ...command('c1', { deadline_ms: 300 }), client_id: 'other' }
    await dispatcher.dispatch(other)
    await dispatcher.dispatch(command('c2', { deadline_ms: 300 }))
    for (const { client_id, command_id } of [other, command('c2')])
      await soon(async () =>
        expect(await dispatcher.inspector.status({ user_id: 'ada', client_id, command_id }, ASK)).toMatchObject({
          terminal: { state: 'expired' },
        }),
      )
    await soon(async () => expect((await dispatcher.inspector.summary(ASK)).tracked_commands).toBe(0))
  })

  it('releases the reservation in another shard of a command that was certainly not admitted', async () => {
    const full = await startServer({ args: ['--maxmemory-policy', 'noeviction'] })
    const other = await clients.ioredis([full.port])
    let fill = false
    // The store is full during the admission only: scope and user may be on different masters, of which one is full.
    const client = new Proxy(other.client, {
      get(own, property) {
        const value = Reflect.get(own, property, own)
        if (property !== 'call') return typeof value === 'function' ? value.bind(own) : value
        return async (...words: string[]) => {
          const isAdmission = fill && runsOf('admit')(words)
          if (isAdmission) await full.cli('CONFIG', 'SET', 'maxmemory', '1')
          try {
            return await value.apply(own, words)
          } finally {
            if (isAdmission) await full.cli('CONFIG', 'SET', 'maxmemory', '0')
          }
        }
      },
    })
    const dispatcher = createRedisCommandDispatcher({ client, deploymentId: 'elsewhere', shards: 4, capacity: 1 })
    try {
      const scopes = ['red', 'green', 'blue', 'black', 'white']
      for (const id of scopes) await dispatcher.dispatch(command(id, { scope_id: `${id} before` }))
      fill = true
      for (const id of scopes)
        await expect(dispatcher.dispatch(command(`${id} full`, { scope_id: id }))).rejects.toMatchObject({
          outcome: 'not_run',
        })
      fill = false
      for (const id of scopes)
        expect((await dispatcher.dispatch(command(`${id} then`, { scope_id: id }))).terminal).toBeNull()
    } finally {
      await dispatcher.close()
      await other.close()
      await full.stop()
    }
  })

  it('asks the registry again with its next pass after the registry failed', async () => {
    let isDown = false
    const currentInstance = async () => {
      if (isDown) throw new Error('the registry is down')
      return 'i1'
    }
    const { dispatcher } = make({ connections: { currentInstance } })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    // The attach has asked the registry by then.
    await dispatcher.reconcile()
    isDown = true
    await dispatcher.dispatch(command('c1'))
    const failed = async () => (await dispatcher.inspector.listNodes(FIRST, ASK)).items[0]?.counters?.other
    await soon(async () => expect(await failed()).toMatchObject({ fence_unavailable: expect.any(Number) }))
    expect(tab.ids()).toEqual([])
    isDown = false
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  it('reports the outcome of an attempt again after the first report failed', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const { dispatcher } = make({ client: lossy, ackTimeoutMs: 600_000, commandTimeoutMs: 2_000, onError: null })
    await dispatcher.attach(first, connection().deliver)
    const unsent = plan.meet('unsent', runsOf('conclude'))
    await dispatcher.dispatch(command('c1', { deadline_ms: 600_000 }))
    await unsent
    await soon(async () =>
      expect((await dispatcher.inspector.status(key('c1'), ASK))?.attempts).toMatchObject({
        confirmed: 1,
        last_outcome: 'handed_over',
      }),
    )
  })

  it('does not end an attempt when deliver of an earlier attempt resolves late', async () => {
    const clock = createClock()
    const { dispatcher } = make({ now: clock.now })
    const ends: (() => void)[] = []
    const tab = connection(() => new Promise<void>((resolve) => ends.push(resolve)))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    for (const ms of [5_000, 5_000]) {
      clock.advance(ms)
      await dispatcher.reconcile()
    }
    await tab.got(2)
    ends[0]?.()
    const counted = async () =>
      (await dispatcher.inspector.listNodes(FIRST, ASK)).items[0]?.counters?.other?.late_outcome
    await eventually(async () => expect(await counted()).toBe(1))
    expect((await dispatcher.inspector.status(key('c1'), ASK))?.attempts).toMatchObject({
      count: 2,
      last_outcome: null,
    })
  })
})
