/** Calls that have ended, in every correlator. */
import { expect, it } from 'vitest'
import {
  ENDED_CALL_KEPT_MS,
  ENDED_CALLS_PER_USER_MAX,
  type EndedCallFilter,
  type OpenCallInput,
} from '../../src/internal/contract/rpc.js'
import { ASK, at, type Clock, walk } from './clock.js'
import type { RpcFacility } from './rpc.js'

export function endedCalls(subject: () => { clock: Clock; rpc: RpcFacility }): void {
  const clock = () => subject().clock
  const rpc = () => subject().rpc
  const openCall = async (over: Partial<OpenCallInput> = {}) => {
    const call = await rpc().open({ action: 'open', user_id: 'ann', client_id: 'desk', ...over })
    call.result.catch(() => {})
    return call
  }
  const open = async (over: Partial<OpenCallInput> = {}) => {
    const { correlation_id } = await openCall(over)
    return correlation_id
  }
  const ended = (filter: EndedCallFilter = {}, limit = 2) =>
    walk(async (page) => {
      const listed = await rpc().inspector.listEnded?.(filter, page, ASK)
      if (!listed) throw new Error('no ended calls')
      return listed
    }, limit)
  const get = (id: string) => rpc().inspector.getEnded?.(id, ASK)
  const idsOf = async (filter: EndedCallFilter) => (await ended(filter)).map((call) => call.correlation_id)

  it('lists calls that ended, the newest end first, with how and when', async () => {
    const first = await open({ instance_id: 'one' })
    const second = await open({ user_id: 'bob', action: 'close' })
    const pending = await open({ user_id: 'carol' })
    clock().advance(1_500)
    await rpc().settle(second, { ok: false, error: 'no' })
    clock().advance(500)
    await rpc().settle(first, { ok: true, result: 1 })
    expect(await ended()).toEqual([
      {
        correlation_id: first,
        action: 'open',
        user_id: 'ann',
        client_id: 'desk',
        instance_id: 'one',
        outcome: 'succeeded',
        started_at: at(),
        ended_at: at(2_000),
        duration_ms: 2_000,
        direction: 'to_client',
        observed: false,
      },
      expect.objectContaining({ correlation_id: second, outcome: 'failed', duration_ms: 1_500, instance_id: null }),
    ])
    expect(await get(first)).toEqual((await ended())[0])
    expect([await get(pending), await get('missing')]).toEqual([null, null])
    expect(await idsOf({ user_id: 'bob' })).toEqual([second])
    expect(await idsOf({ action: 'open' })).toEqual([first])
    expect(await idsOf({ client_id: 'desk', outcome: 'failed' })).toEqual([second])
    expect(await idsOf({ outcome: 'timed_out' })).toEqual([])
  })

  it('lists calls that were cancelled or ran out of time', async () => {
    const controller = new AbortController()
    const cancelled = await open({ signal: controller.signal })
    controller.abort()
    await expect.poll(() => idsOf({ outcome: 'cancelled' })).toEqual([cancelled])
    const late = await open({ timeout_ms: 60_000 })
    clock().advance(60_000)
    // Its node has not noticed; the next call does.
    await open()
    await rpc().settle(late, { ok: true, result: 1 })
    expect(await idsOf({ outcome: 'timed_out' })).toEqual([late])
    expect(await get(late)).toMatchObject({ duration_ms: 60_000 })
  })

  it('shows the trace of a call while it is pending and when it has ended, and filters by it', async () => {
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
    const { inspector } = rpc()
    const pendingOf = async (id: string) =>
      (await walk((page) => inspector.listPending({ trace_id: id }, page, ASK), 2)).map((call) => call.correlation_id)
    const id = await open({ trace })
    const other = await open()
    expect(await inspector.getPending(id, ASK)).toMatchObject({ trace, trace_id })
    expect(await inspector.getPending(other, ASK)).not.toHaveProperty('trace')
    expect([await pendingOf(trace_id), await pendingOf('1'.repeat(32))]).toEqual([[id], []])
    await rpc().settle(id, { ok: true, result: 1 })
    await rpc().settle(other, { ok: true, result: 1 })
    expect(await idsOf({ trace_id })).toEqual([id])
    expect(await get(id)).toMatchObject({ trace, trace_id })
    expect(await get(other)).not.toHaveProperty('trace_id')
    for (const bad of [
      '',
      'x',
      trace.toUpperCase(),
      trace.replace('00-', 'ff-'),
      `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`,
    ])
      await expect(open({ trace: bad })).rejects.toMatchObject({
        code: 'invalid_input',
        detail: expect.stringContaining('trace'),
      })
  })

  it('has the newest call of an id that is used again', async () => {
    const correlation_id = 'x'.repeat(32)
    for (const outcome of ['succeeded', 'failed'] as const) {
      const { result } = await openCall({ correlation_id })
      clock().advance(10)
      await rpc().settle(correlation_id, outcome === 'failed' ? { ok: false, error: 1 } : { ok: true, result: 1 })
      await result.catch(() => {})
    }
    expect(await ended()).toEqual([expect.objectContaining({ correlation_id, outcome: 'failed' })])
  })

  it('keeps a number of calls of one user, and none for longer than an hour', async () => {
    const other = await open({ user_id: 'bob' })
    await rpc().settle(other, { ok: true, result: 1 })
    const ids: string[] = []
    for (let i = 0; i < ENDED_CALLS_PER_USER_MAX + 3; i++) {
      const id = await open()
      ids.unshift(id)
      await rpc().settle(id, { ok: true, result: 1 })
    }
    expect((await ended({ user_id: 'ann' }, 500)).map((call) => call.correlation_id)).toEqual(
      ids.slice(0, ENDED_CALLS_PER_USER_MAX),
    )
    expect(await idsOf({ user_id: 'bob' })).toEqual([other])
    clock().advance(ENDED_CALL_KEPT_MS)
    expect([await ended(), await get(other)]).toEqual([[], null])
  })
}
