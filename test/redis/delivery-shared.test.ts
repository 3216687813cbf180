/** Two nodes of a dispatcher over one store, and an observer in another process. */
import { afterEach, expect, it } from 'vitest'
import { redisComposition } from '../../src/redis/composition/inspectors.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisCommandDispatcher, type RedisCommandDispatcherOptions } from '../../src/redis/delivery/facility.js'
import { ASK, FIRST, walk } from '../contract/clock.js'
import { command, connection, first, key, second } from '../contract/delivery-commands.js'
import { describeStores } from './matrix.js'
import { soon } from './wait-for.js'

type Dispatcher = ReturnType<typeof createRedisCommandDispatcher>

describeStores('two nodes of a dispatcher in Redis', (kind, place) => {
  let open: Dispatcher[] = []
  const node = (options: RedisCommandDispatcherOptions) => {
    const dispatcher = createRedisCommandDispatcher(options)
    open.push(dispatcher)
    return dispatcher
  }
  afterEach(async () => {
    await Promise.all(open.map((dispatcher) => dispatcher.close()))
    open = []
  })
  const pair = (options: Partial<RedisCommandDispatcherOptions> = {}) => {
    const where = place()
    const both = { ...where, ...options }
    return { where, a: node({ ...both, nodeId: 'a' }), b: node({ ...both, nodeId: 'b' }) }
  }

  it(`deliver commands on one that the other admitted (${kind})`, async () => {
    const { a, b } = pair()
    const tab = connection()
    await b.attach(first, tab.deliver)
    await a.dispatch(command('c1', { require_waiter: true }))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    await soon(async () =>
      expect(await a.inspector.status(key('c1'), ASK)).toMatchObject({
        attempts: { count: 1, last_node_id: 'b', last_outcome: 'handed_over' },
      }),
    )
    expect(await a.acknowledge({ ...first, command_id: 'c1' })).toBe(true)
    expect(await a.settle({ ...key('c1'), state: 'resulted' })).toBe(true)
    expect(await b.settle({ ...key('c1'), state: 'resulted' })).toBe(false)
  })

  it('receive messages at once, without waiting for a pass of the loop', async () => {
    const { a, b } = pair()
    const tab = connection()
    await b.attach(first, tab.deliver)
    await soon(async () => {
      const nodes = (await b.inspector.listNodes(FIRST, ASK)).items
      expect(nodes.find(({ node_id }) => node_id === 'b')?.mailbox_listener_alive).toBe(true)
    })
    const start = performance.now()
    for (let n = 1; n <= 20; n++) {
      await a.dispatch(command(`c${n}`))
      await soon(() => expect(tab.ids()).toHaveLength(n))
    }
    // With passes alone, each command would take half a second.
    expect(performance.now() - start).toBeLessThan(5_000)
  })

  it('abort the signal of an attempt on one when the command is cancelled on the other', async () => {
    const { a, b } = pair({ maxDeliveriesPerClient: 1 })
    const signals: AbortSignal[] = []
    const tab = connection((_, signal) => {
      signals.push(signal)
      return new Promise(() => {})
    })
    await b.attach(first, tab.deliver)
    await a.dispatch(command('c1'))
    await a.dispatch(command('c2'))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    expect(await a.cancel(key('c1'))).toBe(true)
    await soon(() => expect(signals[0]?.aborted).toBe(true))
    // Its `deliver` never resolves; the mailbox continues anyway.
    await soon(() => expect(tab.ids()).toEqual(['c1', 'c2']))
    expect(signals[1]?.aborted).toBe(false)
  })

  it('let the client move: the former node is notified and delivers nothing more', async () => {
    const { a, b } = pair()
    const [old, tab] = [connection(), connection()]
    await a.attach(first, old.deliver)
    await b.attach(second, tab.deliver)
    await a.dispatch(command('c1'))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    await soon(async () => {
      const nodes = (await a.inspector.listNodes(FIRST, ASK)).items
      expect(nodes.find(({ node_id }) => node_id === 'a')?.connection_waiters).toBe(0)
    })
    expect(old.ids()).toEqual([])
    expect(await a.acknowledge({ ...first, command_id: 'c1' })).toBe(false)
    expect(await a.acknowledge({ ...second, command_id: 'c1' })).toBe(true)
  })

  it('hold one reservation for each command in its scope, in any shard, and release it at the end', async () => {
    const { where, a, b } = pair({ capacity: 2, shards: 5 })
    const { client, deploymentId } = where
    const observer = redisComposition({ client, deploymentId }).inspectors.delivery
    const tenants = () => walk((page) => observer?.listTenants(page, ASK) ?? Promise.reject(new Error('none')))
    const scopes = ['red', 'green', 'blue', 'black', 'white']
    for (const scope_id of scopes) {
      for (const id of ['1', '2']) await a.dispatch(command(`${scope_id}${id}`, { scope_id }))
      expect(await b.dispatch(command(`${scope_id}3`, { scope_id }))).toMatchObject({
        terminal: { state: 'rejected', reason: 'capacity_exceeded' },
      })
      // Dispatching the same command again reserves nothing more, even with another scope.
      await b.dispatch(command(`${scope_id}1`, { scope_id: 'other' }))
      await b.dispatch(command(`${scope_id}1`, { scope_id }))
    }
    expect((await tenants()).map(({ scope_id, reserved_commands }) => [scope_id, reserved_commands]).sort()).toEqual(
      scopes.map((scope) => [scope, 2]).sort(),
    )
    for (const scope_id of scopes) {
      await b.cancel(key(`${scope_id}1`))
      expect((await a.dispatch(command(`${scope_id}3`, { scope_id }))).terminal).toBeNull()
      await b.cancel(key(`${scope_id}2`))
      await b.cancel(key(`${scope_id}3`))
      // Dispatching a command again after its end leaves no reservation.
      await a.dispatch(command(`${scope_id}3`, { scope_id }))
    }
    expect(await tenants()).toEqual([])
  })

  it('reserve nothing for a command that is refused for another reason', async () => {
    const { where, a } = pair({ shards: 5 })
    const { client, deploymentId } = where
    for (const scope_id of ['red', 'green', 'blue', 'black', 'white'])
      expect((await a.dispatch(command(scope_id, { scope_id, require_waiter: true }))).terminal).toMatchObject({
        reason: 'no_waiter',
      })
    expect(
      (await redisComposition({ client, deploymentId }).inspectors.delivery?.listTenants(FIRST, ASK))?.items,
    ).toEqual([])
  })

  it('fence by the registry that all nodes share', async () => {
    const where = place()
    const connections = createRedisConnectionRegistry(where)
    const [a, b] = [node({ ...where, connections }), node({ ...where, connections })]
    await expect(a.attach(first, connection().deliver)).rejects.toMatchObject({ code: 'stale_instance' })
    await connections.connect({ ...first, client_type: 'browser' })
    const old = connection()
    await a.attach(first, old.deliver)
    await connections.connect({ ...second, client_type: 'browser' })
    expect((await b.dispatch(command('c0', { require_waiter: true }))).terminal).toMatchObject({ reason: 'no_waiter' })
    await b.dispatch(command('c1'))
    const tab = connection()
    await b.attach(second, tab.deliver)
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    expect(old.ids()).toEqual([])
    expect(await a.acknowledge({ ...first, command_id: 'c1' })).toBe(false)
    expect(await a.settle({ ...key('c1'), state: 'resulted', instance_id: 'i1' })).toBe(false)
    expect(await a.settle({ ...key('c1'), state: 'resulted', instance_id: 'i2' })).toBe(true)
  })

  it('are both listed, alive and listening, for an observer in another process', async () => {
    const { where } = pair()
    const observer = redisComposition(where).inspectors.delivery
    await soon(async () => {
      const nodes = await walk((page) => observer?.listNodes(page, ASK) ?? Promise.reject(new Error('none')), 1)
      expect(nodes.map(({ node_id }) => node_id).sort()).toEqual(['a', 'b'])
      for (const shown of nodes)
        expect(shown).toMatchObject({ mailbox_listener_alive: true, reconciliation_loop_alive: true, stale: false })
    })
  })
})
