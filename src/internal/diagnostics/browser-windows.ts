/** The routes of the browser-windows family. */
import { BROWSER_WINDOW_FAMILY, BrowserWindowAnswer, BrowserWindowFilter } from '../contract/browser-windows.js'
import { pageSchema, withItems } from '../contract/page.js'
import { BrowserWindowCount, count, withLiveCounts } from '../views/counts.js'
import { complete, exampleTime, lastPage, WINDOW } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

export const BROWSER_WINDOW_ROUTES = routeSection('browser-windows', 'Browser windows.', [
  diagnosticsRoute({
    path: '/browser-windows',
    alsoReads: ['contextRegistry'],
    operationId: 'listBrowserWindows',
    summary: 'Browser windows in their current state, the newest first unless `order` says otherwise',
    requires: ['browser_window_registry'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: BrowserWindowFilter,
    response: pageSchema(BrowserWindowAnswer),
    example: lastPage(WINDOW),
    read: async ({ browserWindowRegistry, contextRegistry }, { filter, page }, view) => {
      const listed = await browserWindowRegistry.listBrowserWindows(filter, page, view.ctx)
      return withItems(listed, await withLiveCounts(listed.items, contextRegistry, view))
    },
  }),
  diagnosticsRoute({
    path: '/browser-windows/count',
    alsoReads: ['contextRegistry'],
    operationId: 'countBrowserWindows',
    summary: 'How many browser windows there are',
    requires: ['browser_window_registry'],
    scopable: true,
    query: BrowserWindowFilter,
    response: BrowserWindowCount,
    example: {
      total: 1,
      by_status: { open: 1, stale: 0, closed: 0 },
      by_ownership: { 'user-owned': 0, worker: 1 },
      by_type: { normal: 1, popup: 0, panel: 0, app: 0, devtools: 0, unknown: 0 },
      by_state: { normal: 0, minimized: 1, maximized: 0, fullscreen: 0, unknown: 0 },
      completeness: complete({ browser_window_registry: 0 }),
      observed_at: exampleTime(30),
    },
    read: ({ browserWindowRegistry }, { filter }, view) =>
      count(
        'browser_window_registry',
        BROWSER_WINDOW_FAMILY.counted,
        {
          exact: () => browserWindowRegistry.countBrowserWindows?.(filter, view.ctx),
          entry: BrowserWindowAnswer,
          id: 'window_id',
          list: (page, ctx) => browserWindowRegistry.listBrowserWindows(filter, page, ctx),
        },
        view,
      ),
  }),
  diagnosticsRoute({
    path: '/browser-windows/{window_id}',
    operationId: 'getBrowserWindow',
    record: true,
    summary: 'One browser window',
    requires: ['browser_window_registry'],
    scopable: true,
    response: BrowserWindowAnswer,
    example: WINDOW,
    read: async ({ browserWindowRegistry, contextRegistry }, { params }, view) => {
      const window = await browserWindowRegistry.getBrowserWindow(params.window_id, view.ctx)
      return window && (await withLiveCounts([window], contextRegistry, view))[0]
    },
  }),
])
