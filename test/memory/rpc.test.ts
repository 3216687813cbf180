import { describe, expect, it } from 'vitest'
import { createRpcCorrelator } from '../../src/memory/rpc/facility.js'
import { rpcBattery } from '../contract/rpc.js'

rpcBattery('memory', (options) => createRpcCorrelator(options))

const call = { action: 'a', user_id: 'u', client_id: 'c' }

describe('the correlator in memory', () => {
  it('has no checkInstance without connections', () => {
    expect(createRpcCorrelator().inspector.checkInstance).toBeUndefined()
  })

  it('counts replies by result', async () => {
    const rpc = createRpcCorrelator({ newId: () => 'id' })
    await rpc.open(call)
    await rpc.settle('id', { ok: true, result: 1, from: { user_id: 'x', client_id: 'c' } })
    await rpc.settle('id', { ok: true, result: 1 })
    await rpc.settle('id', { ok: true, result: 1 })
    const caller = new AbortController()
    await rpc.open({ ...call, signal: caller.signal })
    caller.abort()
    const { result } = await rpc.open({ ...call, timeout_ms: 1 })
    await result.catch(() => {})
    expect(rpc.counters).toEqual({ settled: 1, timed_out: 1, cancelled: 1, late: 1, foreign: 1 })
  })

  it('refuses calls over its limit until one has ended', async () => {
    let opened = 0
    const rpc = createRpcCorrelator({ maxPending: 1, newId: () => `id${++opened}` })
    await rpc.open(call)
    await expect(rpc.open(call)).rejects.toMatchObject({ code: 'capacity_exceeded' })
    await expect(rpc.open({ ...call, user_id: 'other' })).rejects.toMatchObject({ code: 'capacity_exceeded' })
    await rpc.settle('id1', { ok: false, error: 'no' })
    await expect(rpc.open(call)).resolves.toBeDefined()
    await rpc.close()
  })

  it.each([
    ['all', { maxPending: 2 }],
    ['one user', { maxPendingPerUser: 2 }],
  ])('keeps no place of %s for a call whose time is over by the clock of its host', async (_, bounds) => {
    let time = 1_000_000
    const rpc = createRpcCorrelator({ ...bounds, now: () => time })
    const over = { ...call, correlation_id: 'over', timeout_ms: 1_000 }
    const first = await rpc.open(over)
    const ended = expect(first.result).rejects.toMatchObject({ code: 'timeout' })
    await rpc.open({ ...call, correlation_id: 'longer', timeout_ms: 60_000 })
    await expect(rpc.open(call)).rejects.toMatchObject({ code: 'capacity_exceeded' })
    time += 1_000
    // Its id is free as well.
    const next = await rpc.open(over)
    await ended
    await expect(rpc.open(call)).rejects.toMatchObject({ code: 'capacity_exceeded' })
    expect(await rpc.settle('over', { ok: true, result: 'next' })).toBe(true)
    expect(await next.result).toBe('next')
    expect(rpc.counters).toMatchObject({ timed_out: 1, settled: 1, late: 0 })
    await rpc.close()
  })

  it('ends every call after a timeout', async () => {
    const { result } = await createRpcCorrelator({ defaultTimeoutMs: 1 }).open(call)
    await expect(result).rejects.toMatchObject({ code: 'timeout' })
  })

  it('keeps the process alive for a timeout that the caller set, and for no other', async () => {
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length
    const rpc = createRpcCorrelator()
    const before = timers()
    await rpc.open(call)
    expect(timers()).toBe(before)
    await rpc.open({ ...call, timeout_ms: 60_000 })
    expect(timers()).toBe(before + 1)
    await rpc.close()
    expect(timers()).toBe(before)
  })

  it('leaves no listener on the signal of its caller', async () => {
    const listeners = new Set<unknown>()
    const signal = {
      aborted: false,
      addEventListener: (_: string, fn: unknown) => listeners.add(fn),
      removeEventListener: (_: string, fn: unknown) => listeners.delete(fn),
    } as unknown as AbortSignal
    const rpc = createRpcCorrelator({ newId: () => 'id' })
    await rpc.open({ ...call, signal })
    expect(listeners.size).toBe(1)
    await rpc.settle('id', { ok: true, result: 1 })
    expect(listeners.size).toBe(0)
  })
})
