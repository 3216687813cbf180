/** The bounds of a dispatcher in one process. */
import { describe, expect, it } from 'vitest'
import { createClock } from '../../src/internal/async/timer.js'
import { DEADLINE_MAX_MS } from '../../src/internal/contract/delivery-dispatch.js'
import { createTrackedCommand } from '../../src/memory/delivery/command.js'
import { createDeliveryStore } from '../../src/memory/delivery/commands.js'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { at } from '../contract/clock.js'
import { command, connection, first, key, second } from '../contract/delivery-commands.js'
import { createSubject } from '../contract/delivery-subject.js'

const { dispatcher, open, status } = createSubject<CommandDispatcherOptions>(createCommandDispatcher)

describe('bounds', () => {
  it('rejects invalid limits', () => {
    for (const wrong of [
      { ackTimeoutMs: 0 },
      { maxAttempts: 1.5 },
      { capacity: Number.NaN },
      { maxRetained: -1 },
      { retentionMs: 1e15 },
    ])
      expect(() => createCommandDispatcher(wrong)).toThrow(RangeError)
    createCommandDispatcher({ deadlineMs: undefined } as CommandDispatcherOptions).close()
  })

  it('rejects a deadline over 24 h', async () => {
    expect(() => createCommandDispatcher({ deadlineMs: DEADLINE_MAX_MS + 1 })).toThrow(
      /^Invalid option "deadlineMs": expected an integer from 1 to 86400000, got /,
    )
    await open({ deadlineMs: DEADLINE_MAX_MS })
    expect((await dispatcher.dispatch(command('c1'))).admission.deadline_at).toBe(at(86_400_000))
  })

  it('calls capacity with the id of each scope', async () => {
    await open({ capacity: (scope) => (scope === 'big' ? 2 : 0) })
    const states = []
    for (const [id, scope_id] of Object.entries({ c1: 'big', c2: 'big', c3: 'big', c4: 'small' }))
      states.push((await dispatcher.dispatch(command(id, { scope_id }))).admission.state)
    expect(states).toEqual(['admitted', 'admitted', 'rejected', 'rejected'])
  })

  it('limits commands per user across scopes, and waiters per user', async () => {
    await open({ maxTrackedPerUser: 2, maxWaitersPerUser: 1 })
    for (const id of ['c1', 'c2']) await dispatcher.dispatch(command(id, { scope_id: id }))
    const third = async () => (await dispatcher.dispatch(command('c3', { scope_id: 'c3' }))).terminal
    expect(await third()).toMatchObject({ state: 'rejected', reason: 'capacity_exceeded' })
    expect((await dispatcher.dispatch(command('c1', { user_id: 'bob' }))).terminal).toBeNull()
    await dispatcher.cancel(key('c1'))
    expect(await third()).toBeNull()
    const waiter = await dispatcher.attach(first, () => {})
    await dispatcher.attach(second, () => {})
    const phone = { ...first, client_id: 'phone' }
    const attach = async (instance: typeof first) => dispatcher.attach(instance, () => {})
    await expect(attach(phone)).rejects.toMatchObject({ code: 'capacity_exceeded' })
    await attach({ ...phone, user_id: 'bob' })
    await waiter.detach()
  })

  it('keeps no mailbox without commands and waiter', () => {
    const clock = createClock(() => 0)
    const store = createDeliveryStore({ capacity: () => 10, maxRetained: 10, retentionMs: 1_000, clock })
    const record = createTrackedCommand(command('c1'), {
      key: 'c1',
      sequence: 1,
      admittedAt: 0,
      queuedAt: 0,
      deadlineAt: 1_000,
      maxAttempts: 1,
      fingerprint: 'f',
      payload: null,
      payloadBytes: 4,
    })
    const mailbox = store.openMailbox(first.user_id, first.client_id)
    store.admit(record, mailbox)
    store.setWaiter(mailbox, {
      instance_id: first.instance_id,
      sequence: 1,
      cell: 0,
      mailbox,
      attachedAt: 0,
      deliver() {},
    })
    store.setWaiter(mailbox, null)
    expect(store.mailboxes.size).toBe(1)
    store.end(record, 'cancelled', null, 1)
    expect(store.mailboxes.size).toBe(0)
    const another = store.openMailbox(first.user_id, first.client_id)
    store.setWaiter(another, {
      instance_id: first.instance_id,
      sequence: 2,
      cell: 0,
      mailbox: another,
      attachedAt: 0,
      deliver() {},
    })
    store.setWaiter(another, null)
    expect(store.mailboxes.size).toBe(0)
  })

  it('rejects as overloaded above the maximum commands, or payload bytes, of the process', async () => {
    await open({ maxTracked: 1 })
    await dispatcher.dispatch(command('c1'))
    expect((await dispatcher.dispatch(command('c2'))).terminal).toMatchObject({ reason: 'overloaded' })
    await open({ maxPayloadBytes: 100 })
    await dispatcher.dispatch(command('c1', { payload: 'x'.repeat(60) }))
    expect((await dispatcher.dispatch(command('c2', { payload: 'x'.repeat(60) }))).admission.state).toBe('rejected')
    await dispatcher.cancel(key('c1'))
    expect((await dispatcher.dispatch(command('c2', { payload: 'x'.repeat(60) }))).admission.state).toBe('admitted')
  })

  it('refuses one waiter too many, and lets an attached client replace its own', async () => {
    await open({ maxWaiters: 1 })
    await dispatcher.attach(first, connection().deliver)
    await dispatcher.attach(second, connection().deliver)
    await expect(dispatcher.attach({ ...first, client_id: 'phone' }, connection().deliver)).rejects.toMatchObject({
      code: 'capacity_exceeded',
    })
  })

  it('retains the newest terminal records up to its limit, regardless of rejected commands', async () => {
    await open({ maxRetained: 2, maxTracked: 1 })
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
    await open({ maxRetained: 1, maxTracked: 1 })
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
