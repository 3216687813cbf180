/** What is the memory dispatcher's own: its bounds, its loop, its fencing by a registry, and deliverers that misbehave. */
import { getActiveResourcesInfo } from 'node:process'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery.js'
import { Refusal } from '../../src/refusal.js'
import { ASK, at, type Clock, createClock, walk } from '../contract/clock.js'
import { command, connection, eventually, first, key, second } from '../contract/delivery-commands.js'

let clock: Clock
let dispatcher: ReturnType<typeof createCommandDispatcher>
const open = (options: CommandDispatcherOptions = {}) => {
  clock = createClock()
  dispatcher = createCommandDispatcher({ now: clock.now, ...options })
}
const advance = async (ms: number) => {
  clock.advance(ms)
  await dispatcher.reconcile()
}
const status = async (id: string) => dispatcher.inspector.status(key(id), ASK)
const node = async () => (await dispatcher.inspector.listNodes({ limit: 1, cursor: null }, ASK)).items[0]
const summary = async () => dispatcher.inspector.summary(ASK)

beforeEach(() => open())
afterEach(() => dispatcher.close())

describe('direct mode', () => {
  it('has one node, no listener and nothing of a legacy', async () => {
    open({ nodeId: 'n1', deploymentId: 'dep1' })
    expect(await node()).toMatchObject({ node_id: 'n1', mailbox_listener_alive: null })
    expect(await summary()).toMatchObject({
      deployment_id: 'dep1',
      mode: 'direct',
      legacy_stream_depth: null,
      legacy_pending_depth: null,
    })
    await expect((async () => dispatcher.inspector.listNodes({ limit: 1, cursor: '1' }, ASK))()).rejects.toMatchObject({
      code: 'invalid_cursor',
    })
  })

  it('keeps its place in the list of scopes while scopes before it come and go', async () => {
    for (const id of ['a', 'b', 'c', 'd']) await dispatcher.dispatch(command(id, { scope_id: id }))
    const page = await dispatcher.inspector.listTenants({ limit: 2, cursor: null }, ASK)
    for (const id of ['a', 'b']) await dispatcher.cancel(key(id))
    await dispatcher.dispatch(command('e', { scope_id: 'a' }))
    const rest = await walk((query) =>
      dispatcher.inspector.listTenants({ ...query, cursor: query.cursor ?? page.next_cursor }, ASK),
    )
    expect(rest.map(({ scope_id }) => scope_id)).toEqual(['c', 'd', 'a'])
  })

  it('calls the same ids with a line break invalid instead of finding another command', async () => {
    await dispatcher.dispatch(command('c1'))
    const forged = { user_id: 'ada\ntab', client_id: 'c1', command_id: 'c1' }
    await expect((async () => dispatcher.inspector.status(forged, ASK))()).rejects.toMatchObject({
      code: 'invalid_identity',
    })
  })
})

describe('the summary', () => {
  it('samples the first hundred of what is not acknowledged, and no more', async () => {
    for (let i = 0; i < 150; i++) await dispatcher.dispatch(command(`c${i}`))
    expect(await summary()).toMatchObject({ tracked_commands: 150, due_commands: 150, sample_size: 100 })
  })

  it('calls a command due again as soon as its pause is over', async () => {
    await dispatcher.attach(first, () => Promise.reject(new Error('gone')))
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(1))
    clock.advance(199)
    expect(await summary()).toMatchObject({ due_commands: 0 })
    clock.advance(1)
    expect(await summary()).toMatchObject({ due_commands: 1 })
  })
})

describe('bounds', () => {
  it('refuses options that are no bounds', () => {
    for (const wrong of [{ ackTimeoutMs: 0 }, { maxAttempts: 1.5 }, { capacity: Number.NaN }, { maxRetained: -1 }])
      expect(() => createCommandDispatcher(wrong)).toThrow(RangeError)
    createCommandDispatcher({ deadlineMs: undefined } as CommandDispatcherOptions).close()
  })

  it('asks for the capacity of each scope, and reserves nothing where the answer is no number', async () => {
    open({ capacity: (scope) => (scope === 'big' ? 2 : Number.NaN) })
    const states = []
    for (const [id, scope_id] of Object.entries({ c1: 'big', c2: 'big', c3: 'big', c4: 'small' }))
      states.push((await dispatcher.dispatch(command(id, { scope_id }))).admission.state)
    expect(states).toEqual(['admitted', 'admitted', 'rejected', 'rejected'])
  })

  it('rejects as overloaded beyond the commands, and beyond the payload bytes, of the process', async () => {
    open({ maxTracked: 1 })
    await dispatcher.dispatch(command('c1'))
    expect((await dispatcher.dispatch(command('c2'))).terminal).toMatchObject({ reason: 'overloaded' })
    dispatcher.close()
    open({ maxPayloadBytes: 100 })
    await dispatcher.dispatch(command('c1', { payload: 'x'.repeat(60) }))
    expect((await dispatcher.dispatch(command('c2', { payload: 'x'.repeat(60) }))).admission.state).toBe('rejected')
    await dispatcher.cancel(key('c1'))
    expect((await dispatcher.dispatch(command('c2', { payload: 'x'.repeat(60) }))).admission.state).toBe('admitted')
  })

  it('refuses one waiter too many, and lets a known client replace its own', async () => {
    open({ maxWaiters: 1 })
    await dispatcher.attach(first, connection().deliver)
    await dispatcher.attach(second, connection().deliver)
    await expect(dispatcher.attach({ ...first, client_id: 'phone' }, connection().deliver)).rejects.toMatchObject({
      code: 'capacity_exceeded',
    })
  })

  it('keeps no more terminal records than it is told, the newest ones, whatever is rejected beside them', async () => {
    open({ maxRetained: 2, maxTracked: 1 })
    for (const id of ['c1', 'c2', 'c3']) {
      await dispatcher.dispatch(command(id))
      await dispatcher.cancel(key(id))
    }
    await dispatcher.dispatch(command('held'))
    for (let i = 0; i < 10; i++) await dispatcher.dispatch(command(`r${i}`))
    expect([await status('c1'), await status('c2'), await status('c3')].map(Boolean)).toEqual([false, true, true])
    expect([await status('r7'), await status('r8'), await status('r9')].map(Boolean)).toEqual([false, true, true])
  })

  it('forgets the rejection of a command that was admitted later', async () => {
    open({ maxRetained: 1, maxTracked: 1 })
    await dispatcher.dispatch(command('c0'))
    await dispatcher.dispatch(command('c1'))
    await dispatcher.cancel(key('c0'))
    for (const id of ['c1', 'c2']) {
      await dispatcher.dispatch(command(id))
      await dispatcher.cancel(key(id))
    }
    expect(await status('c1')).toBeNull()
  })
})

describe('deliverers that misbehave', () => {
  const deliverers: [string, () => unknown, string][] = [
    [
      'throws',
      () => {
        throw new Error('MARKER')
      },
      'rejected',
    ],
    ['returns a promise that rejects with nothing', () => Promise.reject(), 'rejected'],
    [
      'returns a thenable whose then throws',
      () =>
        Object.defineProperty({}, 'then', {
          get() {
            throw new Error('MARKER')
          },
        }),
      'rejected',
    ],
    ['answers without a promise', () => 42, 'delivered'],
  ]

  it.each(deliverers)('one that %s is recorded and no more', async (_, deliver, outcome) => {
    await dispatcher.attach(first, deliver as () => void)
    await dispatcher.dispatch(command('c1'))
    await eventually(async () =>
      expect((await status('c1'))?.attempts).toMatchObject({ count: 1, last_outcome: outcome }),
    )
    expect(JSON.stringify(await status('c1'))).not.toContain('MARKER')
  })

  it('one that resolves after the end, or after its time, changes no record', async () => {
    const resolvers: (() => void)[] = []
    const tab = connection(() => new Promise<void>((resolve) => resolvers.push(resolve)))
    await dispatcher.attach(first, tab.deliver)
    for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id))
    await tab.got(1)
    await dispatcher.cancel(key('c1'))
    await tab.got(2)
    await advance(5_000)
    const before = [await status('c1'), await status('c2')]
    for (const resolve of resolvers) resolve()
    await eventually(async () => expect((await node())?.counters.other).toMatchObject({ late_outcome: 2 }))
    expect([await status('c1'), await status('c2')]).toEqual(before)
  })

  it('one that resolves while a later attempt is out leaves that attempt open', async () => {
    const resolvers: (() => void)[] = []
    const tab = connection(() => new Promise<void>((resolve) => resolvers.push(resolve)))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    await advance(5_000)
    await advance(200)
    await tab.got(2)
    resolvers[0]?.()
    await eventually(async () => expect((await node())?.counters.other).toMatchObject({ late_outcome: 1 }))
    expect((await status('c1'))?.attempts).toMatchObject({ count: 2, last_outcome: null })
  })

  it('one that is no function is refused', async () => {
    await expect(dispatcher.attach(first, 'deliver' as never)).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it('one that changes what it was given changes nothing for the next attempt', async () => {
    const seen: unknown[] = []
    await dispatcher.attach(first, (given) => {
      seen.push(structuredClone(given.payload))
      ;(given.payload as { page: number }).page = 9
    })
    await dispatcher.dispatch(command('c1'))
    await eventually(() => expect(seen).toHaveLength(1))
    await advance(200)
    await eventually(() => expect(seen).toEqual([{ page: 1 }, { page: 1 }]))
  })

  it('one that speaks to the dispatcher while it is called is understood', async () => {
    await dispatcher.attach(first, async ({ command_id }) => {
      await dispatcher.acknowledge({ ...first, command_id })
      if (command_id === 'c1') await dispatcher.dispatch(command('c2'))
      await dispatcher.settle({ ...key(command_id), state: 'resulted', instance_id: 'i1' })
    })
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await status('c2'))?.terminal?.state).toBe('resulted'))
    expect((await status('c1'))?.attempts.count).toBe(1)
  })

  it('keeps the outcome of a hand-over that ends after its acknowledgement', async () => {
    let release = () => {}
    const tab = connection(() => new Promise<void>((resolve) => (release = resolve)))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    await dispatcher.acknowledge({ ...first, command_id: 'c1' })
    expect((await status('c1'))?.attempts.last_outcome).toBeNull()
    release()
    await eventually(async () => expect((await status('c1'))?.attempts.last_outcome).toBe('delivered'))
  })
})

describe('with a connection registry', () => {
  let current: string | null
  let broken: boolean
  const connections = {
    async currentInstance() {
      if (broken) throw new Refusal('unavailable')
      return current
    },
  }
  beforeEach(() => {
    current = 'i1'
    broken = false
    open({ connections })
  })

  it('refuses the attach of an instance that is not the current one', async () => {
    await expect(dispatcher.attach(second, connection().deliver)).rejects.toMatchObject({ code: 'stale_instance' })
    current = null
    await expect(dispatcher.attach(first, connection().deliver)).rejects.toMatchObject({ code: 'stale_instance' })
  })

  it('hands nothing to an instance that has been superseded since it attached', async () => {
    const old = connection()
    await dispatcher.attach(first, old.deliver)
    current = 'i2'
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await node())?.connection_waiters).toBe(0))
    expect((await status('c1'))?.attempts.count).toBe(0)
    const tab = connection()
    await dispatcher.attach(second, tab.deliver)
    await tab.got(1)
    expect(old.received).toEqual([])
  })

  it('does not take a superseded instance for a waiter of a command that needs one', async () => {
    await dispatcher.attach(first, connection().deliver)
    current = 'i2'
    const refused = await dispatcher.dispatch(command('c1', { requireWaiter: true }))
    expect(refused.terminal).toMatchObject({ state: 'rejected', reason: 'no_waiter' })
  })

  it('admits one command of many equal calls at once', async () => {
    await dispatcher.attach(first, connection().deliver)
    const calls = Array.from({ length: 100 }, () => dispatcher.dispatch(command('c1', { requireWaiter: true })))
    await Promise.all(calls)
    expect((await node())?.counters.other).toMatchObject({ admitted: 1, dispatch_repeated: 99 })
  })

  it('fences acknowledgements and ends by the registry, not by who attached', async () => {
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    current = 'i2'
    expect(await dispatcher.acknowledge({ ...first, command_id: 'c1' })).toBe(false)
    expect(await dispatcher.settle({ ...key('c1'), state: 'resulted', instance_id: 'i1' })).toBe(false)
    expect(await dispatcher.acknowledge({ ...second, command_id: 'c1' })).toBe(true)
    expect((await node())?.counters.acknowledgement).toEqual({ fenced: 1, acknowledged: 1 })
  })

  it('attaches nobody when it was closed while the registry was asked', async () => {
    const attaching = dispatcher.attach(first, connection().deliver)
    await dispatcher.close()
    await expect(attaching).rejects.toMatchObject({ code: 'closed' })
    expect((await node())?.connection_waiters).toBe(0)
  })

  it('waits, without an attempt, for a registry that cannot answer', async () => {
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    broken = true
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await node())?.counters.other).toMatchObject({ fence_unavailable: 1 }))
    expect((await status('c1'))?.attempts.count).toBe(0)
    broken = false
    await advance(1_000)
    await tab.got(1)
  })
})

describe('the loop', () => {
  it('goes on with its retries when the clock has gone back ten minutes', async () => {
    const tab = connection(() => Promise.reject(new Error('gone')))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1', { deadlineMs: 3_600_000 }))
    await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(1))
    await advance(-600_000)
    await advance(200)
    await tab.got(2)
  })

  it('doubles its pause from 200 ms', async () => {
    const tab = connection(() => Promise.reject(new Error('gone')))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    for (const [count, pause] of [
      [1, 200],
      [2, 400],
      [3, 800],
    ] as const) {
      await eventually(async () => expect((await status('c1'))?.recovery.count).toBe(count))
      await advance(pause - 1)
      expect(tab.received).toHaveLength(count)
      await advance(1)
      await tab.got(count + 1)
    }
  })

  it('expires, retries and forgets more than one pass holds', async () => {
    open({ capacity: 5_000, maxRetained: 5_000 })
    for (let i = 0; i < 2_500; i++) await dispatcher.dispatch(command(`c${i}`))
    await advance(30_000)
    expect(await summary()).toMatchObject({ tracked_commands: 0, due_commands: 0 })
    expect((await node())?.counters.outcome).toEqual({ expired: 2_500 })
  })

  it('yields between passes, and comes by again at once while something is left', async () => {
    vi.useFakeTimers()
    try {
      dispatcher = createCommandDispatcher({ capacity: 5_000 })
      for (let i = 0; i < 2_500; i++) await dispatcher.dispatch(command(`c${i}`, { deadlineMs: 500 }))
      await vi.advanceTimersToNextTimerAsync()
      expect(await summary()).toMatchObject({ tracked_commands: 1_500 })
      await vi.advanceTimersByTimeAsync(2)
      expect(await summary()).toMatchObject({ tracked_commands: 0 })
    } finally {
      vi.useRealTimers()
    }
  })

  it('is shown as stale and not alive when it has not come by, and as ended after close', async () => {
    clock.advance(5_001)
    expect(await node()).toMatchObject({
      reconciliation_loop_alive: false,
      stale: true,
      staleness_ms: 5_001,
      updated_at: at(),
    })
    await dispatcher.reconcile()
    expect(await node()).toMatchObject({ reconciliation_loop_alive: true, stale: false, staleness_ms: 0 })
    await dispatcher.close()
    expect((await node())?.reconciliation_loop_alive).toBe(false)
  })

  it('runs by itself: within its second, and at the instant of a short deadline or pause', async () => {
    vi.useFakeTimers()
    try {
      dispatcher = createCommandDispatcher()
      const attempts: number[] = []
      await dispatcher.attach(first, () => {
        attempts.push(Date.now())
        throw new Error('gone')
      })
      const start = Date.now()
      await dispatcher.dispatch(command('c1', { maxAttempts: 3 }))
      await dispatcher.dispatch(command('c2', { client_id: 'phone', deadlineMs: 50 }))
      await vi.advanceTimersByTimeAsync(50)
      expect((await dispatcher.inspector.status({ ...key('c2'), client_id: 'phone' }, ASK))?.terminal?.state).toBe(
        'expired',
      )
      await vi.advanceTimersByTimeAsync(1_000)
      expect(attempts.map((instant) => instant - start)).toEqual([0, 200, 600])
      await vi.advanceTimersByTimeAsync(3_000)
      expect((await node())?.staleness_ms).toBeLessThanOrEqual(1_000)
      await dispatcher.close()
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  it('keeps no process alive', async () => {
    const timers = () => getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    await dispatcher.dispatch(command('c1', { deadlineMs: 100 }))
    await dispatcher.attach(first, connection().deliver)
    expect(timers()).toBe(before)
  })

  it('delivers nothing after close, and leaves the records readable', async () => {
    await dispatcher.dispatch(command('c1'))
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await tab.got(1)
    await dispatcher.dispatch(command('c2', { client_id: 'phone' }))
    await dispatcher.close()
    await advance(10_000)
    expect(tab.received).toHaveLength(1)
    expect((await node())?.connection_waiters).toBe(0)
    expect((await status('c1'))?.terminal).toBeNull()
    expect(await dispatcher.settle({ ...key('c1'), state: 'resulted' })).toBe(true)
  })
})
