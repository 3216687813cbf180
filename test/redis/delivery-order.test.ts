/** Who waits at a mailbox is decided by the order of the attaches, however late any answer is. */
import { expect, it, vi } from 'vitest'
import { ATTACH, DETACH, ORDER } from '../../src/redis/delivery/script-nodes.js'
import { keyOf, shardPrefix } from '../../src/redis/store/keys.js'
import { createStore } from '../../src/redis/store/store.js'
import { command, connection, first, second } from '../contract/delivery-commands.js'
import { runAlone } from './delivery-shard.js'
import { describeNode } from './dispatcher-node.js'
import { lossyClient } from './lossy-client.js'
import { runsOf } from './lossy-plan.js'
import { soon } from './wait-for.js'

describeNode('a mailbox that two instances ask for', ({ client, make, server }) => {
  it('asks the registry for the current instance when it has its order, not before', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const currentInstance = vi.fn(async () => first.instance_id)
    const { dispatcher } = make({ client: lossy, connections: { currentInstance } })
    const held = plan.meet('held', await runsOf(ORDER))
    const attached = dispatcher.attach(first, connection().deliver)
    await held
    expect(currentInstance).not.toHaveBeenCalled()
    await plan.release()
    await attached
    expect(currentInstance).toHaveBeenCalled()
  })

  it('has a waiter with the greater order that says again that it waits take it back, and not the other one', async () => {
    const { deploymentId } = make({})
    const store = createStore({ client: client(), deploymentId })
    const { user_id, client_id } = first
    const attach = async (incarnation: string, instance: string, order: number) => {
      const node = {
        incarnation,
        node: incarnation,
        retention_ms: 1_000,
        max_kept: 10,
        patience_ms: 1_000,
        max_tracked: 10,
        max_per_user: 10,
      }
      const about = { user: user_id, client: client_id, token: instance, instance, lease_ms: 5_000, own_order: order }
      return (await runAlone(store, ATTACH, node, about)).answer
    }
    expect(await attach('a', first.instance_id, 1)).toBe(null)
    expect(await attach('b', second.instance_id, 2)).toBe(null)
    expect(await attach('a', first.instance_id, 1)).toBe(second.instance_id)
    expect(await attach('b', second.instance_id, 2)).toBe(null)
  })

  it('has nobody wait at it whose node was closed before the store had answered', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const { deploymentId, dispatcher } = make({ client: lossy })
    const held = plan.meet('held', await runsOf(ATTACH))
    const attached = Promise.resolve(dispatcher.attach(first, connection().deliver)).catch((error) => error)
    await held
    const waiter = keyOf(shardPrefix(deploymentId, 0), ['delivery', 'waiter', first.user_id, first.client_id])
    expect(await server().cli('EXISTS', waiter)).toBe('1')
    await dispatcher.close()
    await plan.release()
    expect(await attached).toMatchObject({ code: 'closed' })
    expect(await server().cli('EXISTS', waiter)).toBe('0')
  })

  it('hears again that its waiter has left where that did not come through', async () => {
    const { client: lossy, plan } = lossyClient(client())
    const { deploymentId, dispatcher } = make({ client: lossy, onError: null })
    const waiter = await dispatcher.attach(first, connection().deliver)
    void plan.meet('unsent', await runsOf(DETACH))
    await waiter.detach()
    await dispatcher.reconcile()
    const left = keyOf(shardPrefix(deploymentId, 0), ['delivery', 'left', first.user_id, first.client_id])
    await soon(async () => expect(await server().cli('EXISTS', left)).toBe('1'))
  })

  it('hands nothing to an instance that was superseded since it attached, and has it wait no more', async () => {
    let current = first.instance_id
    const { deploymentId, dispatcher } = make({ connections: { currentInstance: async () => current } })
    const [old, tab] = [connection(), connection()]
    await dispatcher.attach(first, old.deliver)
    current = second.instance_id
    await dispatcher.dispatch(command('c1'))
    const waiter = keyOf(shardPrefix(deploymentId, 0), ['delivery', 'waiter', first.user_id, first.client_id])
    await soon(async () => expect(await server().cli('EXISTS', waiter)).toBe('0'))
    await dispatcher.attach(second, tab.deliver)
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    expect(old.ids()).toEqual([])
  })

  it('goes on draining to a waiter that an older one had replaced', async () => {
    const { deploymentId, dispatcher } = make({})
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    const waiter = keyOf(shardPrefix(deploymentId, 0), ['delivery', 'waiter', first.user_id, first.client_id])
    await server().cli('HSET', waiter, 'token', 'older', 'incarnation', 'gone', 'order', '1')
    await dispatcher.dispatch(command('c1'))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })
})
