/** A dispatcher that looks up the current instance in a connection registry. */
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { DEADLINE_MS } from '../../src/internal/async/deadline.js'
import { Refusal } from '../../src/internal/refusal.js'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { command, connection, eventually, first, key, second } from '../contract/delivery-commands.js'
import { createSubject } from '../contract/delivery-subject.js'
import { useFakeTimers } from '../fake-timers.js'

const { dispatcher, open, advance, status, node } = createSubject<CommandDispatcherOptions>(createCommandDispatcher)

describe('with a connection registry', () => {
  let current: string | null
  let broken: boolean
  /** Delays of the registry's replies. */
  let pauses: Promise<void>[]
  const connections = {
    async currentInstance() {
      if (broken) throw new Refusal('unavailable')
      const answer = current
      await pauses.shift()
      return answer
    },
  }
  /** Delays the next reply of the registry until the returned function is called. */
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

  it('delivers nothing to an instance that was superseded after it attached', async () => {
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

  it('does not count a superseded instance as a waiter for require_waiter', async () => {
    await dispatcher.attach(first, connection().deliver)
    current = 'i2'
    const refused = await dispatcher.dispatch(command('c1', { require_waiter: true }))
    expect(refused.terminal).toMatchObject({ state: 'rejected', reason: 'no_waiter' })
  })

  it('admits one command of many concurrent equal calls', async () => {
    await dispatcher.attach(first, connection().deliver)
    const calls = Array.from({ length: 100 }, () => dispatcher.dispatch(command('c1', { require_waiter: true })))
    await Promise.all(calls)
    expect((await node()).counters.other).toMatchObject({ admitted: 1, dispatch_repeated: 99 })
  })

  it('checks acknowledgements and ends against the registry, not the attached instance', async () => {
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

  it('does not acknowledge a command that ended during the lookup', async () => {
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

  it('neither ends nor acknowledges a command that ended during the lookup', async () => {
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

  it('leaves a mailbox to the attach that started last, whichever lookup finishes first', async () => {
    const [old, tab] = [connection(), connection()]
    const answer = holdNext()
    const early = dispatcher.attach(first, old.deliver)
    await dispatcher.attach(first, tab.deliver)
    answer()
    await (await early).detach()
    expect((await dispatcher.dispatch(command('c1', { require_waiter: true }))).terminal).toBeNull()
    await tab.got(1)
    expect(old.received).toEqual([])
  })

  it('refuses an attach that another instance overtook', async () => {
    const answer = holdNext()
    const early = dispatcher.attach(first, connection().deliver)
    current = 'i2'
    await dispatcher.attach(second, connection().deliver)
    answer()
    await expect(early).rejects.toMatchObject({ code: 'stale_instance' })
  })

  it('refuses to attach when it was closed during the lookup', async () => {
    const attaching = dispatcher.attach(first, connection().deliver)
    await dispatcher.close()
    await expect(attaching).rejects.toMatchObject({ code: 'closed' })
    expect((await node()).connection_waiters).toBe(0)
  })

  it('pauses, without an attempt, while the registry fails', async () => {
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

  it('queries a failing registry once a second, however many commands wait', async () => {
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

  it('continues when the registry never replies', async () => {
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
