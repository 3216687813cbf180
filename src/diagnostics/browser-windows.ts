/** The routes of the browser-windows family. */
import { BROWSER_WINDOW_FAMILY, BrowserWindow, BrowserWindowFilter } from '../contract/browser-windows.js'
import { pageOf } from '../contract/page.js'
import { BrowserWindowCount, count } from '../views/counts.js'
import { withLiveCounts } from '../views/window-counts.js'
import { diagnosticsRoute, routesAbout } from './route.js'

export const BROWSER_WINDOW_ROUTES = routesAbout('browser-windows', 'Browser windows.', [
  diagnosticsRoute({
    path: '/browser-windows',
    summary: 'Browser windows in their current state',
    needs: ['browser_window_registry'],
    narrows: true,
    page: 'paged',
    query: BrowserWindowFilter,
    response: pageOf(BrowserWindow),
    read: async ({ browserWindowRegistry, contextRegistry }, { filter, page }, view) => {
      const listed = await browserWindowRegistry.listBrowserWindows(filter, page, view.ask)
      return { ...listed, items: await withLiveCounts(listed.items, contextRegistry, view) }
    },
  }),
  diagnosticsRoute({
    path: '/browser-windows/count',
    summary: 'How many browser windows there are',
    needs: ['browser_window_registry'],
    narrows: true,
    query: BrowserWindowFilter,
    response: BrowserWindowCount,
    read: ({ browserWindowRegistry }, { filter }, view) =>
      count(
        'browser_window_registry',
        BROWSER_WINDOW_FAMILY.counted,
        {
          exact: () => browserWindowRegistry.countBrowserWindows?.(filter, view.ask),
          entry: BrowserWindow,
          list: (page, ask) => browserWindowRegistry.listBrowserWindows(filter, page, ask),
        },
        view,
      ),
  }),
  diagnosticsRoute({
    path: '/browser-windows/{window_id}',
    record: true,
    summary: 'One browser window',
    needs: ['browser_window_registry'],
    narrows: true,
    response: BrowserWindow,
    read: async ({ browserWindowRegistry, contextRegistry }, { params }, view) => {
      const window = await browserWindowRegistry.getBrowserWindow(params.window_id, view.ask)
      return window && (await withLiveCounts([window], contextRegistry, view))[0]
    },
  }),
])
