/** What every browser-window registry must do, whatever it keeps its windows in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type {
  BrowserWindow,
  BrowserWindowFilter,
  BrowserWindowRegistry,
  BrowserWindowRegistryInspector,
  ReportBrowserWindowInput,
} from '../../src/contract/browser-windows.js'
import type { Inspected } from '../../src/contract/inspectors.js'
import type { Awaitable } from '../../src/contract/page.js'
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
        type: 'normal',
        state: 'normal',
        incognito: false,
        tab_count: 0,
        capacity: 4,
        draining: false,
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

    it('replaces the state on a report, but never the ownership', async () => {
      await report('w1', { ownership: 'worker', tab_count: 3 })
      clock.advance(1_000)
      expect(await report('w1', { draining: true })).toMatchObject({
        ownership: 'worker',
        draining: true,
        tab_count: 0,
        updated_at: at(1_000),
      })
      expect(await list()).toHaveLength(1)
    })

    it('refuses a report about a window of another user or client', async () => {
      await report('w1')
      for (const over of [{ user_id: 'bob' }, { client_id: 'other' }])
        await expect(async () => report('w1', over)).rejects.toMatchObject({ code: 'identity_conflict' })
    })

    it('takes a report that says open, and lets nobody report another status', async () => {
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
        by_type: { normal: 3, popup: 3, panel: 2, app: 3, devtools: 3 },
        by_state: { normal: 4, minimized: 3, maximized: 3, fullscreen: 4 },
      })
    })

    it('tells what it knows of users', async () => {
      await report('w1')
      await report('w2', { client_id: 'd' })
      await windows.close('w2')
      await report('w3', { user_id: 'bob' })
      expect([...((await inspector.listUserIds?.({ after: 'ann', limit: 5 }, ASK)) ?? [])]).toEqual(['bob'])
      expect(withSortedLists(await inspector.observeUsers?.(['ann', 'nobody'], ASK))).toEqual([
        {
          user_id: 'ann',
          observed_client_ids: ['c', 'd'],
          observed_browser_windows: 2,
          browser_windows_by_status: { open: 1, stale: 0, closed: 1 },
        },
      ])
    })

    it('refuses what is no report, and keeps nothing of it', async () => {
      for (const over of [{ window_id: '' }, { type: 'x' }, { tab_count: -1 }, { capacity: 1.5 }, { focused: 'true' }])
        await expect(async () => report('w1', over as Partial<ReportBrowserWindowInput>)).rejects.toMatchObject({
          code: 'invalid_input',
        })
      expect(await list()).toEqual([])
    })
  })
}
