/** Inspectors of a deployment in a shared store, for a router in any process that can reach the store. */

import type { Deployment, FamilyName, Inspectors } from '../../internal/contract/families.js'
import { SPILL_STORE } from '../../internal/contract/history.js'
import { defineOptions, type Input, optionsOf, readParts } from '../../internal/contract/options.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { createBrowserWindowInspector } from '../browser-windows/inspector.js'
import { createRegistryInspector } from '../connections/inspector.js'
import { createContextInspector } from '../contexts/inspector.js'
import { createDeduplicatorInspector } from '../deduplicator/inspector.js'
import { createDeliveryInspector } from '../delivery/inspector.js'
import { LegacyStream } from '../delivery/summary.js'
import { createHistoryInspector } from '../history/inspector.js'
import { createRpcInspector } from '../rpc/inspector.js'
import { createSessionInspector } from '../sessions/inspector.js'
import { createSiteInspector } from '../sites/inspector.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { createWarningReader, warnAboutStore } from '../store/warnings.js'
import { createSubscriptionInspector } from '../subscriptions/inspector.js'
import { allShards } from '../table/shards.js'
import { ShownFamilies } from './families.js'

const OfObserver = defineOptions({
  /** Store of large payloads, as given to the hosts; without it they are shown as `not_configured`. */
  spill: SPILL_STORE.optional(),
  /** An older single command stream whose length and pending entries the delivery summary shows. */
  legacy: optionsOf<LegacyStream>(LegacyStream),
  ...ShownFamilies.shape,
})
/** Options of `redisComposition`. */
export interface RedisCompositionOptions extends StoreOptions, Input<typeof OfObserver> {}

/**
 * Creates read-only inspectors of a deployment, in any process. No command is sent before the first request, so this
 * works, and `/capabilities` responds, while the store is down.
 *
 * @throws RangeError for an invalid `deploymentId`, TypeError for an unsupported client.
 * @example
 * createDiagnosticsRouter({ ...redisComposition({ client, deploymentId: 'prod' }), auth })
 */
export function redisComposition(options: RedisCompositionOptions): { inspectors: Inspectors; deployment: Deployment } {
  const store = createStore(options, inStore(OfObserver))
  const { spill, legacy, ...shown } = readParts(OfObserver, options)
  const all: { [Name in FamilyName]: Inspectors[Name] | false } = {
    registry: shown.connections && createRegistryInspector(store),
    contextRegistry: shown.contexts && createContextInspector(store),
    browserWindowRegistry: shown.browserWindows && createBrowserWindowInspector(store),
    rpc: shown.rpc && createRpcInspector(store),
    history: shown.history && createHistoryInspector(store, { spill }),
    deduplicator: shown.deduplicator && createDeduplicatorInspector(store),
    delivery: shown.delivery && createDeliveryInspector(store, legacy),
    sites: shown.sites && createSiteInspector(store),
    sessions: shown.sessions && createSessionInspector(store),
    subscriptions: shown.subscriptions && createSubscriptionInspector(store),
  }
  const inspectors: Inspectors = Object.fromEntries(Object.entries(all).filter(([, inspector]) => inspector))
  let isChecked = false
  const warnings = createWarningReader(store)
  const ping = (ctx: InspectionContext) => {
    if (!isChecked) void warnAboutStore(store)
    isChecked = true
    return pingShards(store, ctx)
  }
  for (const inspector of Object.values(inspectors)) Object.assign(inspector, { ping, warnings })
  return { inspectors, deployment: { id: store.deploymentId, mode: 'shared_store' } }
}

/** Reads a key (which need not exist) in every shard, with the command that reads records. */
async function pingShards(store: Store, ctx: InspectionContext): Promise<void> {
  const keys = (await allShards(store, ctx)).map((shard) => store.key(shard, 'ping'))
  await Promise.all(keys.map((key) => store.command(['MGET', key], key, ctx)))
}
