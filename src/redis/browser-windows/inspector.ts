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
    listBrowserWindows: (filter, page, ask) => readPage(store, WINDOWS, filter, page, ask),
    getBrowserWindow: async (id, ask) => (await getRecord(store, WINDOWS, id, ask))?.record ?? null,
    async countBrowserWindows(filter, ask): Promise<BrowserWindowCounts> {
      const { records, indexed } = await countAll(store, WINDOWS, filter, ask)
      return {
        ...indexed,
        ...countBy(BROWSER_WINDOW_FAMILY.counted, records),
      }
    },
    listUserIds: (page, ask) => listUserIds(store, WINDOWS.name, page, ask),
    observeUsers: (userIds, ask) => observeUsers(store, WINDOWS, userIds, ask, foldWindow),
  }
}
