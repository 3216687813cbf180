/** The contract suite of a browser-window registry's inspector. */
import {
  BrowserWindow,
  type BrowserWindowRegistryInspector,
  tellWindow,
  WindowState,
  WindowStatus,
  WindowType,
} from '../contract/browser-windows.js'
import { Ownership } from '../contract/contexts.js'
import { countCases } from './counts.js'
import type { ContractCase } from './expect.js'
import { listCases, type MakeInspector } from './lists.js'
import { userCases } from './users.js'

const FILTERS = [
  'user_id',
  'client_id',
  'ownership',
  'status',
  'type',
  'state',
  'focused',
  'incognito',
  'draining',
] as const

/** Holds a browser-window registry's inspector to its contract. `make` gives one with the same windows each time. */
export function browserWindowRegistryContract(make: MakeInspector<BrowserWindowRegistryInspector>): ContractCase[] {
  return [
    ...listCases<BrowserWindowRegistryInspector, BrowserWindow>(make, {
      name: 'listBrowserWindows',
      list: (windows, filter) => (page, ask) => windows.listBrowserWindows(filter, page, ask),
      item: BrowserWindow.refine((window) => window.counts_source === 'snapshot', 'counts_source must be snapshot'),
      id: 'window_id',
      filters: FILTERS,
      get: (windows, id, ask) => windows.getBrowserWindow(id, ask),
    }),
    ...countCases<BrowserWindowRegistryInspector, BrowserWindow>(make, {
      name: 'countBrowserWindows',
      list: (windows, filter, page, ask) => windows.listBrowserWindows(filter, page, ask),
      count: (windows, filter, ask) => windows.countBrowserWindows?.(filter, ask),
      by: { status: WindowStatus, ownership: Ownership, type: WindowType, state: WindowState },
      filters: FILTERS,
    }),
    ...userCases<BrowserWindowRegistryInspector, BrowserWindow>(make, {
      list: (windows, page, ask) => windows.listBrowserWindows({}, page, ask),
      tell: tellWindow,
    }),
  ]
}
