/** Reads the browser-window registry of a shared store. */
import * as z from 'zod'
import {
  BrowserWindow,
  type BrowserWindowCounts,
  type BrowserWindowRegistryInspector,
  tellWindow,
  WindowState,
  WindowStatus,
  WindowType,
} from '../../contract/browser-windows.js'
import { Ownership } from '../../contract/contexts.js'
import type { Store } from '../store/store.js'
import { countAll, tally } from '../table/counts.js'
import { readPage } from '../table/pages.js'
import { getRecord, type TableReader } from '../table/rows.js'
import { Millis, timestampOf } from '../table/timestamp.js'
import { listUserIds, observeUsers } from '../table/users.js'

const StoredWindow = BrowserWindow.omit({ counts_source: true }).extend({
  status: z.enum(['open', 'closed']),
  updated_at: Millis,
  ttl_ms: Millis,
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
    listBrowserWindows: (filter, page, ask) => readPage(store, WINDOWS, filter, page, ask),
    getBrowserWindow: async (id, ask) => (await getRecord(store, WINDOWS, id, ask))?.record ?? null,
    async countBrowserWindows(filter, ask): Promise<BrowserWindowCounts> {
      const { records, indexed } = await countAll(store, WINDOWS, filter, ask)
      return {
        ...indexed,
        total: records.length,
        by_status: tally(WindowStatus.options, records, ({ status }) => status),
        by_ownership: tally(Ownership.options, records, ({ ownership }) => ownership),
        by_type: tally(WindowType.options, records, ({ type }) => type),
        by_state: tally(WindowState.options, records, ({ state }) => state),
      }
    },
    listUserIds: (page, ask) => listUserIds(store, WINDOWS.name, page, ask),
    observeUsers: (userIds, ask) => observeUsers(store, WINDOWS, userIds, ask, tellWindow),
  }
}
