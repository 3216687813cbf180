/** The browser-window registry of one process, and its inspector. */

import {
  BROWSER_WINDOW_FAMILY,
  type BrowserWindow,
  type BrowserWindowCounts,
  type BrowserWindowRegistry,
  type BrowserWindowRegistryInspector,
} from '../internal/contract/browser-windows.js'
import { PresenceOptions } from '../internal/contract/contexts.js'
import type { Inspected } from '../internal/contract/families.js'
import { UNKNOWN } from '../internal/contract/observation.js'
import { type Clocked, readOptions, withClock } from '../internal/contract/options.js'
import { scanLimit } from '../internal/contract/page.js'
import { browserWindowRules } from '../internal/rules/presence.js'
import { countedBy } from './table/field-index.js'
import { createPresenceTable } from './table/presence.js'

/** Options of `createBrowserWindowRegistry`. */
export const BrowserWindowRegistryOptions = withClock(PresenceOptions)
/** Options of `createBrowserWindowRegistry`. */
export interface BrowserWindowRegistryOptions extends PresenceOptions, Clocked {}

const EITHER = [false, true, UNKNOWN]

/**
 * Creates a browser-window registry in memory. Its counts are the client's own snapshot. Staleness and expiry are
 * computed on access; there is no timer.
 *
 * @example
 * const browserWindows = createBrowserWindowRegistry()
 * await browserWindows.report({ window_id: 'w1', user_id: 'u', client_id: 'c', tab_count: 3 })
 */
export function createBrowserWindowRegistry(
  options: BrowserWindowRegistryOptions = {},
): Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector> {
  const { now, ...bounds } = readOptions(BrowserWindowRegistryOptions, options)
  const presence = createPresenceTable<BrowserWindow, BrowserWindowCounts>({
    ...bounds,
    now,
    fields: ['client_id'],
    dimensions: [
      ...countedBy(BROWSER_WINDOW_FAMILY.counted),
      { name: 'focused', values: EITHER },
      { name: 'incognito', values: EITHER },
      { name: 'draining', values: EITHER },
    ],
  })

  const inspector: BrowserWindowRegistryInspector = {
    version: presence.version,
    listBrowserWindows: (filter, page, ctx) => presence.list(filter, page, scanLimit(ctx)),
    getBrowserWindow: (windowId) => presence.get(windowId)?.record ?? null,
    countBrowserWindows: (filter, ctx) => presence.count(filter, scanLimit(ctx)),
    listUserIds: (page, ctx) => presence.userIds(page, scanLimit(ctx)),
    observeUsers: (userIds, ctx) =>
      presence.observe(userIds, ctx, (user_id, counts) => {
        const { by_status } = counts()
        return { user_id, observed_browser_windows: by_status.open, browser_windows_by_status: by_status }
      }),
  }

  return { inspector, ...browserWindowRules(presence) }
}
