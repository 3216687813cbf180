/** The attached clients of a node that misses messages, stops renewing its lease, is closed, or dies. */
import { expect, it } from 'vitest'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { ASK, createClock, FIRST } from '../contract/clock.js'
import { command, connection, eventually, first } from '../contract/delivery-commands.js'
import { describeNode } from './dispatcher-node.js'
import { clients } from './server.js'
import { soon } from './wait-for.js'

describeNode('a node of the dispatcher', ({ server, client, keep, make, observe }) => {
  it('is part of the facilities, and fences by their registry', async () => {
    const facilities = createRedisFacilities({ client: client(), deploymentId: 'whole', nodeId: 'n1', onError: null })
    keep(facilities)
    await expect(facilities.dispatcher.attach(first, () => {})).rejects.toMatchObject({ code: 'stale_instance' })
    await facilities.connections.connect({ ...first, client_type: 'web' })
    await facilities.dispatcher.attach(first, () => {})
    expect((await facilities.dispatcher.inspector.listNodes(FIRST, ASK)).items).toMatchObject([{ node_id: 'n1' }])
  })

  it('reads a message that it missed on the channel with its next pass', async () => {
    const { deploymentId, dispatcher } = make()
    const other = make({ deploymentId }).dispatcher
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await server().cli('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await other.dispatch(command('c1'))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  it('whose lease has expired attaches its clients again and reads what it missed', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    // A first dispatch, so that the next one is sent before any loop runs a pass at the new time.
    const other = make({ deploymentId, now: clock.now }).dispatcher
    await other.dispatch(command('c9', { client_id: 'elsewhere' }))
    // Its lease has expired: other nodes give it no commands, and its client does not count as attached.
    clock.advance(70_000)
    expect((await other.dispatch(command('c0', { require_waiter: true }))).terminal).toMatchObject({
      reason: 'no_waiter',
    })
    await other.dispatch(command('c1'))
    await other.reconcile()
    await dispatcher.reconcile()
    await eventually(() => expect(tab.ids()).toEqual(['c1']))
    expect((await other.dispatch(command('c2', { require_waiter: true }))).terminal).toBeNull()
  })

  it('is listed as stale without heartbeats, and its loops as not alive', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ nodeId: 'quiet', now: clock.now })
    await dispatcher.reconcile()
    await dispatcher.inspector.listNodes(FIRST, ASK)
    const later = (ms: number) => observe(deploymentId, { now: () => clock.now() + ms }).listNodes(FIRST, ASK)
    expect((await later(5_000)).items).toMatchObject([{ node_id: 'quiet', stale: false, staleness_ms: 5_000 }])
    expect((await later(5_001)).items).toMatchObject([
      {
        stale: true,
        staleness_ms: 5_001,
        reconciliation_loop_alive: null,
        mailbox_listener_alive: null,
        active_drainers: null,
        connection_waiters: null,
        counters: expect.anything(),
      },
    ])
    expect((await later(-600_000)).items).toMatchObject([{ stale: false, staleness_ms: 0 }])
    expect((await later(3_600_000)).items).toEqual([])
  })

  it('that was closed is listed so, and its mailboxes are free for others', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ nodeId: 'gone', now: clock.now })
    await dispatcher.attach(first, connection().deliver)
    await dispatcher.close()
    const later = (ms: number) => observe(deploymentId, { now: () => clock.now() + ms }).listNodes(FIRST, ASK)
    expect((await later(0)).items).toMatchObject([
      { node_id: 'gone', connection_waiters: 0, reconciliation_loop_alive: false, mailbox_listener_alive: false },
    ])
    expect((await later(119_999)).items).toMatchObject([{ node_id: 'gone', stale: true }])
    expect((await later(120_000)).items).toEqual([])
    const other = make({ deploymentId, now: clock.now }).dispatcher
    expect((await other.dispatch(command('c1', { require_waiter: true }))).terminal).toMatchObject({
      reason: 'no_waiter',
    })
  })

  it('that starts with the id of a closed one is listed like any other', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ nodeId: 'again', now: clock.now })
    await dispatcher.close()
    clock.advance(60_000)
    await make({ deploymentId, nodeId: 'again', now: clock.now }).dispatcher.reconcile()
    const later = (ms: number) => observe(deploymentId, { now: () => clock.now() + ms }).listNodes(FIRST, ASK)
    expect((await later(0)).items).toMatchObject([{ node_id: 'again', stale: false }])
    expect((await later(3_599_999)).items).toMatchObject([{ node_id: 'again', stale: true }])
  })

  it('retries a detach that failed in the store', async () => {
    const { deploymentId, dispatcher } = make({ onError: null })
    const waiter = await dispatcher.attach(first, () => {})
    const name = `relayscope:{${deploymentId}:0}:delivery:waiters`
    await server().cli('RENAME', name, `${name}:aside`)
    await server().cli('SET', name, 'x')
    await waiter.detach()
    await server().cli('DEL', name)
    await server().cli('RENAME', `${name}:aside`, name)
    await dispatcher.reconcile()
    await soon(async () => expect(await server().cli('EXISTS', name)).toBe('0'))
  })

  it('that has died gets no commands, and loses its clients after another saw its lease expired for a while', async () => {
    const clock = createClock()
    const dying = await clients.ioredis([server().port])
    const { deploymentId, dispatcher } = make({ client: dying.client, now: clock.now })
    await dispatcher.attach(first, () => {})
    await dispatcher.reconcile()
    await dying.close()
    const left = (name: string) => server().cli('EXISTS', `relayscope:{${deploymentId}:0}:delivery:${name}`)
    const other = make({ deploymentId, now: clock.now }).dispatcher
    clock.advance(5_000)
    await other.dispatch(command('c1', { deadline_ms: 600_000 }))
    expect((await other.inspector.summary(ASK)).waiting_for_client).toBe(1)
    expect(await left('waiters')).toBe('1')
    await other.reconcile()
    clock.advance(2_000)
    for (const _ of [1, 2]) await other.reconcile()
    expect(await left('waiters')).toBe('0')
    const tab = connection()
    await other.attach(first, tab.deliver)
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  it('that confirms its waiters takes no mailbox from a newer waiter, even if it missed that message', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    const [old, tab] = [connection(), connection()]
    await dispatcher.attach(first, old.deliver)
    await dispatcher.reconcile()
    await server().cli('DEL', `relayscope:{${deploymentId}:0}:delivery:leases`)
    const other = make({ deploymentId, now: clock.now }).dispatcher
    await other.attach(first, tab.deliver)
    clock.advance(6_000)
    await dispatcher.reconcile()
    await other.dispatch(command('c1'))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    expect(old.ids()).toEqual([])
  })
})
