/** From a deployment in a shared store to what a router is built from, in any process that can reach the store. */
import type { SpillStore } from '../../contract/history.js'
import type { Deployment, Inspectors } from '../../contract/inspectors.js'
import { createBrowserWindowInspector } from '../browser-windows/inspector.js'
import { createRegistryInspector } from '../connections/inspector.js'
import { createContextInspector } from '../contexts/inspector.js'
import { createDeduplicatorInspector } from '../deduplicator/inspector.js'
import { createDeliveryInspector } from '../delivery/inspector.js'
import type { LegacyStream } from '../delivery/legacy.js'
import { createHistoryInspector } from '../history/inspector.js'
import { createRpcInspector } from '../rpc/inspector.js'
import { createStore, type StoreOptions } from '../store/store.js'

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
 * @throws RangeError for a `deploymentId` that could name another's keys, TypeError for what is not a client.
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
