/** Calls that a follower has seen, in every correlator. */
import { expect, it } from 'vitest'
import { emptyAction } from '../../src/internal/contract/call-counts.js'
import {
  type EndedCallFilter,
  OBSERVED_LEASE_MS,
  type ObserveCallsInput,
  type ObservedAction,
  type PendingCallFilter,
} from '../../src/internal/contract/rpc.js'
import { ASK, at, type Clock, walk } from './clock.js'
import type { RpcFacility } from './rpc.js'

type Observed = ObserveCallsInput['calls'][number]

const observedCall = (over: Partial<Observed> = {}): Observed => ({
  correlation_id: 'call-1',
  action: 'sync',
  user_id: 'ann',
  client_id: 'desk',
  instance_id: 'one',
  direction: 'to_client',
  age_ms: 1_200,
  answered_since: 'none',
  ...over,
})

const counted = (over: Partial<ObservedAction> = {}): ObservedAction => ({
  ...emptyAction('sync', 'to_client'),
  ...over,
})

export function observedCalls(subject: () => { clock: Clock; rpc: RpcFacility }): void {
  const clock = () => subject().clock
  const rpc = () => subject().rpc
  let sequence = 0
  const observe = (calls: Observed[], over: Partial<ObserveCallsInput> = {}) =>
    rpc().observe({ observer: 'node-1', sequence: ++sequence, calls, actions: [], evicted: 0, unrecorded: 0, ...over })
  const pending = (filter: PendingCallFilter = {}) => walk((page) => rpc().inspector.listPending(filter, page, ASK), 2)
  const ended = (filter: EndedCallFilter = {}) =>
    walk(async (page) => {
      const listed = await rpc().inspector.listEnded?.(filter, page, ASK)
      if (!listed) throw new Error('no ended calls')
      return listed
    }, 2)
  const summary = () => rpc().inspector.summary?.(ASK)
  const idsOf = (calls: readonly { correlation_id: string }[]) => calls.map(({ correlation_id }) => correlation_id)

  it('lists an observed call until its end is reported, without a deadline', async () => {
    clock().advance(5_000)
    expect(await observe([observedCall()])).toBe(0)
    const call = {
      correlation_id: 'call-1',
      action: 'sync',
      user_id: 'ann',
      client_id: 'desk',
      instance_id: 'one',
      started_at: at(3_800),
      deadline_at: null,
      age_ms: 1_200,
      overdue: false,
      direction: 'to_client',
      observed: true,
      answered_since: 'none',
    }
    expect(await rpc().inspector.getPending('call-1', ASK)).toEqual(call)
    expect(await pending()).toEqual([call])
    clock().advance(1_000)
    await observe([observedCall({ age_ms: 2_200, answered_since: 'later' })])
    expect(await pending()).toEqual([{ ...call, age_ms: 2_200, answered_since: 'later' }])
    expect(await summary()).toMatchObject({ pending: 1, overdue: 0, counters: { opened: 1, unanswered: 0 } })
    const end = { outcome: 'unanswered' as const, ago_ms: 200, connection_reason: 'ping_timeout' }
    await observe([observedCall({ age_ms: 2_200, end })])
    expect(await pending()).toEqual([])
    expect(await rpc().inspector.getEnded?.('call-1', ASK)).toEqual({
      correlation_id: 'call-1',
      action: 'sync',
      user_id: 'ann',
      client_id: 'desk',
      instance_id: 'one',
      outcome: 'unanswered',
      started_at: at(3_800),
      ended_at: at(5_800),
      duration_ms: 2_000,
      direction: 'to_client',
      observed: true,
      connection_reason: 'ping_timeout',
    })
    expect(await summary()).toMatchObject({ pending: 0, counters: { opened: 1, unanswered: 1 } })
  })

  it('records a call whose beginning was not reported', async () => {
    clock().advance(5_000)
    const end = { outcome: 'failed' as const, ago_ms: 0, connection_reason: null }
    await observe([observedCall({ age_ms: 30, direction: 'to_server', end })])
    expect(await ended()).toMatchObject([
      { outcome: 'failed', duration_ms: 30, direction: 'to_server', observed: true, connection_reason: null },
    ])
    expect(await summary()).toMatchObject({ pending: 0, counters: { opened: 1, failed: 1 } })
  })

  it('shows the trace of a call, and finds it by that', async () => {
    const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
    const trace = `00-${trace_id}-00f067aa0ba902b7-01`
    const end = { outcome: 'failed' as const, ago_ms: 0, connection_reason: null }
    await observe([observedCall({ trace }), observedCall({ correlation_id: 'call-2' })])
    await observe([observedCall({ correlation_id: 'call-3', trace, end })])
    expect(await pending({ trace_id })).toMatchObject([{ correlation_id: 'call-1', trace, trace_id }])
    expect(await rpc().inspector.getPending('call-2', ASK)).not.toHaveProperty('trace_id')
    await observe([observedCall({ trace, answered_since: 'earlier' })])
    expect(await pending({ trace_id })).toMatchObject([{ answered_since: 'earlier', trace }])
    await observe([observedCall({ trace, end })])
    expect(idsOf(await ended({ trace_id })).sort()).toEqual(['call-1', 'call-3'])
    expect(await ended({ trace_id })).toMatchObject([{ trace }, { trace }])
  })

  it('filters pending and ended calls by direction and by whether they were observed', async () => {
    const { correlation_id } = await rpc().open({ action: 'sync', user_id: 'ann', client_id: 'desk' })
    await observe([observedCall(), observedCall({ correlation_id: 'call-2', direction: 'to_server' })])
    expect(idsOf(await pending({ observed: false }))).toEqual([correlation_id])
    expect(idsOf(await pending({ observed: true })).sort()).toEqual(['call-1', 'call-2'])
    expect(idsOf(await pending({ direction: 'to_server' }))).toEqual(['call-2'])
    expect(idsOf(await pending({ direction: 'to_client', user_id: 'ann', observed: true }))).toEqual(['call-1'])
    await rpc().settle(correlation_id, { ok: true, result: 1 })
    const end = { outcome: 'cancelled' as const, ago_ms: 0, connection_reason: null }
    await observe([observedCall({ end }), observedCall({ correlation_id: 'call-2', direction: 'to_server', end })])
    expect(idsOf(await ended({ observed: false }))).toEqual([correlation_id])
    expect(idsOf(await ended({ observed: true })).sort()).toEqual(['call-1', 'call-2'])
    expect(idsOf(await ended({ direction: 'to_server', outcome: 'cancelled' }))).toEqual(['call-2'])
  })

  it('does not end an observed call by a reply to the correlator', async () => {
    await observe([observedCall()])
    expect(await rpc().settle('call-1', { ok: true, result: 1 })).toBe(false)
    expect(await pending()).toHaveLength(1)
    expect(await summary()).toMatchObject({ counters: { late: 1 } })
  })

  it('leaves a call of rpc.open alone that has the id of an observed one', async () => {
    await rpc().open({ action: 'mine', user_id: 'ann', client_id: 'desk', correlation_id: 'call-1' })
    await observe([observedCall()])
    await observe([observedCall({ end: { outcome: 'succeeded', ago_ms: 0, connection_reason: null } })])
    expect(await pending()).toMatchObject([{ action: 'mine', observed: false }])
  })

  it('ends a call as unanswered once it is not reported any longer', async () => {
    await observe([observedCall(), observedCall({ correlation_id: 'call-2', user_id: 'bob' })])
    clock().advance(OBSERVED_LEASE_MS - 1)
    await observe([observedCall({ age_ms: 61_000 })])
    clock().advance(1)
    expect(idsOf(await pending())).toEqual(['call-1'])
    expect(await pending({ overdue: true })).toEqual([])
    expect(await summary()).toMatchObject({ pending: 1, overdue: 0 })
    await observe([])
    await rpc().open({ action: 'other', user_id: 'bob', client_id: 'desk' })
    expect(await ended()).toMatchObject([
      { correlation_id: 'call-2', outcome: 'unanswered', connection_reason: null, ended_at: at(OBSERVED_LEASE_MS) },
    ])
    await observe([observedCall({ correlation_id: 'call-2', user_id: 'bob', age_ms: 61_200 })])
    expect(await pending({ observed: true })).toHaveLength(2)
  })

  it('adds the counts of all reports, and ignores a report that arrives again', async () => {
    clock().advance(2_000)
    const counts = counted().counts
    counts[3] = 2
    const first = counted({ succeeded: 2, notifications: 1, counts, sum_ms: 70 })
    const second = [counted({ unanswered: 1 }), counted({ action: 'echo', direction: 'to_server', failed: 3 })]
    await observe([], { actions: [first], evicted: 1, unrecorded: 2 })
    await observe([observedCall()], { actions: second })
    await observe([observedCall({ correlation_id: 'call-2' })], { observer: 'node-2', sequence: 1, actions: second })
    expect(idsOf(await pending()).sort()).toEqual(['call-1', 'call-2'])
    await observe([observedCall({ correlation_id: 'again' })], { sequence: sequence - 1, actions: [first] })
    expect(await pending()).toHaveLength(2)
    expect(await summary()).toMatchObject({
      observed: {
        actions: [
          { action: 'sync', direction: 'to_client', succeeded: 2, notifications: 1, unanswered: 2, counts, sum_ms: 70 },
          { action: 'echo', direction: 'to_server', failed: 6 },
        ],
        evicted: 1,
        unrecorded: 2,
      },
    })
  })

  it('counts a hundred actions by name, and the others together', async () => {
    for (let i = 0; i < 130; i += 65) {
      const actions = Array.from({ length: 65 }, (_, j) => counted({ action: `a${i + j}`, succeeded: 1 }))
      await observe([], { actions })
    }
    const actions = (await summary())?.observed?.actions ?? []
    expect(actions).toHaveLength(101)
    expect(actions.find(({ action }) => action === 'other')).toMatchObject({ succeeded: 30 })
  })

  it('refuses an invalid report and records nothing of it', async () => {
    for (const bad of [
      { action: '' },
      { direction: 'up' },
      { age_ms: -1 },
      { trace: '00-bad' },
      { colour: 'red' },
      { end: { outcome: 'timed_out' } },
    ])
      await expect(async () => observe([observedCall(bad as never)])).rejects.toMatchObject({ code: 'invalid_input' })
    expect(await pending()).toEqual([])
  })
}
