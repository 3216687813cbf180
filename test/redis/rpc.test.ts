import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { createRedisFacilities } from '../../src/redis/composition/facilities.js'
import { createRedisRpcCorrelator } from '../../src/redis/rpc/facility.js'
import { decodeReply, encodeReply } from '../../src/redis/rpc/inspector.js'
import { createStore } from '../../src/redis/store/store.js'
import { ASK, createClock } from '../contract/clock.js'
import { rpcBattery } from '../contract/rpc.js'
import { describeStores, planted } from './matrix.js'
import { soon } from './wait-for.js'

describe('a reply in the store', () => {
  it('stays an Error whatever its fields are called', () => {
    const error = Object.assign(new Error('boom'), { cause: 1 })
    Object.defineProperty(error, '__proto__', { value: { forged: true }, enumerable: true })
    const { error: read } = decodeReply(encodeReply({ ok: false, error })) as { error: Error }
    expect(read).toBeInstanceOf(Error)
    expect(read).not.toHaveProperty('forged')
    expect(Object.entries(read)).toContainEqual(['__proto__', { forged: true }])
    expect([read.message, read.cause]).toEqual(['boom', 1])
  })

  it('keeps an error that is not an Error unchanged', () => {
    for (const error of [{ name: 'Error', message: 'boom' }, 'boom', null])
      expect(decodeReply(JSON.stringify({ ok: false, error }))).toEqual({ ok: false, error })
    for (const error of ['boom', null, 5])
      expect(decodeReply(JSON.stringify({ ok: false, error, is_error: true }))).toEqual({ ok: false, error })
  })
})

describeStores('the correlator in Redis', (kind, place) => {
  rpcBattery(kind, (options) => createRedisRpcCorrelator({ ...place(), ...options }))

  describe('between nodes', () => {
    it('settles a call on another node than the one that opened it', async () => {
      const deployment = place()
      const [here, there] = [createRedisRpcCorrelator(deployment), createRedisRpcCorrelator(deployment)]
      const call = { action: 'a', user_id: 'ann', client_id: 'c' }
      const opened = await Promise.all(Array.from({ length: 20 }, (_, i) => here.open({ ...call, user_id: `u${i}` })))
      for (const [i, { correlation_id }] of opened.entries())
        expect(await there.settle(correlation_id, { ok: true, result: { i } })).toBe(true)
      expect(await Promise.all(opened.map(({ result }) => result))).toEqual(opened.map((_, i) => ({ i })))
      const refused = await here.open(call)
      await there.settle(refused.correlation_id, { ok: false, error: new Refusal('action_timeout', 'late') })
      await expect(refused.result).rejects.toMatchObject({ name: 'Refusal', code: 'action_timeout' })
      expect(await there.settle(refused.correlation_id, { ok: true, result: 1 })).toBe(false)
      expect(there.counters).toMatchObject({ settled: 21, late: 1 })
      await Promise.all([here.close(), there.close()])
    })

    it('opens one of two concurrent calls with the same id, and that one ends', async () => {
      const rpc = createRedisRpcCorrelator(place())
      const call = { action: 'a', user_id: 'ann', client_id: 'c', correlation_id: 'k' }
      const [first, second] = await Promise.allSettled([rpc.open(call), rpc.open(call)])
      expect(second).toMatchObject({ status: 'rejected', reason: { code: 'command_conflict' } })
      expect(await rpc.settle('k', { ok: true, result: 1 })).toBe(true)
      // After that no call is without an end.
      await rpc.close()
      expect(await Promise.race([first.status === 'fulfilled' && first.value.result, 'none'])).toBe(1)
    })

    it('counts a call whose node has died as timed out once, regardless of which node removes it', async () => {
      const clock = createClock()
      const where = { ...place(), now: clock.now }
      const [dead, living] = [createRedisRpcCorrelator(where), createRedisRpcCorrelator(where)]
      const call = { action: 'a', user_id: 'ann', client_id: 'c', timeout_ms: 5_000 }
      const { result } = await dead.open(call)
      clock.advance(6_000)
      const { correlation_id } = await living.open(call)
      const told = { pending: 1, overdue: 0, counters: { opened: 2, timed_out: 1, cancelled: 0 } }
      expect(await living.inspector.summary?.(ASK)).toMatchObject(told)
      await dead.close()
      await expect(result).rejects.toMatchObject({ code: 'closed' })
      expect(await living.inspector.summary?.(ASK)).toMatchObject(told)
      await living.settle(correlation_id, { ok: true, result: 1 })
      expect(await living.inspector.summary?.(ASK)).toMatchObject({ pending: 0, counters: { succeeded: 1 } })
      await living.close()
    })

    it('removes calls of other nodes, even if no call is opened any more', async () => {
      const clock = createClock()
      const where = { ...place(), now: clock.now }
      const dead = createRedisRpcCorrelator(where)
      const { result } = await dead.open({ action: 'a', user_id: 'ann', client_id: 'c', timeout_ms: 5_000 })
      clock.advance(6_000)
      const node = createRedisFacilities(where)
      await node.dispatcher.dispatch({ user_id: 'ann', client_id: 'c', command_id: 'k', action: 'a' })
      await soon(async () => {
        await node.dispatcher.reconcile()
        const told = { pending: 0, overdue: 0, counters: { opened: 1, timed_out: 1 } }
        expect(await node.rpc.inspector.summary?.(ASK)).toMatchObject(told)
      })
      await Promise.all([dead.close(), node.close(), result.catch(() => {})])
    })

    it('opens calls whatever the counters contain, and reports invalid ones', async () => {
      const heard: unknown[] = []
      const where = { ...place(), onError: (error: unknown) => heard.push(error) }
      const rpc = createRedisRpcCorrelator(where)
      const call = { action: 'a', user_id: 'ann', client_id: 'c' }
      const store = createStore(where)
      await rpc.open(call)
      const key = store.key(await store.shardOf('ann'), 'calls', 'counts')
      planted.add(key)
      await store.command(['HSET', key, 'opened', 'many', 'since', 'yesterday'], key)
      await rpc.open(call)
      const told = { pending: 2, counters: { opened: 0 }, counting_since: null }
      expect(await rpc.inspector.summary?.(ASK)).toMatchObject(told)
      expect(heard).toHaveLength(1)
      await store.command(['DEL', key], key)
      await store.command(['SET', key, 'x'], key)
      const { correlation_id } = await rpc.open(call)
      expect(await rpc.settle(correlation_id, { ok: true, result: 1 })).toBe(true)
      expect(await rpc.inspector.summary?.(ASK)).toMatchObject(told)
      expect(heard).toHaveLength(2)
      await rpc.close()
    })

    it('refuses a reply that is too large for the store, and the call keeps waiting', async () => {
      const rpc = createRedisRpcCorrelator(place())
      const { correlation_id, result } = await rpc.open({ action: 'a', user_id: 'ann', client_id: 'c' })
      await expect(rpc.settle(correlation_id, { ok: true, result: 'x'.repeat(2_000_000) })).rejects.toMatchObject({
        code: 'payload_too_large',
      })
      expect(await rpc.settle(correlation_id, { ok: true, result: 1 })).toBe(true)
      expect(await result).toBe(1)
      await rpc.close()
    })
  })
})
