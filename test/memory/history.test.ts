import { describe, expect, it } from 'vitest'
import type { SpillStore } from '../../src/internal/contract/history.js'
import { createMessageHistory } from '../../src/memory/history/facility.js'
import { createMemorySpillStore } from '../../src/memory/history/spill-store.js'
import { ASK } from '../contract/clock.js'
import { historyBattery } from '../contract/history.js'
import { historySharesBattery } from '../contract/history-shares.js'

historyBattery('memory', (options) => createMessageHistory(options))
historySharesBattery('memory', (options) => createMessageHistory(options))

const message = (message_id: string, payload: string, stream = 'users/u/s') =>
  ({ message_id, stream, kind: 'event', user_id: 'u', client_id: 'c', instance_id: 'i', payload }) as const

const HANGING: SpillStore = { put: async () => {}, get: () => new Promise(() => {}), delete: async () => {} }

describe('the message history in memory', () => {
  it('returns frozen messages, a new copy each time, and one object per stream until it changes', async () => {
    const history = createMessageHistory()
    const made = await history.append({ ...message('m', ''), payload: { a: [1] } })
    const read = async () => (await history.inspector.readMessages({ stream: 'users/u/s', limit: 5 }, ASK)).items[0]
    const stream = async () => (await history.inspector.listStreams?.({}, { limit: 5, cursor: null }, ASK))?.items[0]
    expect(await read()).toEqual(made)
    expect(await read()).not.toBe(made)
    expect([made, made.payload].every(Object.isFrozen)).toBe(true)
    const shown = await stream()
    expect(await stream()).toBe(shown)
    await history.append(message('m2', ''))
    expect(await stream()).not.toBe(shown)
  })

  it('returns every message in time while the spill store stalls', async () => {
    const history = createMessageHistory({ spill: HANGING, inlineBytes: 10, hydrationMs: 5 })
    for (let i = 0; i < 30; i++) await history.append(message(`m${i}`, 'x'.repeat(20)))
    const { items } = await history.inspector.readMessages({ stream: 'users/u/s', limit: 100 }, ASK)
    expect(items).toHaveLength(30)
    expect(new Set(items.map((m) => m.externalized?.hydration))).toEqual(new Set(['error']))
  })

  it('stops waiting for the spill store when its caller aborts', async () => {
    const history = createMessageHistory({ spill: HANGING, inlineBytes: 10, hydrationMs: 60_000 })
    await history.append(message('m', 'x'.repeat(20)))
    const gone = new AbortController()
    const reading = history.inspector.readMessages({ stream: 'users/u/s', limit: 1 }, { signal: gone.signal })
    gone.abort()
    expect((await reading).items[0]?.externalized?.hydration).toBe('error')
  })

  it('reads few payloads at a time, and returns the newest, at most eight mebibytes', async () => {
    let reading = 0
    let most = 0
    const store = createMemorySpillStore()
    const spill: SpillStore = {
      ...store,
      async get(ref, options) {
        most = Math.max(most, ++reading)
        const text = await store.get(ref, options)
        reading--
        return text
      },
    }
    const history = createMessageHistory({ spill })
    for (let i = 0; i < 12; i++) await history.append(message(`m${i}`, 'x'.repeat(1_000_000)))
    const { items } = await history.inspector.readMessages({ stream: 'users/u/s', limit: 100 }, ASK)
    const states = items.map((m) => m.externalized?.hydration)
    expect(states).toEqual([...Array(4).fill('too_large'), ...Array(8).fill('hydrated')])
    expect(most).toBeLessThanOrEqual(8)
  })

  it('refuses a payload over its limit even with a spill store', async () => {
    const history = createMessageHistory({ spill: createMemorySpillStore(), maxPayloadBytes: 100_000 })
    await expect(history.append(message('m', 'x'.repeat(100_000)))).rejects.toMatchObject({ code: 'payload_too_large' })
  })

  it('remembers a bounded number of emptied streams', async () => {
    const history = createMessageHistory({ maxMessages: 2 })
    for (let i = 0; i < 5; i++) await history.append(message('m', '', `users/u/s${i}`))
    // s0 has been forgotten; s1 and s2 are remembered though empty.
    const read = async (i: number) => history.inspector.readMessages({ stream: `users/u/s${i}`, limit: 1 }, ASK)
    expect([(await read(0)).truncated, (await read(1)).truncated]).toEqual([false, true])
  })
})

describe('the spill store in memory', () => {
  const options = { signal: ASK.signal, maxBytes: 100 }

  it('evicts the oldest texts when it is full', async () => {
    const store = createMemorySpillStore({ maxBytes: 10 })
    for (const ref of ['a', 'b', 'c']) await store.put(ref, 'éé')
    expect([await store.get('a', options), await store.get('b', options)]).toEqual([null, 'éé'])
    await store.put('b', '12')
    await store.delete('c')
    await store.put('d', '12345678')
    expect(await store.get('b', options)).toBe('12')
  })

  it('refuses a text larger than its limit', async () => {
    await expect(createMemorySpillStore({ maxBytes: 3 }).put('a', 'éé')).rejects.toMatchObject({
      code: 'payload_too_large',
    })
  })

  it('reports messages as missing once their payloads were evicted', async () => {
    const history = createMessageHistory({ spill: createMemorySpillStore({ maxBytes: 150 }), inlineBytes: 10 })
    for (const id of ['a', 'b']) await history.append(message(id, 'x'.repeat(98)))
    const { items } = await history.inspector.readMessages({ stream: 'users/u/s', limit: 5 }, ASK)
    expect(items.map((m) => m.externalized?.hydration)).toEqual(['missing', 'hydrated'])
  })
})
