/** Reads the browser-window registry of a shared store. */

import * as z from 'zod'
import {
  BROWSER_WINDOW_FAMILY,
  BrowserWindow,
  type BrowserWindowCounts,
  type BrowserWindowRegistryInspector,
  foldWindow,
} from '../../contract/browser-windows.js'
import { countBy } from '../../contract/observation.js'
import type { Store } from '../store/store.js'
import { countAll, readPage } from '../table/pages.js'
import { getRecord, Millis, type TableReader, timestampOf } from '../table/rows.js'
import { versioned } from '../table/shards.js'
import { listUserIds, observeUsers } from '../table/users.js'

// Format of a stored browser window.

const { focused, type, state, incognito, tab_count, capacity, draining, worker_count, idle_count, busy_count } =
  BrowserWindow.shape

/** A row has no fields that were never reported. */
const unreported = {
  focused: focused.default(null),
  type: type.default(null),
  state: state.default(null),
  incognito: incognito.default(null),
  tab_count: tab_count.default(null),
  capacity: capacity.default(null),
  draining: draining.default(null),
  worker_count: worker_count.default(null),
  idle_count: idle_count.default(null),
  busy_count: busy_count.default(null),
}

const StoredWindow = BrowserWindow.omit({ counts_source: true }).extend({
  status: z.enum(['open', 'closed']),
  updated_at: Millis,
  ttl_ms: Millis,
  ...unreported,
})

export const WINDOWS: TableReader<BrowserWindow, z.infer<typeof StoredWindow>> = {
  name: 'windows',
  idOf: ({ window_id }) => window_id,
  schema: StoredWindow,
  indexes: ['user_id'],
  read({ ttl_ms, ...row }, now) {
    const silence = now - row.updated_at
    if (silence >= (row.status === 'closed' ? 1 : 2) * ttl_ms) return undefined
    return {
      ...row,
      status: row.status === 'open' && silence >= ttl_ms ? 'stale' : row.status,
      counts_source: 'snapshot',
      updated_at: timestampOf(row.updated_at),
    }
  },
}

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
