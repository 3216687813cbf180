/** The live browser-window registry of a deployment in a shared store, for the hosts that write to it. */
import {
  type BrowserWindowRegistry,
  type BrowserWindowRegistryInspector,
  ReportBrowserWindowInput,
} from '../../contract/browser-windows.js'
import type { ReportedOptions } from '../../contract/contexts.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { createReported, toRecord } from '../presence/facility.js'
import { createStore, type Store, type StoreOptions } from '../store/store.js'
import { createBrowserWindowInspector, WINDOWS } from './inspector.js'

export type RedisBrowserWindowRegistryOptions = StoreOptions & ReportedOptions

/**
 * A browser-window registry in Redis. The counts that it answers are the client's own snapshot.
 *
 * @example
 * const browserWindows = createRedisBrowserWindowRegistry({ client, deploymentId: 'prod' })
 */
export function createRedisBrowserWindowRegistry(
  options: RedisBrowserWindowRegistryOptions,
): Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector> {
  return browserWindowRegistryOn(createStore(options), options)
}

export function browserWindowRegistryOn(
  store: Store,
  options: ReportedOptions,
): Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector> {
  const reported = createReported(store, WINDOWS.name, '', options)
  return {
    inspector: createBrowserWindowInspector(store),
    async report(given) {
      const input = parseInput(ReportBrowserWindowInput, given)
      const { tab_count, capacity, worker_count, idle_count, busy_count, ...fields } = input
      const counts = { tab_count, capacity, worker_count, idle_count, busy_count }
      return toRecord(store, WINDOWS, await reported.report(input.window_id, fields, counts))
    },
    close: (windowId) => reported.close(windowId, { focused: false }),
  }
}
