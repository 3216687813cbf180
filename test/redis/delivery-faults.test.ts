/** A node of the dispatcher whose store, registry or connection fails it. */
import { expect, it } from 'vitest'
import { createRedisCommandDispatcher } from '../../src/redis/delivery/facility.js'
import { CONCLUDE } from '../../src/redis/delivery/scripts.js'
import { ASK, createClock, FIRST } from '../contract/clock.js'
import { command, connection, eventually, first, key } from '../contract/delivery-commands.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { clients, startServer } from './server.js'
import { soon } from './wait-for.js'

describeNode('a node of the dispatcher', ({ client, make }) => {
  it('refuses to admit while the store is down, and is itself again when that is back', async () => {
    const own = await startServer()
    const other = await clients['node-redis']([own.port])
    const dispatcher = createRedisCommandDispatcher({
      client: other.client,
      deploymentId: 'down',
      commandTimeoutMs: 1_000,
    })
    try {
      const tab = connection()
      await dispatcher.attach(first, tab.deliver)
      await own.kill()
      await expect(dispatcher.dispatch(command('c1'))).rejects.toMatchObject({ code: 'unavailable' })
      const back = await startServer({ port: own.port })
      try {
        // The store came back empty: the waiter says again that it is there.
        await soon(async () =>
          expect((await dispatcher.dispatch(command('c2', { requireWaiter: true }))).terminal).toBeNull(),
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

  it('asks again with its next pass when the registry could not say who is current', async () => {
    let isDown = false
    const currentInstance = async () => {
      if (isDown) throw new Error('the registry is away')
      return 'i1'
    }
    const { dispatcher } = make({ connections: { currentInstance } })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    isDown = true
    await dispatcher.dispatch(command('c1'))
    const failed = async () => (await dispatcher.inspector.listNodes(FIRST, ASK)).items[0]?.counters.other
    await soon(async () => expect(await failed()).toMatchObject({ fence_unavailable: expect.any(Number) }))
    expect(tab.ids()).toEqual([])
    isDown = false
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  it('says again what an attempt came to where that did not come through', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const { dispatcher } = make({ client: lossy, ackTimeoutMs: 600_000, onError: null })
    await dispatcher.attach(first, connection().deliver)
    const unsent = plan.meet('unsent', await runsOf(CONCLUDE))
    await dispatcher.dispatch(command('c1', { deadlineMs: 600_000 }))
    await unsent
    await soon(async () =>
      expect((await dispatcher.inspector.status(key('c1'), ASK))?.attempts).toMatchObject({
        confirmed: 1,
        last_outcome: 'handed_over',
      }),
    )
  })

  it('takes the late end of one attempt for no end of the next', async () => {
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
    const counted = async () => (await dispatcher.inspector.listNodes(FIRST, ASK)).items[0]?.counters.other.late_outcome
    await eventually(async () => expect(await counted()).toBe(1))
    expect((await dispatcher.inspector.status(key('c1'), ASK))?.attempts).toMatchObject({
      count: 2,
      last_outcome: null,
    })
  })
})
