/** From a deployment in a shared store to what a router is built from, in any process that can reach the store. */
import type { SpillStore } from '../contract/history.js'
import type { Deployment, Inspectors } from '../contract/inspectors.js'
import { createBrowserWindowInspector } from './observe/browser-windows.js'
import { createRegistryInspector } from './observe/connections.js'
import { createContextInspector } from './observe/contexts.js'
import { createDeduplicatorInspector } from './observe/deduplicator.js'
import { createDeliveryInspector } from './observe/delivery.js'
import type { LegacyStream } from './observe/delivery-legacy.js'
import { createHistoryInspector } from './observe/history.js'
import { createRpcInspector } from './observe/rpc.js'
import { createStore, type StoreOptions } from './store.js'

export interface RedisCompositionOptions extends Omit<StoreOptions, 'shards'> {
  /** Where the hosts put large payloads; without it they say `not_configured`. */
  spill?: SpillStore
  /** An older single command stream, whose length and pending entries the delivery summary shows. */
  legacy?: LegacyStream
  /** Whether to show contexts, and with them workers. @default true */
  contexts?: boolean
  /** @default true */
  browserWindows?: boolean
}

/**
 * Inspectors over a deployment, of which this process need be no part: they only read. Nothing is asked of the store
 * before a request, so that this works, and `/capabilities` answers, while it is down.
 *
 * @throws RangeError for a `deploymentId` that could name another's keys, TypeError for what is no client.
 * @example
 * createDiagnosticsRouter({ ...redisComposition({ client, deploymentId: 'prod' }), auth })
 */
export function redisComposition(options: RedisCompositionOptions): { inspectors: Inspectors; deployment: Deployment } {
  const { spill, legacy, contexts = true, browserWindows = true } = options
  const store = createStore(options)
  return {
    inspectors: {
      history: createHistoryInspector(store, { spill }),
      registry: createRegistryInspector(store),
      rpc: createRpcInspector(store),
      deduplicator: createDeduplicatorInspector(store),
      delivery: createDeliveryInspector(store, legacy),
      ...(contexts ? { contextRegistry: createContextInspector(store) } : {}),
      ...(browserWindows ? { browserWindowRegistry: createBrowserWindowInspector(store) } : {}),
    },
    deployment: { id: store.deploymentId, mode: 'shared_store' },
  }
}
