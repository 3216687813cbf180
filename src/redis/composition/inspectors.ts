/** From a deployment in a shared store to what a router is built from, in any process that can reach the store. */

import type { FamilyName, Inspectors } from '../../contract/families.js'
import { SPILL_STORE, type SpillStore } from '../../contract/history.js'
import type { Deployment } from '../../contract/inspectors.js'
import { FLAG, type Shape } from '../../contract/options.js'
import type { Ask } from '../../contract/page.js'
import { createBrowserWindowInspector } from '../browser-windows/inspector.js'
import { createRegistryInspector } from '../connections/inspector.js'
import { createContextInspector } from '../contexts/inspector.js'
import { createDeduplicatorInspector } from '../deduplicator/inspector.js'
import { createDeliveryInspector } from '../delivery/inspector.js'
import { LEGACY_STREAM, type LegacyStream } from '../delivery/legacy.js'
import { createHistoryInspector } from '../history/inspector.js'
import { createRpcInspector } from '../rpc/inspector.js'
import { createSessionInspector } from '../sessions/inspector.js'
import { createSiteInspector } from '../sites/inspector.js'
import { createStore, STORE_OPTIONS, type Store, type StoreOptions } from '../store/store.js'
import { createSubscriptionInspector } from '../subscriptions/inspector.js'
import { allShards } from '../table/shards.js'

export interface RedisCompositionOptions extends StoreOptions {
  /** Where the hosts put large payloads; without it they say `not_configured`. */
  spill?: SpillStore
  /** An older single command stream, whose length and pending entries the delivery summary shows. */
  legacy?: LegacyStream
  /** Whether to show contexts, and with them workers. @default true */
  contexts?: boolean
  /** Whether to show browser windows. @default true */
  browserWindows?: boolean
  /** Whether to show the cooperative sites, their sessions and viewer streams. @default true */
  cooperative?: boolean
}

const OPTIONS: Shape<RedisCompositionOptions> = {
  ...STORE_OPTIONS,
  spill: SPILL_STORE,
  legacy: LEGACY_STREAM,
  contexts: FLAG,
  browserWindows: FLAG,
  cooperative: FLAG,
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
  const { spill, legacy, contexts = true, browserWindows = true, cooperative = true } = options
  const store = createStore(options, OPTIONS)
  const inspectors: { [Name in FamilyName]: Inspectors[Name] } = {
    registry: createRegistryInspector(store),
    contextRegistry: contexts ? createContextInspector(store) : undefined,
    browserWindowRegistry: browserWindows ? createBrowserWindowInspector(store) : undefined,
    rpc: createRpcInspector(store),
    history: createHistoryInspector(store, { spill }),
    deduplicator: createDeduplicatorInspector(store),
    delivery: createDeliveryInspector(store, legacy),
    sites: cooperative ? createSiteInspector(store) : undefined,
    sessions: cooperative ? createSessionInspector(store) : undefined,
    subscriptions: cooperative ? createSubscriptionInspector(store) : undefined,
  }
  for (const inspector of Object.values(inspectors)) if (inspector) inspector.ping = (ask) => pingShards(store, ask)
  return { inspectors, deployment: { id: store.deploymentId, mode: 'shared_store' } }
}

/** Reads something of every shard: a key that need not be there, by the command that reads records. */
async function pingShards(store: Store, ask: Ask): Promise<void> {
  const keys = (await allShards(store, ask)).map((shard) => store.key(shard, 'ping'))
  await Promise.all(keys.map((key) => store.command(['MGET', key], key, ask)))
}
