/** The browser-window registry of a deployment in a shared store, for hosts. */
import {
  type BrowserWindowRegistry,
  type BrowserWindowRegistryInspector,
  ReportBrowserWindowInput,
} from '../../contract/browser-windows.js'
import { PresenceOptions } from '../../contract/contexts.js'
import type { Inspected } from '../../contract/families.js'
import { parseInput } from '../../contract/options.js'
import { createPresence, toRecord } from '../presence/facility.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { createBrowserWindowInspector, WINDOWS } from './inspector.js'

/** Options of `createRedisBrowserWindowRegistry`. */
export type RedisBrowserWindowRegistryOptions = StoreOptions & PresenceOptions

/**
 * Creates a browser-window registry in Redis. Its counts are the client's own snapshot.
 *
 * @example
 * const browserWindows = createRedisBrowserWindowRegistry({ client, deploymentId: 'prod' })
 */
export function createRedisBrowserWindowRegistry(
  options: RedisBrowserWindowRegistryOptions,
): Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector> {
  return browserWindowRegistryOn(createStore(options, inStore(PresenceOptions)), options)
}

export function browserWindowRegistryOn(
  store: Store,
  options: PresenceOptions,
): Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector> {
  const presence = createPresence(store, WINDOWS.name, '', options)
  return {
    inspector: createBrowserWindowInspector(store),
    async report(given) {
      const input = parseInput(ReportBrowserWindowInput, given)
      const { tab_count, capacity, worker_count, idle_count, busy_count, ...fields } = input
      const counts = { tab_count, capacity, worker_count, idle_count, busy_count }
      return toRecord(store, WINDOWS, await presence.report(input.window_id, fields, counts))
    },
    close: (windowId) => presence.close(windowId, { focused: false }),
  }
}
