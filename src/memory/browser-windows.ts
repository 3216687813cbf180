/** The live browser-window registry of one process, and the inspector that looks through at it. */
import {
  type BrowserWindow,
  type BrowserWindowCounts,
  type BrowserWindowRegistry,
  type BrowserWindowRegistryInspector,
  ReportBrowserWindowInput,
  WindowState,
  WindowStatus,
  WindowType,
} from '../contract/browser-windows.js'
import { Ownership, type ReportedOptions } from '../contract/contexts.js'
import { toTimestamp } from '../contract/ids.js'
import { parseInput } from '../contract/input.js'
import type { Inspected } from '../contract/inspectors.js'
import { examinable } from '../contract/page.js'
import { createReportedTable } from './table/presence.js'

export interface BrowserWindowRegistryOptions extends ReportedOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
}

const EITHER = [false, true]

/**
 * A browser-window registry in memory. The counts that it answers are the client's own snapshot. Staleness and leaving
 * are settled when somebody looks; there is no timer.
 *
 * @example
 * const browserWindows = createBrowserWindowRegistry()
 * await browserWindows.report({ window_id: 'w1', user_id: 'u', client_id: 'c', tab_count: 3 })
 */
export function createBrowserWindowRegistry(
  options: BrowserWindowRegistryOptions = {},
): Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector> {
  const { now = Date.now } = options
  const reported = createReportedTable<BrowserWindow, BrowserWindowCounts>({
    ...options,
    now,
    fields: ['client_id'],
    dimensions: [
      { name: 'status', values: WindowStatus.options, counted: true },
      { name: 'ownership', values: Ownership.options, counted: true },
      { name: 'type', values: WindowType.options, counted: true },
      { name: 'state', values: WindowState.options, counted: true },
      { name: 'focused', values: EITHER },
      { name: 'incognito', values: EITHER },
      { name: 'draining', values: EITHER },
    ],
  })

  const inspector: BrowserWindowRegistryInspector = {
    listBrowserWindows: (filter, page, ask) => reported.list(filter, page, examinable(ask)),
    getBrowserWindow: (windowId) => reported.get(windowId)?.record ?? null,
    countBrowserWindows: (filter, ask) => reported.count(filter, examinable(ask)),
    listUserIds: (page, ask) => reported.userIds(page, examinable(ask)),
    observeUsers: (userIds, ask) =>
      reported.observe(userIds, examinable(ask), (user_id, { total, by_status }) => ({
        user_id,
        observed_browser_windows: total,
        browser_windows_by_status: by_status,
      })),
  }

  return {
    inspector,
    async report(given) {
      const input = parseInput(ReportBrowserWindowInput, given)
      return reported.report(input.window_id, input, (known) => ({
        ...input,
        ownership: known?.ownership ?? input.ownership,
        status: 'open',
        counts_source: 'snapshot',
        updated_at: toTimestamp(now()),
      }))
    },
    async close(windowId) {
      const entry = reported.get(windowId)
      if (!entry || entry.record.status === 'closed') return false
      const updated_at = toTimestamp(now())
      reported.close(entry, { ...entry.record, status: 'closed', focused: false, updated_at })
      return true
    },
  }
}
