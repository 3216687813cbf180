/** Reads the browser-window registry of a shared store. */
import {
  BROWSER_WINDOW_FAMILY,
  BrowserWindow,
  type BrowserWindowRegistryInspector,
} from '../../internal/contract/browser-windows.js'
import { presenceInspector, presenceTable } from '../presence/table.js'
import type { Store } from '../store/store.js'

export const WINDOWS = presenceTable('windows', 'window_id', BrowserWindow, ['user_id'], BROWSER_WINDOW_FAMILY)

export function createBrowserWindowInspector(store: Store): BrowserWindowRegistryInspector {
  const { list, get, count, ...rest } = presenceInspector(store, WINDOWS)
  return { ...rest, listBrowserWindows: list, getBrowserWindow: get, countBrowserWindows: count }
}
