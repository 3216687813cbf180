/** The routes of the browser-windows family. */
import {
  BrowserWindow,
  BrowserWindowFilter,
  WindowState,
  WindowStatus,
  WindowType,
} from '../contract/browser-windows.js'
import { Ownership } from '../contract/contexts.js'
import { pageOf } from '../contract/page.js'
import { BrowserWindowCount, count } from '../views/counts.js'
import { withLiveCounts } from '../views/window-counts.js'
import { type DiagnosticsRoute, diagnosticsRoute } from './route.js'

export const BROWSER_WINDOW_ROUTES: readonly DiagnosticsRoute[] = [
  diagnosticsRoute({
    path: '/browser-windows',
    summary: 'Browser windows in their current state',
    needs: ['browser_window_registry'],
    page: 'paged',
    query: BrowserWindowFilter,
    response: pageOf(BrowserWindow),
    ask: async ({ browserWindowRegistry, contextRegistry }, { filter, page }, view) => {
      const listed = await browserWindowRegistry.listBrowserWindows(filter, page, view.ask)
      return { ...listed, items: await withLiveCounts(listed.items, contextRegistry, view) }
    },
  }),
  diagnosticsRoute({
    path: '/browser-windows/count',
    summary: 'How many browser windows there are',
    needs: ['browser_window_registry'],
    query: BrowserWindowFilter,
    response: BrowserWindowCount,
    ask: ({ browserWindowRegistry }, { filter }, view) =>
      count(
        'browser_window_registry',
        { status: WindowStatus, ownership: Ownership, type: WindowType, state: WindowState },
        {
          exact: () => browserWindowRegistry.countBrowserWindows?.(filter, view.ask),
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
    response: BrowserWindow,
    ask: async ({ browserWindowRegistry, contextRegistry }, { params }, view) => {
      const window = await browserWindowRegistry.getBrowserWindow(params.window_id, view.ask)
      return window && (await withLiveCounts([window], contextRegistry, view))[0]
    },
  }),
]
