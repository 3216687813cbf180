/** The limits of a shared-store dispatcher: how much it keeps, and for how long. */
import { expect, it } from 'vitest'
import { DEADLINE_MAX_MS } from '../../src/internal/contract/delivery-dispatch.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { ASK, at, createClock, FIRST } from '../contract/clock.js'
import { command, first, key, second } from '../contract/delivery-commands.js'
import { describeNode } from './dispatcher-node.js'

describeNode('a node of the dispatcher', ({ server, client, make, observe }) => {
  it('throws on invalid limits', () => {
    for (const wrong of [
      { ackTimeoutMs: 0 },
      { maxAttempts: 1.5 },
      { capacity: Number.NaN },
      { maxRetained: -1 },
      { retentionMs: 1e15 },
    ])
      expect(() => make(wrong)).toThrow(RangeError)
  })

  it('accepts a default deadline up to the maximum of a command, and throws on a longer one', () => {
    expect(() => make({ deadlineMs: DEADLINE_MAX_MS + 1 })).toThrow(RangeError)
    const dispatcher = { deadlineMs: 10 * DEADLINE_MAX_MS }
    expect(() => createRedisFacilities({ client: client(), deploymentId: 'never', dispatcher, onError: null })).toThrow(
      RangeError,
    )
    expect(() => make({ deadlineMs: DEADLINE_MAX_MS })).not.toThrow()
  })

  it('enforces the limits of a shard and of a node', async () => {
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

  it('enforces the limits of a user for commands across scopes and for waiters', async () => {
    const { dispatcher } = make({ maxTrackedPerUser: 2, maxWaitersPerUser: 1 })
    for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id, { scope_id: id }))
    const third = async () => (await dispatcher.dispatch(command('c3', { scope_id: 'c3' }))).terminal
    expect(await third()).toMatchObject({ state: 'rejected', reason: 'capacity_exceeded' })
    expect((await dispatcher.dispatch(command('c1', { user_id: 'bob' }))).terminal).toBeNull()
    await dispatcher.cancel(key('c1'))
    expect(await third()).toBeNull()
    await dispatcher.attach(first, () => {})
    await dispatcher.attach(second, () => {})
    const phone = { ...first, client_id: 'phone' }
    await expect(dispatcher.attach(phone, () => {})).rejects.toMatchObject({ code: 'capacity_exceeded' })
    await dispatcher.attach({ ...phone, user_id: 'bob' }, () => {})
  })

  it('asks for the capacity of each scope, and reserves nothing if it is not a number', async () => {
    const { dispatcher } = make({
      capacity: (scope) => (scope === 'big' ? 2 : scope === 'open' ? Infinity : Number.NaN),
    })
    const states = []
    for (const [id, scope_id] of Object.entries({ c1: 'big', c2: 'big', c3: 'big', c4: 'small', c5: 'open' }))
      states.push((await dispatcher.dispatch(command(id, { scope_id }))).admission.state)
    expect(states).toEqual(['admitted', 'admitted', 'rejected', 'rejected', 'admitted'])
  })

  it('does not count an overdue command against the limits, even before a pass has expired it', async () => {
    const clock = createClock()
    const { dispatcher } = make({ now: clock.now, capacity: 1 })
    await dispatcher.dispatch(command('c1', { deadline_ms: 500 }))
    clock.advance(500)
    expect((await dispatcher.dispatch(command('c2'))).terminal).toBeNull()
  })

  it('shows a command as overdue after all nodes were down at its deadline, until a node records its end', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now })
    await dispatcher.dispatch(command('c1'))
    await dispatcher.close()
    const later = observe(deploymentId, { now: () => clock.now() + 30_000 })
    expect((await later.listTenants(FIRST, ASK)).items).toMatchObject([
      { reserved_commands: 1, oldest_deadline_at: at(30_000) },
    ])
    expect(await later.summary(ASK)).toMatchObject({
      tracked_commands: 1,
      by_state: { waiting: 1, attempted: 0, acknowledged: 0 },
      waits_for: { expiry: 1, client_not_attached: 0, unknown: 0 },
      due_commands: 0,
      waiting_for_client: 0,
      oldest_deadline_at: at(30_000),
      oldest_open_age_ms: 30_000,
      sample_size: 1,
    })
    const expired = { state: 'expired', at: at(30_000), reason: 'deadline_passed' }
    expect(await later.status(key('c1'), ASK)).toMatchObject({ overdue: true, terminal: null })
    clock.advance(30_000)
    await make({ deploymentId, now: clock.now }).dispatcher.reconcile()
    expect(await later.status(key('c1'), ASK)).toMatchObject({ overdue: false, terminal: expired })
    expect((await later.listTenants(FIRST, ASK)).items).toEqual([])
  })

  it('deletes the keys of commands after their retention', async () => {
    const clock = createClock()
    const { deploymentId, dispatcher } = make({ now: clock.now, capacity: 1 })
    await dispatcher.attach(first, () => {})
    await dispatcher.dispatch(command('c1', { scope_id: 'red' }))
    await dispatcher.dispatch(command('c2', { scope_id: 'red' }))
    await dispatcher.acknowledge({ ...first, command_id: 'c1' })
    await dispatcher.settle({ ...key('c1'), state: 'resulted' })
    // Commands that end within ten seconds are deleted together, and their retention ends with a full second.
    clock.advance(3_611_000)
    for (const _ of [1, 2]) await dispatcher.reconcile()
    const left = (await server().cli('KEYS', `relayscope:{${deploymentId}:0}:delivery:*`)).split('\n')
    const names = left.map((name) => name.split(':')[4])
    const ofWaiters = ['leases', 'waiters', 'attached', 'attached-of']
    const kept = [...ofWaiters, 'order', 'seq', 'scope-seq', 'counts', 'first-chunk', 'first-open']
    // The keys with the counts of each minute have a TTL.
    const counts = left.filter((_, i) => names[i] === 'churn')
    for (const key of counts) expect(Number(await server().cli('PTTL', key))).toBeGreaterThan(0)
    expect(names.filter((name) => ![...kept, 'churn'].includes(name as string))).toEqual([])
  })
})
