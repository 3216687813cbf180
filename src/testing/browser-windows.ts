/** Contract suite of the browser-window inspector. */

import {
  BROWSER_WINDOW_FAMILY,
  BrowserWindowAnswer,
  BrowserWindowFilter,
  type BrowserWindowInput,
  type BrowserWindowRegistryInspector,
} from '../internal/contract/browser-windows.js'
import { answering, type Known } from './answering.js'
import { countCases } from './counts.js'
import {
  CLIENT,
  type ContractCase,
  check,
  FAKE_TIME,
  fakePage,
  fill,
  find,
  type Make,
  notTested,
  type Partly,
  toCases,
} from './expect.js'
import { listCases, type MakeInspector, userCases, walk } from './lists.js'

const FILTERS = BrowserWindowFilter.keyof().options

/** Returns the contract suite of a browser-window inspector. `make` creates one with the same windows each time. */
export function browserWindowRegistryContract(given: MakeInspector<BrowserWindowRegistryInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<BrowserWindowRegistryInspector>, BrowserWindowAnswer>(make, {
      name: 'listBrowserWindows',
      ordered: true,
      list: (windows, filter) => (page, ctx) => windows.listBrowserWindows(filter as object, page, ctx),
      item: BrowserWindowAnswer.refine(
        ({ counts_source }) => counts_source === 'snapshot' || counts_source === null,
        'counts_source must be snapshot',
      ),
      id: 'window_id',
      filters: FILTERS,
      get: (windows, id, ctx) => windows.getBrowserWindow(id, ctx),
    }),
    ...countCases<Known<BrowserWindowRegistryInspector>, BrowserWindowAnswer>(make, {
      name: 'countBrowserWindows',
      list: (windows, filter, page, ctx) => windows.listBrowserWindows(filter as object, page, ctx),
      count: (windows, filter, ctx) => windows.countBrowserWindows?.(filter as object, ctx),
      by: BROWSER_WINDOW_FAMILY.counted,
      filters: FILTERS,
    }),
    ...userCases(make, BROWSER_WINDOW_FAMILY.users),
    { name: 'filters of listBrowserWindows match only reported values', run: () => checkKnown(make) },
  ])
}

/** A window that never reported an attribute matches neither value of it. */
async function checkKnown(make: MakeInspector<Known<BrowserWindowRegistryInspector>>): Promise<void> {
  const windows = await make()
  if (!windows) return notTested('listBrowserWindows is not implemented')
  for (const field of ['focused', 'incognito', 'draining'] as const) {
    const found = await walk<BrowserWindowAnswer>(
      (page, ctx) => windows.listBrowserWindows({ [field]: false }, page, ctx),
      100,
      'a filter',
    )
    check(
      found.every((window) => window[field] === false),
      `listBrowserWindows under ${field}=false returned a window whose ${field} is not false`,
    )
  }
}

/** Data of the fake browser-window inspector. */
export interface BrowserWindowWorld {
  /** Browser windows. */
  browserWindows?: Partly<BrowserWindowInput>[]
}

const toWindow: Make<BrowserWindowInput> = (given, place) =>
  fill(
    {
      ...CLIENT,
      window_id: `window-${place}`,
      ownership: 'user-owned',
      focused: null,
      type: null,
      state: null,
      incognito: null,
      tab_count: null,
      capacity: null,
      draining: null,
      status: 'open',
      worker_count: null,
      idle_count: null,
      busy_count: null,
      counts_source: 'snapshot',
      updated_at: FAKE_TIME,
    },
    given,
  )

export function fakeBrowserWindows(world: BrowserWindowWorld): BrowserWindowRegistryInspector | undefined {
  if (!world.browserWindows) return undefined
  return {
    listBrowserWindows: (filter, page) => fakePage(toWindow, world.browserWindows, filter, page),
    getBrowserWindow: (window_id) => find(toWindow, world.browserWindows, { window_id }),
  }
}
