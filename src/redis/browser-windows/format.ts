/** How a browser window is stored, and read back. */
import * as z from 'zod'
import { BrowserWindow } from '../../contract/browser-windows.js'
import type { TableReader } from '../table/rows.js'
import { Millis, timestampOf } from '../table/timestamp.js'

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
