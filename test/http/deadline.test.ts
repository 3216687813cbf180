import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Deadline, DeadlinePassed } from '../../src/internal/async/deadline.js'
import { ourTimers, useFakeTimers } from '../fake-timers.js'

/** A client that never leaves. */
const STAYING = new AbortController()

const FAKE: Parameters<typeof vi.useFakeTimers>[0] = { toFake: ['setTimeout', 'clearTimeout', 'performance'] }

describe('a deadline', () => {
  beforeEach(() => {
    vi.useFakeTimers(FAKE)
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('costs nothing while what is asked answers at once', () => {
    useFakeTimers(FAKE)
    const client = new AbortController()
    const listen = vi.spyOn(client.signal, 'addEventListener')
    const deadline = new Deadline(100, client)
    const value = { items: [] }
    expect(deadline.race(value)).toBe(value)
    expect([ourTimers(), listen.mock.calls]).toEqual([[], []])
    deadline.clear()
    expect(deadline.signal.aborted).toBe(false)
    expect(ourTimers()).toEqual([])
  })

  it('aborts pending work once when the client has disconnected before the signal was read', async () => {
    const client = new AbortController()
    const deadline = new Deadline(100, client)
    const waiting = [1, 2].map(() =>
      Promise.resolve(deadline.race(new Promise(() => {}))).catch((reason: unknown) => reason),
    )
    client.abort('left')
    await vi.advanceTimersByTimeAsync(1)
    expect(await Promise.all(waiting)).toEqual(['left', 'left'])
    deadline.clear()
  })

  it('creates no signal for a promise that settles within its turn, and one for work that continues', async () => {
    useFakeTimers(FAKE)
    const client = new AbortController()
    const listen = vi.spyOn(client.signal, 'addEventListener')
    const quick = new Deadline(100, client)
    expect(await quick.race(Promise.resolve('at hand'))).toBe('at hand')
    quick.clear()
    expect([ourTimers(), listen.mock.calls]).toEqual([[], []])

    const slow = new Deadline(100, client)
    const work = Promise.resolve(slow.race(new Promise(() => {}))).catch((reason: unknown) => reason)
    await vi.advanceTimersByTimeAsync(1)
    expect(listen).toHaveBeenCalledOnce()
    client.abort('left')
    await vi.advanceTimersByTimeAsync(1)
    expect(await work).toBe('left')
  })

  it('runs from its start, not from when its signal is first looked at', async () => {
    const deadline = new Deadline(100, STAYING)
    await vi.advanceTimersByTimeAsync(90)
    const { signal } = deadline
    await vi.advanceTimersByTimeAsync(9)
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.aborted).toBe(true)
  })

  it('rejects with its reason when it passes, and aborts its signal', async () => {
    const deadline = new Deadline(100, STAYING)
    const work = Promise.resolve(deadline.race(new Promise(() => {}))).catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(99)
    expect(deadline.signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(5)
    expect(await work).toBeInstanceOf(DeadlinePassed)
    expect(deadline.signal.reason).toBeInstanceOf(DeadlinePassed)
  })

  it('lets work win that settles because of the abort', async () => {
    const deadline = new Deadline(100, STAYING)
    const listening = new Promise((resolve) => deadline.signal.addEventListener('abort', () => resolve('a part')))
    const work = deadline.race(listening)
    await vi.advanceTimersByTimeAsync(200)
    expect(await work).toBe('a part')
  })

  it('is brought forward by a client that leaves, before it asks and while', async () => {
    expect(new Deadline(100, { signal: AbortSignal.abort('gone') }).signal.reason).toBe('gone')
    const client = new AbortController()
    const deadline = new Deadline(100, client)
    client.abort('left')
    expect(deadline.signal.reason).toBe('left')
  })

  it('once cleared, follows neither the clock nor the client', async () => {
    const client = new AbortController()
    const deadline = new Deadline(100, client)
    expect(deadline.signal.aborted).toBe(false)
    deadline.clear()
    client.abort()
    await vi.advanceTimersByTimeAsync(200)
    expect(deadline.signal.aborted).toBe(false)
  })
})
