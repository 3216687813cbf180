/** Work that ends in time or is given up, with its timer and its listener gone either way. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { endWithin, runWithin, withTimeout } from '../../src/internal/async/deadline.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const late = () => new Error('late')
const never = () => new Promise<never>(() => {})

describe('work with a time limit', () => {
  it.each<[what: string, work: () => unknown]>([
    ['at once', () => 7],
    ['by promise', async () => 7],
  ])('settles like the work %s', async (_, work) => {
    useFakeTimers()
    const { signal } = new AbortController()
    const remove = vi.spyOn(signal, 'removeEventListener')
    expect(await runWithin(work, { ms: 100, late, signal })).toBe(7)
    expect(ourTimers()).toEqual([])
    expect(remove).toHaveBeenCalledTimes(1)
  })

  it.each<[what: string, work: () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('its own')
      },
    ],
    ['rejects', () => Promise.reject(new Error('its own'))],
  ])('rejects like the work when it %s, and leaves no timer', async (_, work) => {
    useFakeTimers()
    await expect(runWithin(work, { ms: 100, late })).rejects.toThrow('its own')
    expect(ourTimers()).toEqual([])
  })

  it('is aborted at its timeout, with a reason', async () => {
    let given: AbortSignal | undefined
    const work = (signal: AbortSignal) => {
      given = signal
      return never()
    }
    const given_up = expect(runWithin(work, { ms: 100, late })).rejects.toThrow('late')
    await vi.advanceTimersByTimeAsync(100)
    await given_up
    expect(given?.reason).toEqual(new Error('late'))
  })

  it('is aborted with its signal, with the reason or a given error, and leaves no timer', async () => {
    useFakeTimers()
    for (const [abortReason, said] of [
      [undefined, 'away'],
      [() => new Error('aborted'), 'aborted'],
    ] as const) {
      const controller = new AbortController()
      const working = expect(
        runWithin(never, { ms: 100, late, signal: controller.signal, abortReason }),
      ).rejects.toThrow(said)
      controller.abort(new Error('away'))
      await working
      expect(ourTimers()).toEqual([])
    }
  })

  it('does not start with an aborted signal', async () => {
    useFakeTimers()
    const work = vi.fn()
    const signal = AbortSignal.abort(new Error('away'))
    await expect(runWithin(work, { ms: 100, late, signal })).rejects.toThrow('away')
    expect(work).not.toHaveBeenCalled()
    expect(ourTimers()).toEqual([])
  })

  it('may fail later without an unhandled rejection', async () => {
    const unhandled = vi.fn()
    process.on('unhandledRejection', unhandled)
    let fail = () => {}
    const work = () => new Promise<never>((_, reject) => (fail = () => reject(new Error('afterwards'))))
    const given_up = runWithin(work, { ms: 100, late }).catch(() => {})
    await vi.advanceTimersByTimeAsync(100)
    await given_up
    fail()
    vi.useRealTimers()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('unhandledRejection', unhandled)
    expect(unhandled).not.toHaveBeenCalled()
  })

  it('rejects with a refusal on request', async () => {
    const waits = expect(withTimeout(never, { ms: 100, code: 'approval_timeout' })).rejects
    const timed_out = waits.toMatchObject({ code: 'approval_timeout' })
    await vi.advanceTimersByTimeAsync(100)
    await timed_out
    const signal = AbortSignal.abort()
    await expect(withTimeout(never, { ms: 100, code: 'timeout', signal })).rejects.toMatchObject({ code: 'cancelled' })
  })
})

describe('closing', () => {
  it('counts unfinished work, counts failures as finished, and leaves no timer', async () => {
    useFakeTimers()
    expect(await endWithin([Promise.resolve(), Promise.reject(new Error('failed'))], 100)).toEqual({ aborted: 0 })
    expect(ourTimers()).toEqual([])
    const ending = endWithin([Promise.resolve(), never(), never()], 100)
    await vi.advanceTimersByTimeAsync(100)
    expect(await ending).toEqual({ aborted: 2 })
    expect(ourTimers()).toEqual([])
  })
})
