/** Pauses, alarms and tickers: due when they say, gone when they are not wanted, and no reason for a process to live. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createAlarm, createTicker, sleep } from '../../src/internal/async/timer.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

describe('a pause', () => {
  it('resolves after its time, and leaves no listener', async () => {
    const { signal } = new AbortController()
    const remove = vi.spyOn(signal, 'removeEventListener')
    const over = vi.fn()
    sleep(100, signal).then(over)
    await vi.advanceTimersByTimeAsync(99)
    expect(over).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    expect(over).toHaveBeenCalledTimes(1)
    expect(remove).toHaveBeenCalledTimes(1)
  })

  it.each(['before', 'during'])('resolves immediately when its signal aborts %s, and leaves no timer', async (when) => {
    useFakeTimers()
    const controller = new AbortController()
    if (when === 'before') controller.abort()
    const paused = sleep(100, controller.signal)
    controller.abort()
    await paused
    expect(ourTimers()).toEqual([])
  })
})

describe('an alarm', () => {
  it('can only be moved earlier, and fires once', async () => {
    useFakeTimers()
    const act = vi.fn()
    const alarm = createAlarm(act, Date.now)
    alarm.advance(100)
    alarm.advance(50)
    alarm.advance(200)
    expect(ourTimers()).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(50)
    expect(act).toHaveBeenCalledTimes(1)
    await vi.advanceTimersByTimeAsync(500)
    expect(act).toHaveBeenCalledTimes(1)
  })

  it('can be set again from within, and cleared', async () => {
    useFakeTimers()
    const act = vi.fn(() => alarm.advance(10))
    const alarm = createAlarm(act, Date.now)
    alarm.advance(10)
    await vi.advanceTimersByTimeAsync(30)
    expect(act).toHaveBeenCalledTimes(3)
    alarm.clear()
    expect(ourTimers()).toEqual([])
    alarm.advance(10)
    expect(ourTimers()).toHaveLength(1)
  })

  it('fires even if its clock is stopped', async () => {
    const act = vi.fn(() => alarm.advance(10))
    const alarm = createAlarm(act, () => 0)
    alarm.advance(10)
    await vi.advanceTimersByTimeAsync(20)
    expect(act).toHaveBeenCalledTimes(2)
    alarm.clear()
  })
})

describe('a ticker', () => {
  it('fires repeatedly between start and stop, however often it is started', async () => {
    useFakeTimers()
    const tick = vi.fn()
    const ticker = createTicker(tick, 10)
    ticker.start()
    ticker.start()
    expect(ourTimers()).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(30)
    expect(tick).toHaveBeenCalledTimes(3)
    ticker.stop()
    expect(ourTimers()).toEqual([])
    ticker.start()
    await vi.advanceTimersByTimeAsync(10)
    expect(tick).toHaveBeenCalledTimes(4)
    ticker.stop()
  })

  it('does not overlap calls', async () => {
    let end = () => {}
    const tick = vi.fn(() => new Promise<void>((resolve) => (end = resolve)))
    const ticker = createTicker(tick, 10)
    ticker.start()
    await vi.advanceTimersByTimeAsync(50)
    expect(tick).toHaveBeenCalledTimes(1)
    end()
    await vi.advanceTimersByTimeAsync(10)
    expect(tick).toHaveBeenCalledTimes(2)
    ticker.stop()
  })
})

it('keeps the process alive only for alarms and tickers that ask for it', () => {
  vi.useRealTimers()
  const timers: NodeJS.Timeout[] = []
  for (const name of ['setTimeout', 'setInterval'] as const) {
    const real = globalThis[name]
    vi.spyOn(globalThis, name).mockImplementation(((act: () => void, ms: number) => {
      const timer = real(act, ms)
      timers.push(timer as NodeJS.Timeout)
      return timer
    }) as never)
  }
  const made = [createTicker(() => {}, 60_000), createTicker(() => {}, 60_000, true)]
  const alarm = createAlarm(() => {})
  for (const ticker of made) ticker.start()
  alarm.advance(60_000)
  expect(timers.map((timer) => timer.hasRef())).toEqual([false, true, false])
  for (const ticker of made) ticker.stop()
  alarm.clear()
  vi.restoreAllMocks()
})
