/** Reads the browser-window registry of a shared store. */
import {
  BROWSER_WINDOW_FAMILY,
  type BrowserWindowCounts,
  type BrowserWindowRegistryInspector,
  foldWindow,
} from '../../contract/browser-windows.js'
import { countBy } from '../../contract/counts.js'
import type { Store } from '../store/store.js'
import { countAll } from '../table/counts.js'
import { readPage } from '../table/pages.js'
import { getRecord } from '../table/rows.js'
import { listUserIds, observeUsers } from '../table/users.js'
import { versioned } from '../table/version.js'
import { WINDOWS } from './format.js'

export function createBrowserWindowInspector(store: Store): BrowserWindowRegistryInspector {
  return {
    ...versioned(store, [WINDOWS.name]),
    listBrowserWindows: (filter, page, ctx) => readPage(store, WINDOWS, filter, page, ctx),
    getBrowserWindow: async (id, ctx) => (await getRecord(store, WINDOWS, id, ctx))?.record ?? null,
    async countBrowserWindows(filter, ctx): Promise<BrowserWindowCounts> {
      const { records, indexed } = await countAll(store, WINDOWS, filter, ctx)
      return {
        ...indexed,
        ...countBy(BROWSER_WINDOW_FAMILY.counted, records),
      }
    },
    listUserIds: (page, ctx) => listUserIds(store, WINDOWS.name, page, ctx),
    observeUsers: (userIds, ctx) => observeUsers(store, WINDOWS, userIds, ctx, foldWindow),
  }
}
