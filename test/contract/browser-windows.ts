/** What every browser-window registry must do, whatever it keeps its windows in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type {
  BrowserWindow,
  BrowserWindowFilter,
  BrowserWindowRegistry,
  BrowserWindowRegistryInspector,
  ReportBrowserWindowInput,
} from '../../src/internal/contract/browser-windows.js'
import type { Inspected } from '../../src/internal/contract/families.js'
import type { Awaitable } from '../../src/internal/contract/page.js'
import { ASK, at, type Clock, createClock, walk } from './clock.js'
import { withSortedLists } from './parts.js'

export type BrowserWindowFacility = Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector>

export function browserWindowBattery(
  name: string,
  make: (options: { now: () => number; ttlMs: number }) => Awaitable<BrowserWindowFacility>,
): void {
  describe(`browser windows in ${name}`, () => {
    let clock: Clock
    let windows: BrowserWindowFacility
    let inspector: BrowserWindowRegistryInspector

    beforeEach(async () => {
      clock = createClock()
      windows = await make({ now: clock.now, ttlMs: 30_000 })
      inspector = windows.inspector
    })

    const report = (window_id: string, over: Partial<ReportBrowserWindowInput> = {}) =>
      windows.report({ window_id, user_id: 'ann', client_id: 'c', ...over })
    const get = async (id: string) => inspector.getBrowserWindow(id, ASK)
    const list = async (filter: BrowserWindowFilter = {}) =>
      walk((page) => inspector.listBrowserWindows(filter, page, ASK), 5)

    it('answers what was reported, in full, with the counts of the client', async () => {
      const window = await report('w1', { focused: true, capacity: 4, worker_count: 2, idle_count: 1, busy_count: 1 })
      expect(window).toEqual({
        window_id: 'w1',
        user_id: 'ann',
        client_id: 'c',
        ownership: 'user-owned',
        focused: true,
        type: null,
        state: null,
        incognito: null,
        tab_count: null,
        capacity: 4,
        draining: null,
        status: 'open',
        worker_count: 2,
        idle_count: 1,
        busy_count: 1,
        counts_source: 'snapshot',
        updated_at: at(),
      })
      expect(await get('w1')).toEqual(window)
      expect(await get('constructor')).toBeNull()
    })

    it('keeps what a report omits, and never changes the ownership', async () => {
      await report('w1', { ownership: 'worker', tab_count: 3 })
      clock.advance(1_000)
      expect(await report('w1', { draining: true })).toMatchObject({
        ownership: 'worker',
        draining: true,
        tab_count: 3,
        updated_at: at(1_000),
      })
      expect(await list()).toHaveLength(1)
    })

    it('keeps an omitted attribute, forgets an explicit null, and does not take over the focus of a closed window', async () => {
      const huge = Number.MAX_SAFE_INTEGER
      const whole = { focused: true, type: 'popup', state: 'maximized', incognito: true, draining: true } as const
      const numbers = { tab_count: huge, capacity: 2, worker_count: 0, idle_count: 1, busy_count: huge - 1 }
      await report('w1', { ...whole, ...numbers })
      expect(await report('w1')).toMatchObject({ ...whole, ...numbers })
      expect(await report('w1', { tab_count: 1, state: undefined })).toMatchObject({
        ...whole,
        ...numbers,
        tab_count: 1,
      })
      const forgotten = {
        focused: null,
        type: null,
        incognito: null,
        tab_count: null,
        capacity: null,
        idle_count: null,
      }
      const kept = { state: 'maximized', draining: true, worker_count: 0, busy_count: huge - 1 }
      expect(await report('w1', forgotten)).toMatchObject({ ...forgotten, ...kept })
      expect(await get('w1')).toMatchObject({ ...forgotten, ...kept })
      await report('w1', { focused: true })
      await windows.close('w1')
      // A report keeps what it leaves out, after a close too.
      expect(await report('w1')).toMatchObject({ status: 'open', focused: false, ...kept })
    })

    it('matches known values only, and counts the others as unknown', async () => {
      await report('w1')
      await report('w2', { focused: false, type: 'normal', state: 'normal', incognito: false, draining: false })
      await report('w3', { user_id: 'bob', focused: true, incognito: true })
      const ids = async (filter: BrowserWindowFilter) => (await list(filter)).map(({ window_id }) => window_id)
      for (const filter of [
        { focused: false },
        { incognito: false },
        { draining: false },
        { type: 'normal' } as const,
      ]) {
        expect(await ids(filter)).toEqual(['w2'])
        expect((await inspector.countBrowserWindows?.(filter, ASK))?.total).toBe(1)
      }
      expect(await ids({ draining: true })).toEqual([])
      expect(await inspector.countBrowserWindows?.({}, ASK)).toMatchObject({
        total: 3,
        by_type: { normal: 1, popup: 0, panel: 0, app: 0, devtools: 0, unknown: 2 },
        by_state: { normal: 1, minimized: 0, maximized: 0, fullscreen: 0, unknown: 2 },
      })
      await report('w2', { type: null, focused: null })
      expect(await ids({ focused: false })).toEqual([])
      expect((await inspector.countBrowserWindows?.({ user_id: 'ann' }, ASK))?.by_type?.unknown).toBe(2)
    })

    it('refuses a report about a window of another user or client', async () => {
      await report('w1')
      for (const over of [{ user_id: 'bob' }, { client_id: 'other' }])
        await expect(async () => report('w1', over)).rejects.toMatchObject({ code: 'identity_conflict' })
    })

    it('accepts reports of open windows only', async () => {
      expect(await report('w1', { status: 'open' })).toMatchObject({ status: 'open' })
      for (const status of ['stale', 'closed'] as unknown as ['open', 'open'])
        await expect(async () => report('w1', { status })).rejects.toMatchObject({ code: 'invalid_input' })
      expect(await get('w1')).toMatchObject({ status: 'open' })
    })

    it('turns stale, leaves, and lets a closed one stay for one time', async () => {
      await report('w1')
      await report('w2', { focused: true })
      expect(await windows.close('w2')).toBe(true)
      expect(await windows.close('w2')).toBe(false)
      expect(await get('w2')).toMatchObject({ status: 'closed', focused: false })
      await report('w3')
      await windows.close('w3')
      expect(await get('w3')).toMatchObject({ status: 'closed', focused: null })
      clock.advance(30_000)
      expect(await get('w1')).toMatchObject({ status: 'stale' })
      expect(await get('w2')).toBeNull()
      expect(await report('w2', { user_id: 'bob' })).toMatchObject({ user_id: 'bob', status: 'open' })
      expect(await windows.close('w2')).toBe(true)
      clock.advance(30_000)
      expect(await list()).toEqual([])
      expect(await windows.close('w1')).toBe(false)
    })

    it('filters and counts by every field', async () => {
      const made: BrowserWindow[] = []
      const kinds = ['normal', 'popup', 'panel', 'app', 'devtools'] as const
      const states = ['normal', 'minimized', 'maximized', 'fullscreen'] as const
      for (let i = 0; i < 40; i++)
        made.push(
          await report(`w${i}`, {
            user_id: `u${i % 3}`,
            client_id: `c${i % 4}`,
            ownership: i % 7 ? 'user-owned' : 'worker',
            type: kinds[i % 5] ?? 'normal',
            state: states[i % 4] ?? 'normal',
            focused: i === 9,
            incognito: i % 2 === 0,
            draining: i % 3 === 0,
          }),
        )
      const filters: BrowserWindowFilter[] = [
        {},
        { focused: true },
        { focused: false, incognito: true, draining: false },
        { user_id: 'u1', type: 'popup' },
        { client_id: 'c1', state: 'minimized', status: 'open' },
        { user_id: 'u1', client_id: 'c2', ownership: 'worker' },
        { status: 'closed' },
      ]
      for (const filter of filters) {
        const expected = made.filter((w) => Object.entries(filter).every(([k, v]) => w[k as keyof BrowserWindow] === v))
        const found = await list(filter)
        expect(found).toEqual(expect.arrayContaining(expected))
        expect(found).toHaveLength(expected.length)
        expect((await inspector.countBrowserWindows?.(filter, ASK))?.total).toBe(expected.length)
      }
      expect(await inspector.countBrowserWindows?.({ draining: true }, ASK)).toMatchObject({
        total: 14,
        by_status: { open: 14, stale: 0, closed: 0 },
        by_ownership: { 'user-owned': 12, worker: 2 },
        by_type: { normal: 3, popup: 3, panel: 2, app: 3, devtools: 3, unknown: 0 },
        by_state: { normal: 4, minimized: 3, maximized: 3, fullscreen: 4, unknown: 0 },
      })
    })

    it('tells what it knows of users', async () => {
      await report('w1')
      await report('w2', { client_id: 'd' })
      await windows.close('w2')
      await report('w3', { user_id: 'bob' })
      expect([...((await inspector.listUserIds?.({ after: 'ann', limit: 5 }, ASK)) ?? [])]).toEqual(['bob'])
      expect(withSortedLists(await inspector.observeUsers?.(['ann', 'missing'], ASK))).toEqual([
        {
          user_id: 'ann',
          observed_client_ids: ['c', 'd'],
          observed_browser_windows: 1,
          browser_windows_by_status: { open: 1, stale: 0, closed: 1 },
        },
      ])
    })

    it('refuses an invalid report and stores nothing of it', async () => {
      for (const over of [{ window_id: '' }, { type: 'x' }, { tab_count: -1 }, { capacity: 1.5 }, { focused: 'true' }])
        await expect(async () => report('w1', over as Partial<ReportBrowserWindowInput>)).rejects.toMatchObject({
          code: 'invalid_input',
        })
      await expect(async () => report('w1', { tabs: 3 } as Partial<ReportBrowserWindowInput>)).rejects.toMatchObject({
        code: 'invalid_input',
        detail: expect.stringMatching(/^Unknown field "tabs"\. Valid fields: window_id, user_id, /),
      })
      expect(await list()).toEqual([])
    })
  })
}
