import { describe, expect, it } from 'vitest'
import { createContextRegistry } from '../../src/memory/contexts.js'
import { ASK, createClock, walk } from '../contract/clock.js'
import { contextBattery } from '../contract/contexts.js'

contextBattery('memory', (options) => createContextRegistry(options))

const context = (i: number) =>
  ({ context_id: `t${i}`, user_id: 'ann', client_id: 'c', client_type: 'web', status: 'idle', window_id: 'w' }) as const

describe('the context registry in memory', () => {
  it('returns one frozen object per context until it changes', async () => {
    const contexts = createContextRegistry()
    const made = await contexts.report(context(1))
    expect(await contexts.inspector.getContext('t1', ASK)).toBe(made)
    expect(Object.isFrozen(made)).toBe(true)
    expect(await contexts.report(context(1))).not.toBe(made)
  })

  it('refuses a new context over its limit, and accepts reports of existing ones', async () => {
    const contexts = createContextRegistry({ maxEntries: 2 })
    for (const i of [1, 2, 1]) await contexts.report(context(i))
    await expect(contexts.report(context(3))).rejects.toMatchObject({ code: 'capacity_exceeded' })
  })

  it('returns correct results while more contexts are stale than one call sweeps', async () => {
    const clock = createClock()
    const { inspector, ...contexts } = createContextRegistry({ now: clock.now, ttlMs: 1_000 })
    for (let i = 0; i < 40_000; i++) await contexts.report(context(i))
    await contexts.report({ ...context(40_000), window_id: 'v', ownership: 'worker' })
    clock.advance(1_000)
    expect(await inspector.countContexts?.({}, ASK)).toBeNull()
    const counted = await inspector.countByWindow?.(['w', 'v'], ASK)
    expect(counted).toMatchObject([{ window_id: 'v', worker_count: 0 }])
    expect([counted?.truncated, counted?.examined]).toEqual([true, 2])
    expect(await inspector.getContext('t40000', ASK)).toMatchObject({ status: 'stale' })
    expect(await inspector.countContexts?.({ status: 'stale' }, ASK)).toMatchObject({ total: 40_001 })
  })

  it('returns counts that match the list when one entry was read before the sweep', async () => {
    const clock = createClock()
    const { inspector, ...contexts } = createContextRegistry({ now: clock.now, ttlMs: 1_000 })
    for (let i = 0; i < 15_000; i++) await contexts.report(context(i))
    clock.advance(500)
    await contexts.report(context(15_000))
    clock.advance(1_000)
    expect(await inspector.getContext('t15000', ASK)).toMatchObject({ status: 'stale' })
    expect(await inspector.countContexts?.({}, ASK)).toMatchObject({ by_status: { stale: 15_001 } })
    clock.advance(500)
    await inspector.countContexts?.({}, ASK)
    expect(await inspector.countContexts?.({}, ASK)).toMatchObject({ total: 1 })
    expect(await walk((page) => inspector.listContexts({}, page, ASK))).toMatchObject([{ context_id: 't15000' }])
  })
})
