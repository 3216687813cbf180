/** What every context registry must do, whatever it keeps its contexts in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type {
  Context,
  ContextFilter,
  ContextRegistry,
  ContextRegistryInspector,
  ReportContextInput,
} from '../../src/internal/contract/contexts.js'
import type { Inspected } from '../../src/internal/contract/families.js'
import type { Awaitable } from '../../src/internal/contract/page.js'
import { ASK, at, type Clock, createClock, walk } from './clock.js'
import { withSortedLists } from './parts.js'

export type ContextFacility = Inspected<ContextRegistry, ContextRegistryInspector>

export function contextBattery(
  name: string,
  make: (options: { now: () => number; ttlMs: number }) => Awaitable<ContextFacility>,
): void {
  describe(`contexts in ${name}`, () => {
    let clock: Clock
    let contexts: ContextFacility
    let inspector: ContextRegistryInspector

    beforeEach(async () => {
      clock = createClock()
      contexts = await make({ now: clock.now, ttlMs: 30_000 })
      inspector = contexts.inspector
    })

    const report = (context_id: string, over: Partial<ReportContextInput> = {}) =>
      contexts.report({ context_id, user_id: 'ann', client_id: 'c', client_type: 'browser', status: 'idle', ...over })
    const worker = (context_id: string, over: Partial<ReportContextInput> = {}) =>
      report(context_id, { ownership: 'worker', ...over })
    const get = async (id: string) => inspector.getContext(id, ASK)
    const list = async (filter: ContextFilter = {}) => walk((page) => inspector.listContexts(filter, page, ASK), 5)

    it('answers what was reported, in full', async () => {
      const context = await report('t1', { instance_id: 'i', window_id: 'w' })
      expect(context).toEqual({
        context_id: 't1',
        user_id: 'ann',
        client_id: 'c',
        instance_id: 'i',
        client_type: 'browser',
        status: 'idle',
        status_reason: null,
        ownership: 'user-owned',
        window_id: 'w',
        task_id: null,
        task_assigned_at: null,
        created_at: at(),
        updated_at: at(),
      })
      expect(await get('t1')).toEqual(context)
      expect(await get('__proto__')).toBeNull()
    })

    it('lists the contexts of one task, whatever is reported of them, until it is given up', async () => {
      const of = async (task_id: string) => (await list({ task_id })).map(({ context_id }) => context_id)
      for (const id of ['t1', 't2', 't3']) await worker(id, { user_id: `user-${id}` })
      await contexts.assignTask('t1', 'job')
      await contexts.assignTask('t2', 'job')
      await contexts.assignTask('t3', 'other')
      expect((await of('job')).sort()).toEqual(['t1', 't2'])
      await worker('t1', { user_id: 'user-t1', status: 'active', window_id: 'w' })
      expect((await of('job')).sort()).toEqual(['t1', 't2'])
      expect((await list({ task_id: 'job', window_id: 'w' })).map(({ context_id }) => context_id)).toEqual(['t1'])
      await contexts.releaseTask('t1')
      await contexts.close('t2')
      expect([await of('job'), await of('other')]).toEqual([[], ['t3']])
      await contexts.assignTask('t1', 'other')
      expect((await of('other')).sort()).toEqual(['t1', 't3'])
    })

    it('lists what was last reported at or before a time', async () => {
      await report('t1')
      clock.advance(10_000)
      await report('t2')
      const reportedBy = async (updated_before: string) =>
        (await list({ updated_before })).map(({ context_id }) => context_id)
      expect(await reportedBy(at(-1))).toEqual([])
      expect(await reportedBy(at())).toEqual(['t1'])
      expect((await reportedBy(at(10_000))).sort()).toEqual(['t1', 't2'])
      await report('t1')
      expect(await reportedBy(at(9_999))).toEqual([])
    })

    it('updates on a report, and keeps ownership, task and birth', async () => {
      await worker('t1')
      await contexts.assignTask('t1', 'job')
      clock.advance(1_000)
      const context = await report('t1', { status: 'active', ownership: 'user-owned', window_id: 'w2' })
      expect(context).toMatchObject({
        status: 'active',
        ownership: 'worker',
        window_id: 'w2',
        task_id: 'job',
        task_assigned_at: at(),
        created_at: at(),
        updated_at: at(1_000),
      })
      expect(await list()).toEqual([context])
    })

    it('refuses a report about a context of another user or client', async () => {
      await report('t1')
      for (const over of [{ user_id: 'bob' }, { client_id: 'other' }])
        await expect(async () => report('t1', over)).rejects.toMatchObject({ code: 'identity_conflict' })
      expect(await get('t1')).toMatchObject({ user_id: 'ann', client_id: 'c' })
    })

    it('reads a context as stale after one silence and forgets it after a second', async () => {
      await report('t1')
      clock.advance(29_999)
      expect(await get('t1')).toMatchObject({ status: 'idle' })
      clock.advance(1)
      expect(await get('t1')).toMatchObject({ status: 'stale', updated_at: at() })
      expect(await list({ status: 'stale' })).toHaveLength(1)
      clock.advance(29_999)
      expect(await get('t1')).toMatchObject({ status: 'stale' })
      clock.advance(1)
      expect(await get('t1')).toBeNull()
      expect(await list()).toEqual([])
    })

    it('forgets a context after a long silence without reads', async () => {
      await report('t1')
      clock.advance(60_000)
      expect(await get('t1')).toBeNull()
      expect([...((await inspector.listUserIds?.({ after: null, limit: 5 }, ASK)) ?? [])]).toEqual([])
    })

    it('reads a stale context that is reported again as alive', async () => {
      await report('t1')
      clock.advance(45_000)
      expect(await report('t1')).toMatchObject({ status: 'idle', created_at: at() })
      clock.advance(29_999)
      expect(await get('t1')).toMatchObject({ status: 'idle' })
    })

    it('keeps a closed context readable for one time, without its task', async () => {
      await worker('t1')
      await contexts.assignTask('t1', 'job')
      clock.advance(1_000)
      expect(await contexts.close('t1')).toBe(true)
      expect(await contexts.close('t1')).toBe(false)
      const ended = { status: 'closed', status_reason: 'closed', task_id: null, task_assigned_at: null }
      expect(await get('t1')).toMatchObject(ended)
      clock.advance(29_999)
      expect(await get('t1')).toMatchObject({ status: 'closed', updated_at: at(1_000) })
      clock.advance(1)
      expect(await get('t1')).toBeNull()
      expect(await contexts.close('t1')).toBe(false)
    })

    it.each([
      'crashed',
      'browser_disconnected',
    ] as const)('keeps a context that is %s for an hour, with its task', async (reason) => {
      await worker('t1')
      await contexts.assignTask('t1', 'job')
      await worker('t2')
      clock.advance(1_000)
      expect(await contexts.close('t1', reason)).toBe(true)
      expect(await contexts.close('t1')).toBe(false)
      expect(await contexts.assignTask('t1', 'job')).toBeNull()
      clock.advance(3_599_999)
      await worker('t2')
      const lost = {
        status: 'closed',
        status_reason: reason,
        task_id: 'job',
        task_assigned_at: at(),
        updated_at: at(1_000),
      }
      expect(await get('t1')).toMatchObject(lost)
      expect(await list({ status_reason: reason, task_id: 'job' })).toHaveLength(1)
      expect(await inspector.countContexts?.({ user_id: 'ann' }, ASK)).toMatchObject({
        total: 2,
        by_status: { closed: 1 },
      })
      await expect(async () => report('t1', { user_id: 'bob' })).rejects.toMatchObject({ code: 'identity_conflict' })
      clock.advance(1)
      expect(await get('t1')).toBeNull()
      expect(await list()).toMatchObject([{ context_id: 't2', status_reason: null }])
      expect(await report('t1', { user_id: 'bob' })).toMatchObject({ user_id: 'bob', task_id: null })
    })

    it('releases the task of a crashed context, or drops it when the context is reported again', async () => {
      for (const id of ['t1', 't2']) {
        await worker(id)
        await contexts.assignTask(id, 'job')
        await contexts.close(id, 'crashed')
      }
      expect(await contexts.releaseTask('t1')).toMatchObject({
        status: 'closed',
        status_reason: 'crashed',
        task_id: null,
      })
      expect(await contexts.releaseTask('t1')).toBeNull()
      expect(await worker('t2')).toMatchObject({ status: 'idle', status_reason: null, task_id: null })
      expect(await list({ task_id: 'job' })).toEqual([])
      clock.advance(3_599_999)
      expect((await list()).map(({ context_id }) => context_id)).toEqual(['t1'])
    })

    it('keeps the latest 100 crashed contexts of a user', async () => {
      const ids = Array.from({ length: 103 }, (_, i) => `t${i}`)
      await report('bobs', { user_id: 'bob' })
      await contexts.close('bobs', 'crashed')
      await report('live')
      for (const id of ids) {
        await report(id)
        await contexts.close(id, 'crashed')
      }
      expect((await list({ user_id: 'ann' })).map(({ context_id }) => context_id)).toEqual(['live', ...ids.slice(3)])
      expect(await list({ user_id: 'bob' })).toHaveLength(1)
      expect(await get('t2')).toBeNull()
    })

    it('gives the id of a closed context to its next reporter once the record is gone', async () => {
      await report('t1')
      clock.advance(10_000)
      await contexts.close('t1')
      clock.advance(29_999)
      await expect(async () => report('t1', { user_id: 'bob' })).rejects.toMatchObject({ code: 'identity_conflict' })
      clock.advance(1)
      expect(await report('t1', { user_id: 'bob' })).toMatchObject({ user_id: 'bob', created_at: at(40_000) })
      expect(await list()).toHaveLength(1)
    })

    it('keeps the id of a context that was reported after it was closed', async () => {
      await report('t1')
      await contexts.close('t1')
      clock.advance(10_000)
      await report('t1')
      clock.advance(30_000)
      await expect(async () => report('t1', { user_id: 'bob' })).rejects.toMatchObject({ code: 'identity_conflict' })
    })

    it('assigns a task to a worker that has none, and the same one again', async () => {
      await worker('t1')
      await report('t2')
      clock.advance(500)
      expect(await contexts.assignTask('t1', 'job')).toMatchObject({ task_id: 'job', task_assigned_at: at(500) })
      clock.advance(500)
      expect(await contexts.assignTask('t1', 'job')).toMatchObject({ task_id: 'job', task_assigned_at: at(500) })
      expect(await contexts.assignTask('t1', 'other')).toBeNull()
      expect(await contexts.assignTask('t2', 'job')).toBeNull()
      expect(await contexts.assignTask('nope', 'job')).toBeNull()
      expect(await contexts.releaseTask('t1')).toMatchObject({ task_id: null, task_assigned_at: null })
      expect(await contexts.releaseTask('t1')).toBeNull()
      await contexts.close('t1')
      expect(await contexts.assignTask('t1', 'job')).toBeNull()
    })

    it('does not take an assignment for a sign of life', async () => {
      await worker('t1')
      clock.advance(20_000)
      await contexts.assignTask('t1', 'job')
      clock.advance(10_000)
      expect(await get('t1')).toMatchObject({ status: 'stale', task_id: 'job' })
    })

    it('counts a context by the silence that it is listed with, whatever became of its task', async () => {
      await worker('older')
      await worker('freed')
      await contexts.assignTask('freed', 'job-1')
      clock.advance(20_000)
      await worker('younger')
      clock.advance(5_000)
      await contexts.assignTask('older', 'job-2')
      await contexts.releaseTask('freed')
      clock.advance(5_000)
      expect((await list({ status: 'stale' })).map((context) => context.context_id).sort()).toEqual(['freed', 'older'])
      expect(await inspector.countContexts?.({}, ASK)).toMatchObject({ total: 3, by_status: { idle: 1, stale: 2 } })
      clock.advance(30_000)
      expect((await list()).map((context) => context.context_id)).toEqual(['younger'])
      expect(await inspector.countContexts?.({}, ASK)).toMatchObject({ total: 1, by_status: { stale: 1 } })
    })

    it('filters and counts by every field', async () => {
      const made: Context[] = []
      const types = ['browser', 'console', 'mobile', 'web'] as const
      for (let i = 0; i < 24; i++)
        made.push(
          await report(`t${i}`, {
            user_id: `u${i % 2}`,
            client_id: `c${i % 3}`,
            client_type: types[i % 4] ?? 'web',
            status: i % 5 ? 'idle' : 'active',
            ownership: i % 2 ? 'worker' : 'user-owned',
            window_id: i % 6 ? `w${i % 6}` : null,
          }),
        )
      const filters: ContextFilter[] = [
        {},
        { user_id: 'u1' },
        { client_id: 'c2', client_type: 'web' },
        { window_id: 'w3' },
        { window_id: 'w3', user_id: 'u0' },
        { ownership: 'worker', status: 'active' },
        { user_id: 'u0', status: 'stale' },
        { window_id: 'toString' },
      ]
      for (const filter of filters) {
        const expected = made.filter((c) => Object.entries(filter).every(([k, v]) => c[k as keyof Context] === v))
        const found = await list(filter)
        expect(found).toEqual(expect.arrayContaining(expected))
        expect(found).toHaveLength(expected.length)
        expect((await inspector.countContexts?.(filter, ASK))?.total).toBe(expected.length)
      }
      expect(await inspector.countContexts?.({ user_id: 'u1' }, ASK)).toMatchObject({
        total: 12,
        by_status: { active: 2, idle: 10, closed: 0, stale: 0 },
        by_client_type: { browser: 0, console: 6, mobile: 0, web: 6 },
        by_ownership: { 'user-owned': 0, worker: 12 },
      })
    })

    it('counts the live workers of windows, busy and idle', async () => {
      await worker('old', { window_id: 'w' })
      clock.advance(20_000)
      await worker('busy', { window_id: 'w', status: 'active' })
      await contexts.assignTask('busy', 'job')
      await worker('assigned', { window_id: 'w' })
      await contexts.assignTask('assigned', 'job')
      await worker('idle', { window_id: 'w' })
      await worker('active', { window_id: 'w', status: 'active' })
      await worker('closed', { window_id: 'w' })
      await contexts.close('closed')
      await worker('moved', { window_id: 'w' })
      await worker('moved', { window_id: 'v' })
      await report('human', { window_id: 'w' })
      clock.advance(10_000)
      const counts = (await inspector.countByWindow?.(['w', 'v'], ASK)) ?? []
      expect(counts.find((c) => c.window_id === 'w')).toEqual({
        window_id: 'w',
        worker_count: 4,
        idle_count: 1,
        busy_count: 2,
      })
      expect(counts.find((c) => c.window_id === 'v')).toMatchObject({ worker_count: 1, idle_count: 1, busy_count: 0 })
    })

    it('tells what it knows of users', async () => {
      await report('t1', { client_type: 'web' })
      await report('t2', { client_id: 'd', status: 'active' })
      await report('t3', { user_id: 'bob' })
      await report('t4', { client_type: 'mobile' })
      await contexts.close('t4')
      expect([...((await inspector.listUserIds?.({ after: null, limit: 5 }, ASK)) ?? [])]).toEqual(['ann', 'bob'])
      expect(withSortedLists(await inspector.observeUsers?.(['ann', 'missing'], ASK))).toEqual([
        {
          user_id: 'ann',
          observed_client_types: ['browser', 'web'],
          observed_client_ids: ['c', 'd'],
          observed_contexts: 2,
          contexts_by_status: { active: 1, idle: 1, closed: 1, stale: 0 },
        },
      ])
      clock.advance(30_000)
      await report('t2', { client_id: 'd' })
      expect(withSortedLists(await inspector.observeUsers?.(['ann'], ASK))).toMatchObject([
        { observed_client_types: ['browser'], observed_contexts: 1, contexts_by_status: { idle: 1, stale: 1 } },
      ])
    })

    it('refuses an invalid report and stores nothing of it', async () => {
      const bad = [
        { user_id: '' },
        { status: 'stale' },
        { status: 'closed' },
        { ownership: 'x' },
        { window_id: 'a\tb' },
      ]
      for (const over of bad)
        await expect(async () => report('t1', over as Partial<ReportContextInput>)).rejects.toMatchObject({
          code: 'invalid_input',
        })
      await expect(async () => report('t1', { windowId: 'w' } as Partial<ReportContextInput>)).rejects.toMatchObject({
        code: 'invalid_input',
        detail: 'Unknown field "windowId". Did you mean "window_id"?',
      })
      await worker('t2')
      await expect(async () => contexts.assignTask('t2', '')).rejects.toMatchObject({ code: 'invalid_input' })
      await expect(async () => contexts.close('t2', 'burned' as 'crashed')).rejects.toMatchObject({
        code: 'invalid_input',
      })
      expect((await list()).map((c) => c.context_id)).toEqual(['t2'])
    })
  })
}
