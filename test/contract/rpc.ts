/** What every correlator must do, whatever it keeps its pending calls in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { Inspected } from '../../src/contract/inspectors.js'
import type { Awaitable } from '../../src/contract/page.js'
import type {
  CallOutcome,
  OpenCallInput,
  PendingCallFilter,
  RpcCorrelator,
  RpcInspector,
  RpcSummary,
} from '../../src/contract/rpc.js'
import { ASK, at, type Clock, createClock, walk } from './clock.js'
import { withSortedLists } from './parts.js'

export type RpcFacility = Inspected<RpcCorrelator & { close(): Promise<unknown> }, RpcInspector>

/** What the correlator is told of connections: only `ann`'s `desk` is connected, with instance `one`. */
export const CONNECTIONS = {
  currentInstance: async (client: { user_id: string; client_id: string }) =>
    client.user_id === 'ann' && client.client_id === 'desk' ? 'one' : null,
}

export function rpcBattery(
  name: string,
  make: (options: { now: () => number; connections: typeof CONNECTIONS }) => Awaitable<RpcFacility>,
): void {
  describe(`rpc in ${name}`, () => {
    let clock: Clock
    let rpc: RpcFacility

    beforeEach(async () => {
      clock = createClock()
      rpc = await make({ now: clock.now, connections: CONNECTIONS })
      return () => rpc.close()
    })

    const open = (over: Partial<OpenCallInput> = {}) =>
      rpc.open({ action: 'tabs.list', user_id: 'ann', client_id: 'desk', ...over })
    const pending = (filter: PendingCallFilter = {}) => walk((page) => rpc.inspector.listPending(filter, page, ASK), 2)

    it('shows a call for as long as it is pending, with its age', async () => {
      const { correlation_id } = await open({ instance_id: 'one', timeoutMs: 5_000 })
      clock.advance(1_234)
      const call = {
        correlation_id,
        action: 'tabs.list',
        user_id: 'ann',
        client_id: 'desk',
        instance_id: 'one',
        started_at: at(),
        deadline_at: at(5_000),
        age_ms: 1_234,
      }
      expect(await rpc.inspector.getPending(correlation_id, ASK)).toEqual(call)
      expect(await pending()).toEqual([call])
      await rpc.settle(correlation_id, { ok: true, result: null })
      expect(await rpc.inspector.getPending(correlation_id, ASK)).toBeNull()
      expect(await pending()).toEqual([])
    })

    it('never shows a negative age', async () => {
      const { correlation_id } = await open()
      clock.advance(-600_000)
      expect(await rpc.inspector.getPending(correlation_id, ASK)).toMatchObject({ age_ms: 0 })
    })

    it('resolves with the result of the one reply', async () => {
      const { correlation_id, result } = await open()
      expect(await rpc.settle(correlation_id, { ok: true, result: { tabs: 3 } })).toBe(true)
      expect(await rpc.settle(correlation_id, { ok: true, result: 'late' })).toBe(false)
      expect(await result).toEqual({ tabs: 3 })
    })

    it('rejects with the error of the reply', async () => {
      const { correlation_id, result } = await open()
      expect(await rpc.settle(correlation_id, { ok: false, error: { code: 'denied' } })).toBe(true)
      await expect(result).rejects.toEqual({ code: 'denied' })
    })

    it('drops a reply that comes from somebody else', async () => {
      const { correlation_id, result } = await open({ instance_id: 'one' })
      const desk = { user_id: 'ann', client_id: 'desk' }
      for (const from of [
        { user_id: 'bob', client_id: 'desk' },
        { user_id: 'ann', client_id: 'phone' },
        { ...desk, instance_id: 'two' },
      ])
        expect(await rpc.settle(correlation_id, { ok: true, result: 'forged', from })).toBe(false)
      expect(
        await rpc.settle(correlation_id, { ok: true, result: 'true', from: { ...desk, instance_id: 'one' } }),
      ).toBe(true)
      expect(await result).toBe('true')
    })

    it('holds a sender beside the reply to the call as well', async () => {
      const { correlation_id, result } = await open({ instance_id: 'one' })
      const desk = { user_id: 'ann', client_id: 'desk' }
      const forged = await rpc.settle(correlation_id, { ok: true, result: 'forged' }, { ...desk, user_id: 'bob' })
      expect(forged).toBe(false)
      expect(await rpc.settle(correlation_id, { ok: true, result: 'true' }, desk)).toBe(true)
      expect(await result).toBe('true')
    })

    it('refuses what is no reply and goes on waiting', async () => {
      const { correlation_id, result } = await open({ instance_id: null })
      for (const outcome of [undefined, null, {}, { ok: 'yes' }] as unknown as CallOutcome[])
        await expect(async () => rpc.settle(correlation_id, outcome)).rejects.toMatchObject({ code: 'invalid_input' })
      expect(await rpc.settle(correlation_id, { ok: true, result: 1 })).toBe(true)
      expect(await result).toBe(1)
    })

    it('drops a reply to a call that was never opened', async () => {
      for (const id of ['nope', '__proto__', '']) expect(await rpc.settle(id, { ok: true, result: 1 })).toBe(false)
    })

    it('gives every call an id of at least 128 random bits', async () => {
      const ids = await Promise.all(Array.from({ length: 100 }, async () => (await open()).correlation_id))
      expect(new Set(ids).size).toBe(100)
      for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32,}$/)
    })

    it('ends a call that is cancelled', async () => {
      const caller = new AbortController()
      const { correlation_id, result } = await open({ signal: caller.signal })
      caller.abort()
      await expect(result).rejects.toMatchObject({ code: 'cancelled' })
      expect(await rpc.settle(correlation_id, { ok: true, result: 1 })).toBe(false)
      expect(await pending()).toEqual([])
      await expect(async () => open({ signal: caller.signal })).rejects.toMatchObject({ code: 'cancelled' })
    })

    it('ends a call whose time has passed', async () => {
      const { result } = await open({ timeoutMs: 1 })
      await expect(result).rejects.toMatchObject({ code: 'timeout' })
      expect(await pending()).toEqual([])
    })

    it('ends all calls when it is closed, and opens no more', async () => {
      const { result } = await open()
      await rpc.close()
      await expect(result).rejects.toMatchObject({ code: 'closed' })
      await expect(async () => open()).rejects.toMatchObject({ code: 'closed' })
      await rpc.close()
    })

    it('filters by every field', async () => {
      for (let i = 0; i < 12; i++) await open({ user_id: `u${i % 2}`, client_id: `c${i % 3}`, action: `a${i % 4}` })
      expect(await pending()).toHaveLength(12)
      expect(await pending({ user_id: 'u1' })).toHaveLength(6)
      expect(await pending({ client_id: 'c1' })).toHaveLength(4)
      expect(await pending({ action: 'a3' })).toHaveLength(3)
      expect(await pending({ user_id: 'u1', client_id: 'c1', action: 'a3' })).toHaveLength(1)
      expect(await pending({ user_id: 'u0', action: 'a3' })).toEqual([])
    })

    it('tells what it knows of users', async () => {
      await open()
      await open({ client_id: 'phone' })
      await open({ user_id: 'bob' })
      expect([...((await rpc.inspector.listUserIds?.({ after: null, limit: 5 }, ASK)) ?? [])]).toEqual(['ann', 'bob'])
      expect(withSortedLists(await rpc.inspector.observeUsers?.(['ann', 'nobody'], ASK))).toEqual([
        { user_id: 'ann', pending_rpc: 2, observed_client_ids: ['desk', 'phone'] },
      ])
    })

    it('checks an instance against the connections', async () => {
      const check = async (instance_id: string, client_id = 'desk') =>
        rpc.inspector.checkInstance?.({ user_id: 'ann', client_id, instance_id }, ASK)
      expect(await check('one')).toEqual({ current: true, current_instance_id: 'one' })
      expect(await check('two')).toEqual({ current: false, current_instance_id: 'one' })
      expect(await check('one', 'phone')).toEqual({ current: false, current_instance_id: null })
    })

    const NONE = { opened: 0, succeeded: 0, failed: 0, timed_out: 0, cancelled: 0, late: 0, foreign: 0 }
    const summary = async () => (await rpc.inspector.summary?.(ASK)) as RpcSummary

    it('has counted nothing before the first call', async () => {
      expect(await summary()).toEqual({
        pending: 0,
        oldest_started_at: null,
        oldest_age_ms: null,
        overdue: 0,
        counters: NONE,
        counting_since: null,
        observed_at: at(),
      })
    })

    it('counts how every call ended, and every reply that was dropped', async () => {
      const first = await open({ timeoutMs: 600_000 })
      clock.advance(2_000)
      const from = { user_id: 'bob', client_id: 'desk' }
      for (const reply of ['wrong', 'again']) await rpc.settle(first.correlation_id, { ok: true, result: reply, from })
      const answered = await Promise.all([open({ user_id: 'u1' }), open({ user_id: 'u2' }), open({ user_id: 'u3' })])
      await rpc.settle(answered[0].correlation_id, { ok: true, result: 1 })
      await rpc.settle(answered[1].correlation_id, { ok: true, result: 1 })
      await rpc
        .settle(answered[2].correlation_id, { ok: false, error: 'no' })
        .then(() => answered[2].result.catch(() => {}))
      for (const id of [answered[0].correlation_id, answered[2].correlation_id, 'never'])
        await rpc.settle(id, { ok: true, result: 2 })
      const caller = new AbortController()
      const given = await open({ user_id: 'u4', signal: caller.signal })
      caller.abort()
      await given.result.catch(() => {})
      const ended = await open({ user_id: 'u5', timeoutMs: 1 })
      await ended.result.catch(() => {})
      const last = await open({ user_id: 'u6' })
      expect(await summary()).toEqual({
        pending: 2,
        oldest_started_at: at(),
        oldest_age_ms: 2_000,
        overdue: 0,
        counters: { opened: 7, succeeded: 2, failed: 1, timed_out: 1, cancelled: 1, late: 3, foreign: 2 },
        counting_since: at(),
        observed_at: at(2_000),
      })
      await rpc.settle(first.correlation_id, { ok: true, result: 1 })
      expect(await summary()).toMatchObject({ pending: 1, oldest_started_at: at(2_000), oldest_age_ms: 0 })
      await rpc.settle(last.correlation_id, { ok: true, result: 1 })
      expect(await summary()).toMatchObject({ pending: 0, oldest_started_at: null, counting_since: at() })
    })

    it('counts what a closing ends as cancelled', async () => {
      const { result } = await open()
      await rpc.close()
      await result.catch(() => {})
      expect(await summary()).toMatchObject({ pending: 0, counters: { ...NONE, opened: 1, cancelled: 1 } })
    })

    it('counts a call whose time is over as overdue until somebody has ended it', async () => {
      await open({ timeoutMs: 5_000 })
      await open({ user_id: 'bob', timeoutMs: 60_000 })
      clock.advance(5_000)
      expect(await summary()).toMatchObject({
        pending: 1,
        overdue: 1,
        oldest_started_at: at(),
        oldest_age_ms: 5_000,
        counters: { ...NONE, opened: 2 },
      })
    })

    it('refuses what is no call, and keeps nothing of it', async () => {
      for (const over of [{ action: '' }, { user_id: 'a\rb' }, { timeoutMs: 0 }, { timeoutMs: 86_400_001 }])
        await expect(async () => open(over)).rejects.toMatchObject({ code: 'invalid_input' })
      expect(await pending()).toEqual([])
    })
  })
}
