/** The loop of a dispatcher: its passes, its pauses, its clock and its end. */
import { getActiveResourcesInfo } from 'node:process'
import { describe, expect, it, vi } from 'vitest'
import { type CommandDispatcherOptions, createCommandDispatcher } from '../../src/memory/delivery/facility.js'
import { ASK, at } from '../contract/clock.js'
import { command, connection, eventually, first, key } from '../contract/delivery-commands.js'
import { createSubject } from '../contract/delivery-subject.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'

const { clock, dispatcher, open, advance, status, summary, node } =
  createSubject<CommandDispatcherOptions>(createCommandDispatcher)

describe('the loop', () => {
  it('continues its retries after the clock was set back ten minutes', async () => {
    const tab = connection(() => Promise.reject(new Error('gone')))
    await dispatcher.attach(first, tab.deliver)
    await dispatcher.dispatch(command('c1', { deadline_ms: 3_600_000 }))
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

  it('expires, retries and deletes more than fits in one pass', async () => {
    await open({ capacity: 5_000, maxRetained: 5_000 })
    for (let i = 0; i < 2_500; i++) await dispatcher.dispatch(command(`c${i}`))
    await advance(30_000)
    expect(await summary()).toMatchObject({ tracked_commands: 0, due_commands: 0, waiting_for_client: 0 })
    expect((await node()).counters.outcome).toEqual({ expired: 2_500 })
  })

  it('yields between passes, and runs again immediately while work remains', async () => {
    useFakeTimers()
    try {
      await open({ capacity: 5_000, now: Date.now })
      for (let i = 0; i < 2_500; i++) await dispatcher.dispatch(command(`c${i}`, { deadline_ms: 500 }))
      await dispatcher.dispatch(command('last', { scope_id: 'red' }))
      await vi.advanceTimersByTimeAsync(500)
      expect((await node()).counters.outcome).toEqual({ expired: 1_000 })
      // No more than are within their deadline wait for the client, even if more are overdue than a summary examines.
      expect(await summary()).toMatchObject({ tracked_commands: 1_501, due_commands: 0, waiting_for_client: 1 })
      await vi.advanceTimersByTimeAsync(2)
      expect((await node()).counters.outcome).toEqual({ expired: 2_500 })
    } finally {
      vi.useRealTimers()
    }
  })

  it('is reported as stale when it does not run, and as ended after close', async () => {
    clock.advance(5_001)
    expect(await node()).toMatchObject({
      reconciliation_loop_alive: null,
      stale: true,
      staleness_ms: 5_001,
      updated_at: at(),
    })
    await dispatcher.reconcile()
    expect(await node()).toMatchObject({ reconciliation_loop_alive: true, stale: false, staleness_ms: 0 })
    await dispatcher.close()
    expect((await node()).reconciliation_loop_alive).toBe(false)
  })

  it('runs on its own: every second, and at the instant of a short deadline or pause', async () => {
    useFakeTimers()
    try {
      await open({ now: Date.now })
      const attempts: number[] = []
      await dispatcher.attach(first, () => {
        attempts.push(Date.now())
        throw new Error('gone')
      })
      const start = Date.now()
      await dispatcher.dispatch(command('c1', { max_attempts: 3 }))
      await dispatcher.dispatch(command('c2', { client_id: 'phone', deadline_ms: 50 }))
      await vi.advanceTimersByTimeAsync(50)
      expect((await dispatcher.inspector.status({ ...key('c2'), client_id: 'phone' }, ASK))?.terminal?.state).toBe(
        'expired',
      )
      await vi.advanceTimersByTimeAsync(1_000)
      expect(attempts.map((instant) => instant - start)).toEqual([0, 200, 600])
      await vi.advanceTimersByTimeAsync(3_000)
      expect((await node()).staleness_ms).toBeLessThanOrEqual(1_000)
      await dispatcher.close()
      expect(ourTimers()).toEqual([])
    } finally {
      vi.useRealTimers()
    }
  })

  it('does not keep the process alive', async () => {
    const timers = () => getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    await dispatcher.dispatch(command('c1', { deadline_ms: 100 }))
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
    expect((await node()).connection_waiters).toBe(0)
    expect((await status('c1'))?.terminal).toBeNull()
    expect(await dispatcher.settle({ ...key('c1'), state: 'resulted' })).toBe(true)
  })
})
