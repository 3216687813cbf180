/** The browser-window registry of a deployment in a shared store, for hosts. */
import type { BrowserWindowRegistry, BrowserWindowRegistryInspector } from '../../internal/contract/browser-windows.js'
import { PresenceOptions } from '../../internal/contract/contexts.js'
import type { Inspected } from '../../internal/contract/families.js'
import { browserWindowRules } from '../../internal/rules/presence.js'
import { presenceRecords } from '../presence/records.js'
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

export const browserWindowRegistryOn = (
  store: Store,
  options: PresenceOptions,
): Inspected<BrowserWindowRegistry, BrowserWindowRegistryInspector> => ({
  inspector: createBrowserWindowInspector(store),
  ...browserWindowRules(presenceRecords(store, WINDOWS, options)),
})
