/** A dispatcher that asks a connection registry which instance is current. */
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { DEADLINE_MS } from '../../src/async/time-limit.js'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { Refusal } from '../../src/refusal.js'
import { command, connection, eventually, first, key, second } from '../contract/delivery-commands.js'
import { createSubject } from '../contract/delivery-subject.js'
import { useFakeTimers } from '../fake-timers.js'

const { dispatcher, open, advance, status, node } = createSubject<CommandDispatcherOptions>(createCommandDispatcher)

describe('with a connection registry', () => {
  let current: string | null
  let broken: boolean
  /** What the registry still does before it answers, as it stood when it was asked. */
  let pauses: Promise<void>[]
  const connections = {
    async currentInstance() {
      if (broken) throw new Refusal('unavailable')
      const answer = current
      await pauses.shift()
      return answer
    },
  }
  /** Lets the registry answer the next question only when it is told to. */
  function holdNext(): () => void {
    let go = () => {}
    pauses.push(
      new Promise((resolve) => {
        go = resolve
      }),
    )
    return () => go()
  }
  beforeEach(async () => {
    current = 'i1'
    broken = false
    pauses = []
    await open({ connections })
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
    await eventually(async () => expect((await node()).connection_waiters).toBe(0))
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
    expect((await node()).counters.other).toMatchObject({ admitted: 1, dispatch_repeated: 99 })
  })

  it('fences acknowledgements and ends by the registry, not by who attached', async () => {
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    current = 'i2'
    expect(await dispatcher.acknowledge({ ...first, command_id: 'c1' })).toBe(false)
    const end = { ...first, command_id: 'c1', state: 'resulted' } as const
    for (const acknowledge of [false, true]) expect(await dispatcher.settle({ ...end, acknowledge })).toBe(false)
    expect(await dispatcher.acknowledge({ ...second, command_id: 'c1' })).toBe(true)
    expect((await node()).counters.acknowledgement).toEqual({ fenced: 1, acknowledged: 1 })
  })

  it('acknowledges nothing that has ended while the registry was asked', async () => {
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1'))
    await tab.got(1)
    const answer = holdNext()
    const acknowledged = dispatcher.acknowledge({ ...first, command_id: 'c1' })
    expect(await dispatcher.cancel(key('c1'))).toBe(true)
    answer()
    expect(await acknowledged).toBe(false)
    expect(await status('c1')).toMatchObject({ acknowledgement: { state: 'none' }, terminal: { state: 'cancelled' } })
    expect((await node()).counters.acknowledgement).toEqual({ late: 1 })
  })

  it('neither ends nor acknowledges what has ended while the registry was asked', async () => {
    await dispatcher.dispatch(command('c1'))
    const answer = holdNext()
    const settled = dispatcher.settle({ ...first, command_id: 'c1', state: 'resulted', acknowledge: true })
    expect(await dispatcher.cancel(key('c1'))).toBe(true)
    answer()
    expect(await settled).toBe(false)
    expect(await status('c1')).toMatchObject({ acknowledgement: { state: 'none' }, terminal: { state: 'cancelled' } })
    const { acknowledgement, outcome } = (await node()).counters
    expect([acknowledgement, outcome]).toEqual([{}, { cancelled: 1 }])
  })

  it('leaves a mailbox to the attach that was begun last, whichever is answered first', async () => {
    const [old, tab] = [connection(), connection()]
    const answer = holdNext()
    const early = dispatcher.attach(first, old.deliver)
    await dispatcher.attach(first, tab.deliver)
    answer()
    await (await early).detach()
    expect((await dispatcher.dispatch(command('c1', { requireWaiter: true }))).terminal).toBeNull()
    await tab.got(1)
    expect(old.received).toEqual([])
  })

  it('refuses an attach that another instance has overtaken', async () => {
    const answer = holdNext()
    const early = dispatcher.attach(first, connection().deliver)
    current = 'i2'
    await dispatcher.attach(second, connection().deliver)
    answer()
    await expect(early).rejects.toMatchObject({ code: 'stale_instance' })
  })

  it('attaches nobody when it was closed while the registry was asked', async () => {
    const attaching = dispatcher.attach(first, connection().deliver)
    await dispatcher.close()
    await expect(attaching).rejects.toMatchObject({ code: 'closed' })
    expect((await node()).connection_waiters).toBe(0)
  })

  it('waits, without an attempt, for a registry that cannot answer', async () => {
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    broken = true
    await dispatcher.dispatch(command('c1'))
    await eventually(async () => expect((await node()).counters.other).toMatchObject({ fence_unavailable: 1 }))
    expect((await status('c1'))?.attempts.count).toBe(0)
    broken = false
    await advance(1_000)
    await tab.got(1)
  })

  it('asks once a second, however many wait, a registry that cannot answer', async () => {
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    broken = true
    for (let n = 1; n <= 20; n++) await dispatcher.dispatch(command(`c${n}`))
    const asked = async () => (await node()).counters.other.fence_unavailable ?? 0
    await eventually(async () => expect(await asked()).toBeGreaterThan(0))
    const before = await asked()
    for (let second = 1; second <= 5; second++) {
      await advance(1_000)
      await eventually(async () => expect(await asked()).toBe(before + second))
    }
    broken = false
    await advance(1_000)
    await tab.got(20)
  })

  it('goes on when a registry never answers a question', async () => {
    useFakeTimers()
    const tab = connection()
    await dispatcher.attach(first, tab.deliver)
    holdNext()
    await dispatcher.dispatch(command('c1'))
    await vi.advanceTimersByTimeAsync(DEADLINE_MS)
    expect((await node()).counters.other).toMatchObject({ fence_unavailable: 1 })
    await advance(1_000)
    await vi.advanceTimersByTimeAsync(0)
    expect(tab.received).toHaveLength(1)
  })
})
