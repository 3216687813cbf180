/** What is the shared-store dispatcher's own: several nodes, what they tell each other, and what an observer sees of it. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { redisComposition } from '../../src/redis/composition.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections.js'
import { createRedisCommandDispatcher, type RedisCommandDispatcherOptions } from '../../src/redis/delivery.js'
import { createRedisFacilities } from '../../src/redis/facilities.js'
import { ASK, at, createClock, FIRST, walk } from '../contract/clock.js'
import { command, connection, eventually, first, key, second } from '../contract/delivery-commands.js'
import { describeStores } from './matrix.js'
import { type Connected, clients, describeRedis, type Server, startServer } from './server.js'

type Dispatcher = ReturnType<typeof createRedisCommandDispatcher>

/** Waits for another process or node, in real time. */
async function soon(check: () => unknown): Promise<void> {
  const end = Date.now() + 10_000
  while (true)
    try {
      return void (await check())
    } catch (error) {
      if (Date.now() > end) throw error
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
}

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
    const where = { ...place(), ...options }
    return { where, a: node({ ...where, nodeId: 'a' }), b: node({ ...where, nodeId: 'b' }) }
  }

  it(`deliver on one what the other admitted (${kind})`, async () => {
    const { a, b } = pair()
    const tab = connection()
    await b.attach(first, tab.deliver)
    await a.dispatch(command('c1', { requireWaiter: true }))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
    await soon(async () =>
      expect(await a.inspector.status(key('c1'), ASK)).toMatchObject({
        attempts: { count: 1, last_node_id: 'b', last_outcome: 'delivered' },
      }),
    )
    expect(await a.acknowledge({ ...first, command_id: 'c1' })).toBe(true)
    expect(await a.settle({ ...key('c1'), state: 'resulted' })).toBe(true)
    expect(await b.settle({ ...key('c1'), state: 'resulted' })).toBe(false)
  })

  it('are told at once: a run of commands does not wait for passes of the loop', async () => {
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
    // By the passes alone it would take half a second each.
    expect(performance.now() - start).toBeLessThan(5_000)
  })

  it('abort the signal of an attempt on one when the command is cancelled on the other', async () => {
    const { a, b } = pair()
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
    // Its hand-over never ends; the mailbox goes on all the same.
    await soon(() => expect(tab.ids()).toEqual(['c1', 'c2']))
    expect(signals[1]?.aborted).toBe(false)
  })

  it('let the client move: the former node hears of it and hands nothing over any more', async () => {
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

  it('hold one reservation per command in the scope, whichever shard it is in, and give it back at the end', async () => {
    const { where, a, b } = pair({ capacity: 2 })
    const observer = redisComposition(where).inspectors.delivery
    const tenants = () => walk((page) => observer?.listTenants(page, ASK) ?? Promise.reject(new Error('none')))
    const scopes = ['red', 'green', 'blue', 'black', 'white']
    for (const scope_id of scopes) {
      for (const id of ['1', '2']) await a.dispatch(command(`${scope_id}${id}`, { scope_id }))
      expect(await b.dispatch(command(`${scope_id}3`, { scope_id }))).toMatchObject({
        terminal: { state: 'rejected', reason: 'capacity_exceeded' },
      })
      // The same command again reserves nothing more, whatever scope it names now.
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
      // The end is known, so a repeat that finds it leaves no reservation behind.
      await a.dispatch(command(`${scope_id}3`, { scope_id }))
    }
    expect(await tenants()).toEqual([])
  })

  it('reserve nothing for a command that is refused for another reason', async () => {
    const { where, a } = pair()
    for (const scope_id of ['red', 'green', 'blue', 'black', 'white'])
      expect((await a.dispatch(command(scope_id, { scope_id, requireWaiter: true }))).terminal).toMatchObject({
        reason: 'no_waiter',
      })
    expect((await redisComposition(where).inspectors.delivery?.listTenants(FIRST, ASK))?.items).toEqual([])
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
    expect((await b.dispatch(command('c0', { requireWaiter: true }))).terminal).toMatchObject({ reason: 'no_waiter' })
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

describeRedis('a node of the dispatcher', () => {
  let server: Server
  let connected: Connected
  let open: { close(): unknown }[] = []
  let deployments = 0
  beforeAll(async () => {
    server = await startServer()
    connected = await clients.ioredis([server.port])
  })
  afterEach(async () => {
    for (const each of open) await each.close()
    open = []
  })
  afterAll(async () => {
    await connected.close()
    await server.stop()
  })
  const make = (options: Partial<RedisCommandDispatcherOptions> = {}) => {
    const deploymentId = options.deploymentId ?? `own${++deployments}`
    const dispatcher = createRedisCommandDispatcher({ client: connected.client, deploymentId, ...options })
    open.push(dispatcher)
    return { deploymentId, dispatcher }
  }
  const observe = (deploymentId: string, options: object = {}) => {
    const { delivery } = redisComposition({ client: connected.client, deploymentId, ...options }).inspectors
    if (!delivery) throw new Error('the composition has no delivery')
    return delivery
  }

  it('finds what a lost bell would have told it with its next pass', async () => {
    const { deploymentId, dispatcher } = make()
    const other = make({ deploymentId }).dispatcher
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await server.cli('CLIENT', 'KILL', 'TYPE', 'pubsub')
    await other.dispatch(command('c1'))
    await soon(() => expect(tab.ids()).toEqual(['c1']))
  })

  it('that was silent for longer than its lease looks for what it missed', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    // Taken for dead by now: another node leaves it no word, and in the end forgets that anybody waits there.
    clock.advance(70_000)
    const other = make({ deploymentId, now: clock.now }).dispatcher
    expect((await other.dispatch(command('c0', { requireWaiter: true }))).terminal).toMatchObject({
      reason: 'no_waiter',
    })
    await other.dispatch(command('c1'))
    await other.reconcile()
    await dispatcher.reconcile()
    await eventually(() => expect(tab.ids()).toEqual(['c1']))
    expect((await other.dispatch(command('c2', { requireWaiter: true }))).terminal).toBeNull()
  })

  it('is shown as stale once it is silent, and its loops as dead', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ nodeId: 'quiet', now: clock.now })
    await dispatcher.reconcile()
    await dispatcher.inspector.listNodes(FIRST, ASK)
    const later = (ms: number) => observe(deploymentId, { now: () => clock.now() + ms }).listNodes(FIRST, ASK)
    expect((await later(5_000)).items).toMatchObject([{ node_id: 'quiet', stale: false, staleness_ms: 5_000 }])
    expect((await later(5_001)).items).toMatchObject([
      { stale: true, staleness_ms: 5_001, reconciliation_loop_alive: false, mailbox_listener_alive: false },
    ])
    expect((await later(-600_000)).items).toMatchObject([{ stale: false, staleness_ms: 0 }])
    expect((await later(3_600_000)).items).toEqual([])
  })

  it('that was closed says so, and leaves its mailboxes to others', async () => {
    const { deploymentId, dispatcher } = make({ nodeId: 'gone' })
    await dispatcher.attach(first, connection().deliver)
    await dispatcher.close()
    expect((await observe(deploymentId).listNodes(FIRST, ASK)).items).toMatchObject([
      { node_id: 'gone', connection_waiters: 0, reconciliation_loop_alive: false, mailbox_listener_alive: false },
    ])
    const other = make({ deploymentId }).dispatcher
    expect((await other.dispatch(command('c1', { requireWaiter: true }))).terminal).toMatchObject({
      reason: 'no_waiter',
    })
  })

  it('refuses options that are no bounds', () => {
    for (const wrong of [{ ackTimeoutMs: 0 }, { maxAttempts: 1.5 }, { capacity: Number.NaN }, { maxRetained: -1 }])
      expect(() => make(wrong)).toThrow(RangeError)
  })

  it('keeps to the bounds of a shard and of a node', async () => {
    const { dispatcher } = make({ maxTracked: 1, maxWaiters: 1, maxRetained: 2 })
    await dispatcher.dispatch(command('c1'))
    expect((await dispatcher.dispatch(command('c2'))).terminal).toMatchObject({ reason: 'overloaded' })
    await dispatcher.attach(first, () => {})
    await dispatcher.attach(second, () => {})
    await expect(dispatcher.attach({ ...first, client_id: 'phone' }, () => {})).rejects.toMatchObject({
      code: 'capacity_exceeded',
    })
    for (const id of ['c1', 'c3', 'c4']) {
      await dispatcher.dispatch(command(id))
      await dispatcher.cancel(key(id))
    }
    const kept = await Promise.all(['c1', 'c2', 'c3', 'c4'].map((id) => dispatcher.inspector.status(key(id), ASK)))
    expect(kept.map(Boolean)).toEqual([false, true, true, true])
  })

  it('asks for the capacity of each scope, and reserves nothing where the answer is no number', async () => {
    const { dispatcher } = make({
      capacity: (scope) => (scope === 'big' ? 2 : scope === 'open' ? Infinity : Number.NaN),
    })
    const states = []
    for (const [id, scope_id] of Object.entries({ c1: 'big', c2: 'big', c3: 'big', c4: 'small', c5: 'open' }))
      states.push((await dispatcher.dispatch(command(id, { scope_id }))).admission.state)
    expect(states).toEqual(['admitted', 'admitted', 'rejected', 'rejected', 'admitted'])
  })

  it('lets a command expire when all nodes were away at its deadline, and its reservation is over before that', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    await dispatcher.dispatch(command('c1'))
    await dispatcher.close()
    const later = observe(deploymentId, { now: () => clock.now() + 30_000 })
    expect((await later.listTenants(FIRST, ASK)).items).toEqual([])
    expect((await later.summary(ASK)).tracked_commands).toBe(1)
    clock.advance(30_000)
    await make({ deploymentId, now: clock.now }).dispatcher.reconcile()
    expect((await later.status(key('c1'), ASK))?.terminal).toMatchObject({ state: 'expired', at: at(30_000) })
  })

  it('forgets in the store what it no longer answers for', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now, capacity: 1 })
    await dispatcher.attach(first, () => {})
    await dispatcher.dispatch(command('c1', { scope_id: 'red' }))
    await dispatcher.dispatch(command('c2', { scope_id: 'red' }))
    await dispatcher.acknowledge({ ...first, command_id: 'c1' })
    await dispatcher.settle({ ...key('c1'), state: 'resulted' })
    clock.advance(3_600_000)
    await dispatcher.reconcile()
    const left = (await server.cli('KEYS', `relayscope:{${deploymentId}:0}:delivery:*`)).split('\n')
    const names = left.map((name) => name.split(':')[4])
    expect(names.filter((name) => !['boots', 'of', 'waiter', 'seq', 'scope-seq'].includes(name as string))).toEqual([])
  })

  it('refuses to admit while the store is down, and is itself again when that is back', async () => {
    const own = await startServer()
    const other = await clients['node-redis']([own.port])
    const dispatcher = createRedisCommandDispatcher({
      client: other.client,
      deploymentId: 'down',
      commandTimeoutMs: 200,
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

  it('gives the place of a command whose deadline has passed to another before the loop has come by', async () => {
    const clock = createClock()
    const { dispatcher } = make({ now: clock.now, capacity: 1 })
    await dispatcher.dispatch(command('c1', { deadlineMs: 500 }))
    clock.advance(500)
    expect((await dispatcher.dispatch(command('c2'))).terminal).toBeNull()
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

  it('says again that a client has left when the store did not take it', async () => {
    const { deploymentId, dispatcher } = make()
    const waiter = await dispatcher.attach(first, () => {})
    const name = `relayscope:{${deploymentId}:0}:delivery:waiter:ada:tab`
    await server.cli('RENAME', name, `${name}:aside`)
    await server.cli('SET', name, 'x')
    await waiter.detach()
    await server.cli('RENAME', `${name}:aside`, name)
    await dispatcher.reconcile()
    await soon(async () => expect(await server.cli('EXISTS', name)).toBe('0'))
  })

  it('hands nothing over for a client that waits elsewhere by now, though nobody has told it', async () => {
    const { deploymentId, dispatcher } = make()
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await server.cli('HSET', `relayscope:{${deploymentId}:0}:delivery:waiter:ada:tab`, 'token', 'another')
    await dispatcher.dispatch(command('c1'))
    await soon(async () =>
      expect((await dispatcher.inspector.listNodes(FIRST, ASK)).items[0]?.connection_waiters).toBe(0),
    )
    expect(tab.ids()).toEqual([])
  })

  it('that has died is left no word, and a minute later nothing of its mailboxes', async () => {
    const clock = createClock()
    const dying = await clients.ioredis([server.port])
    const { deploymentId, dispatcher } = make({ client: dying.client, now: clock.now, commandTimeoutMs: 50 })
    await dispatcher.attach(first, () => {})
    await dispatcher.reconcile()
    await dying.close()
    const left = async (kind: string) =>
      (await server.cli('KEYS', `relayscope:{${deploymentId}:0}:delivery:${kind}*`)).split('\n').filter(Boolean)
    const other = make({ deploymentId, now: clock.now }).dispatcher
    clock.advance(5_000)
    await other.dispatch(command('c1', { deadlineMs: 600_000 }))
    expect(await left('calls')).toEqual([])
    expect(await left('waiter')).toHaveLength(1)
    clock.advance(60_000)
    await other.reconcile()
    expect(await left('waiter')).toEqual([])
    expect(await left('of:')).toEqual([])
  })

  it('is part of the facilities, which fence by their own registry', async () => {
    const facilities = createRedisFacilities({ client: connected.client, deploymentId: 'whole', nodeId: 'n1' })
    open.push(facilities)
    await expect(facilities.dispatcher.attach(first, () => {})).rejects.toMatchObject({ code: 'stale_instance' })
    await facilities.connections.connect({ ...first, client_type: 'web' })
    await facilities.dispatcher.attach(first, () => {})
    expect((await facilities.dispatcher.inspector.listNodes(FIRST, ASK)).items).toMatchObject([{ node_id: 'n1' }])
  })

  describe('beside a legacy stream', () => {
    const legacy = { stream: 'commands', group: 'workers' }
    const depths = async (stream = legacy) => {
      const { legacy_stream_depth, legacy_pending_depth } = await observe('legacy', { legacy: stream }).summary(ASK)
      return [legacy_stream_depth, legacy_pending_depth]
    }

    it('tells its length and what is pending, changes nothing, and knows what it cannot know', async () => {
      expect((await observe('legacy').summary(ASK)).legacy_stream_depth).toBeNull()
      expect(await depths()).toEqual([0, 0])
      for (let n = 0; n < 3; n++) await server.cli('XADD', 'commands', '*', 'n', String(n))
      expect(await depths()).toEqual([3, null])
      await server.cli('XGROUP', 'CREATE', 'commands', 'workers', '0')
      expect(await depths()).toEqual([3, 0])
      await server.cli('XREADGROUP', 'GROUP', 'workers', 'w1', 'COUNT', '2', 'STREAMS', 'commands', '>')
      const before = await server.cli('XINFO', 'STREAM', 'commands', 'FULL')
      expect(await depths()).toEqual([3, 2])
      const steady = (text: string) => text.replace(/(seen-time|active-time)\n\d+/g, '$1')
      expect(steady(await server.cli('XINFO', 'STREAM', 'commands', 'FULL'))).toBe(steady(before))
      await server.cli('SET', 'nostream', 'x')
      expect(await depths({ stream: 'nostream', group: 'workers' })).toEqual([null, null])
    })
  })
})
