/** What every correlator must do, whatever it keeps its pending calls in. */

import { beforeEach, describe, expect, it } from 'vitest'
import type { Inspected } from '../../src/internal/contract/families.js'
import type { Awaitable } from '../../src/internal/contract/page.js'
import type {
  CallOutcome,
  OpenCallInput,
  PendingCall,
  PendingCallFilter,
  RpcCorrelator,
  RpcInspector,
  RpcSummary,
} from '../../src/internal/contract/rpc.js'
import { ASK, at, type Clock, createClock, walk } from './clock.js'
import { withSortedLists } from './parts.js'
import { endedCalls } from './rpc-ended.js'
import { observedCalls } from './rpc-observed.js'

export type RpcFacility = Inspected<RpcCorrelator & { close(): Promise<unknown> }, RpcInspector>

/** The connections that the correlator sees: only `ann`'s `desk` is connected, with instance `one`. */
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

    endedCalls(() => ({ clock, rpc }))
    observedCalls(() => ({ clock, rpc }))

    it('shows a call for as long as it is pending, with its age', async () => {
      const { correlation_id } = await open({ instance_id: 'one', timeout_ms: 5_000 })
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
        overdue: false,
        direction: 'to_client',
        observed: false,
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

    it('refuses a reply with an unknown field, whose sender it would not check, and stays open', async () => {
      const { correlation_id, result } = await open()
      const forged = { ok: true as const, result: 1, form: { user_id: 'mallory', client_id: 'm' } }
      await expect(async () => rpc.settle(correlation_id, forged)).rejects.toMatchObject({
        code: 'invalid_input',
        detail: 'Unknown field "outcome.form". Did you mean "outcome.from"?',
      })
      expect(await rpc.settle(correlation_id, { ok: true, result: 2 })).toBe(true)
      expect(await result).toBe(2)
    })

    it('rejects with the error of the reply', async () => {
      const { correlation_id, result } = await open()
      expect(await rpc.settle(correlation_id, { ok: false, error: { code: 'denied' } })).toBe(true)
      await expect(result).rejects.toEqual({ code: 'denied' })
    })

    it('rejects with an Error where the reply has one, with its name, its message and its own fields', async () => {
      const { correlation_id, result } = await open()
      const error = Object.assign(new TypeError('boom'), { code: 'denied', fields: ['tab'] })
      await rpc.settle(correlation_id, { ok: false, error })
      const caught = await result.catch((reason: unknown) => reason)
      expect(caught).toBeInstanceOf(Error)
      expect(String(caught)).toBe('TypeError: boom')
      expect({ ...(caught as object) }).toEqual({ code: 'denied', fields: ['tab'] })
    })

    it('rejects with a non-Error value unchanged', async () => {
      for (const error of [{ name: 'TypeError', message: 'boom' }, { is_error: true }, 'boom', ['boom'], null]) {
        const { correlation_id, result } = await open()
        await rpc.settle(correlation_id, { ok: false, error })
        const caught = await result.catch((reason: unknown) => reason)
        expect(caught).toEqual(error)
        expect(caught).not.toBeInstanceOf(Error)
      }
    })

    it('drops a reply from another client', async () => {
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

    it('checks a given sender as well as the reply', async () => {
      const { correlation_id, result } = await open({ instance_id: 'one' })
      const desk = { user_id: 'ann', client_id: 'desk' }
      const forged = await rpc.settle(correlation_id, { ok: true, result: 'forged' }, { ...desk, user_id: 'bob' })
      expect(forged).toBe(false)
      expect(await rpc.settle(correlation_id, { ok: true, result: 'true' }, desk)).toBe(true)
      expect(await result).toBe('true')
    })

    it('refuses an invalid reply and keeps waiting', async () => {
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

    it('refuses an id that is pending, and takes it again once that call has ended', async () => {
      const { correlation_id, result } = await open({ correlation_id: 'mine' })
      await expect(async () => open({ correlation_id })).rejects.toMatchObject({ code: 'command_conflict' })
      expect(await rpc.settle(correlation_id, { ok: true, result: 1 })).toBe(true)
      expect(await result).toBe(1)
      const again = await open({ correlation_id })
      expect(await rpc.settle(correlation_id, { ok: true, result: 2 })).toBe(true)
      expect(await again.result).toBe(2)
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
      const { result } = await open({ timeout_ms: 1 })
      await expect(result).rejects.toMatchObject({ code: 'timeout' })
      expect(await pending()).toEqual([])
    })

    it('takes a reply from the deadline on for late, and the call for timed out', async () => {
      const inTime = await open({ timeout_ms: 60_000 })
      clock.advance(59_999)
      expect(await rpc.settle(inTime.correlation_id, { ok: true, result: 1 })).toBe(true)
      expect(await inTime.result).toBe(1)
      for (const [late, from] of [
        [0, { user_id: 'ann', client_id: 'desk' }],
        [1, { user_id: 'bob', client_id: 'desk' }],
      ] as const) {
        const { correlation_id, result } = await open({ timeout_ms: 200 })
        clock.advance(200 + late)
        expect(await rpc.settle(correlation_id, { ok: true, result: 1, from })).toBe(false)
        await expect(result).rejects.toMatchObject({ code: 'timeout' })
      }
      expect(await summary()).toMatchObject({
        pending: 0,
        overdue: 0,
        counters: { ...NONE, opened: 3, succeeded: 1, timed_out: 2, late: 2 },
      })
    })

    it('ends all calls when it is closed, and opens no more', async () => {
      const { result } = await open()
      await rpc.close()
      await expect(result).rejects.toMatchObject({ code: 'closed' })
      await expect(async () => open()).rejects.toMatchObject({ code: 'closed' })
      await rpc.close()
    })

    it('lists an overdue call among all, and under overdue=true, until its end is recorded', async () => {
      const { correlation_id } = await open({ timeout_ms: 5_000 })
      await open({ client_id: 'phone', timeout_ms: 60_000 })
      await open({ user_id: 'bob', timeout_ms: 5_000 })
      expect(await pending({ overdue: true })).toEqual([])
      clock.advance(5_000)
      const call = { correlation_id, deadline_at: at(5_000), age_ms: 5_000, overdue: true }
      expect(await pending({ overdue: true })).toMatchObject([call, { user_id: 'bob', overdue: true }])
      expect(await pending({ overdue: true, user_id: 'ann' })).toMatchObject([call])
      expect(await pending({ overdue: true, user_id: 'ann', client_id: 'phone' })).toEqual([])
      expect(await rpc.inspector.getPending(correlation_id, ASK)).toMatchObject(call)
      expect(await pending({ overdue: false })).toMatchObject([{ client_id: 'phone', overdue: false }])
      // Of the same instant: stores have no order between users.
      const all = (await pending()).map(({ user_id, client_id, overdue }) => [user_id, client_id, overdue])
      expect(all.sort()).toEqual([
        ['ann', 'desk', true],
        ['ann', 'phone', false],
        ['bob', 'desk', true],
      ])
      expect([...((await rpc.inspector.listUserIds?.({ after: null, limit: 5 }, ASK)) ?? [])]).toEqual(['ann', 'bob'])
      expect([...((await rpc.inspector.observeUsers?.(['ann', 'bob'], ASK)) ?? [])]).toMatchObject([
        { user_id: 'ann', pending_rpc: 2 },
        { user_id: 'bob', pending_rpc: 1 },
      ])
    })

    it('lists the oldest first across users, and continues between calls of the same instant', async () => {
      const opened: string[] = []
      for (let i = 0; i < 60; i++) {
        if (i % 6 === 0) clock.advance(1)
        // Calls end by timers of their own, too: longer than any machine takes for this.
        const timeout_ms = i % 2 ? 600_000 : 1_800_000
        opened.push((await open({ user_id: `u${i % 7}`, action: `a${i % 4}`, timeout_ms })).correlation_id)
      }
      const started = (calls: readonly PendingCall[]) => calls.map(({ started_at }) => started_at)
      const listed = async (filter: PendingCallFilter, expected: readonly string[]) => {
        const whole = await walk<PendingCall>(
          async (page) => (await rpc.inspector.listPending(filter, page, ASK)) as never,
          500,
        )
        expect(whole.map(({ correlation_id }) => correlation_id).sort()).toEqual([...expected].sort())
        expect(started(whole)).toEqual(started(whole).sort())
        for (const limit of [1, 7, expected.length])
          expect(await walk((page) => rpc.inspector.listPending(filter, page, ASK), limit)).toEqual(whole)
      }
      const of = (admits: (i: number) => boolean) => opened.filter((_, i) => admits(i))
      await listed({}, opened)
      await listed(
        { action: 'a2' },
        of((i) => i % 4 === 2),
      )
      await listed(
        { user_id: 'u3', action: 'a2' },
        of((i) => i % 7 === 3 && i % 4 === 2),
      )
      clock.advance(610_000)
      await listed({}, opened)
      await listed(
        { overdue: false },
        of((i) => i % 2 === 0),
      )
      await listed(
        { overdue: true },
        of((i) => i % 2 === 1),
      )
      await listed(
        { overdue: true, action: 'a3' },
        of((i) => i % 4 === 3),
      )
    })

    it('looks at no more than it may, and comes to the end all the same', async () => {
      for (let i = 0; i < 40; i++)
        await open({ user_id: `u${i % 9}`, action: i === 39 ? 'rare' : 'a', timeout_ms: 600_000 })
      const few = { ...ASK, limits: { examined: 12 } }
      const list = (filter: PendingCallFilter) =>
        walk(async (page) => {
          const listed = await rpc.inspector.listPending(filter, page, few)
          expect(listed.examined).toBeLessThanOrEqual(12)
          return listed
        }, 30)
      expect(await list({ action: 'rare' })).toHaveLength(1)
      expect(await list({})).toHaveLength(40)
      clock.advance(600_000)
      expect(await list({ overdue: false })).toEqual([])
      for (const filter of [{}, { overdue: true }]) expect(await list(filter)).toHaveLength(40)
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
      expect(withSortedLists(await rpc.inspector.observeUsers?.(['ann', 'missing'], ASK))).toEqual([
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

    const NONE = { opened: 0, succeeded: 0, failed: 0, timed_out: 0, cancelled: 0, unanswered: 0, late: 0, foreign: 0 }
    const summary = async () => (await rpc.inspector.summary?.(ASK)) as RpcSummary

    it('has counted nothing before the first call', async () => {
      const none = {
        pending: 0,
        oldest_started_at: null,
        oldest_age_ms: null,
        overdue: 0,
        counters: NONE,
        observed: null,
      }
      // A shared store does not know whether anything reports calls to it.
      expect([{ observed_at: at() }, { ...none, counting_since: null, observed_at: at() }]).toContainEqual(
        await summary(),
      )
    })

    it('counts how every call ended, and every reply that was dropped', async () => {
      const first = await open({ timeout_ms: 600_000 })
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
      const ended = await open({ user_id: 'u5', timeout_ms: 1 })
      await ended.result.catch(() => {})
      const last = await open({ user_id: 'u6' })
      expect(await summary()).toEqual({
        pending: 2,
        oldest_started_at: at(),
        oldest_age_ms: 2_000,
        overdue: 0,
        counters: {
          opened: 7,
          succeeded: 2,
          failed: 1,
          timed_out: 1,
          cancelled: 1,
          unanswered: 0,
          late: 3,
          foreign: 2,
        },
        observed: null,
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

    it('counts a call past its deadline as overdue until it is ended', async () => {
      await open({ timeout_ms: 5_000 })
      await open({ user_id: 'bob', timeout_ms: 60_000 })
      clock.advance(5_000)
      expect(await summary()).toMatchObject({
        pending: 2,
        overdue: 1,
        oldest_started_at: at(),
        oldest_age_ms: 5_000,
        counters: { ...NONE, opened: 2 },
      })
    })

    it('refuses an invalid call and stores nothing of it', async () => {
      for (const over of [{ action: '' }, { user_id: 'a\rb' }, { timeout_ms: 0 }, { timeout_ms: 86_400_001 }])
        await expect(async () => open(over)).rejects.toMatchObject({ code: 'invalid_input' })
      await expect(async () => open({ timeout: 5 } as never)).rejects.toMatchObject({
        code: 'invalid_input',
        detail: 'Unknown field "timeout". Did you mean "timeout_ms"?',
      })
      expect(await pending()).toEqual([])
    })

    it('refuses an invalid signal and stores nothing of the call', async () => {
      for (const signal of [null, 5, 'x', {}, { aborted: false }, new EventTarget()])
        await expect(async () => open({ signal: signal as AbortSignal })).rejects.toMatchObject({
          code: 'invalid_input',
          detail: 'signal: must be an AbortSignal',
        })
      expect((await summary())?.pending ?? 0).toBe(0)
      expect((await summary())?.counters ?? NONE).toEqual(NONE)
      const { correlation_id, result } = await open({ signal: undefined })
      await rpc.settle(correlation_id, { ok: true, result: 1 })
      expect(await result).toBe(1)
    })
  })
}
