/** Format of a stored browser window. */
import * as z from 'zod'
import { BrowserWindow } from '../../contract/browser-windows.js'
import type { TableReader } from '../table/rows.js'
import { Millis, timestampOf } from '../table/timestamp.js'

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
