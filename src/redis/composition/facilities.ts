/** All live objects of one node over a shared store, wired to each other. */

import { type Ending, endTogether } from '../../async/ending.js'
import { CONNECTION_BOUNDS, type ConnectionOptions } from '../../contract/connections.js'
import type { ReportedOptions } from '../../contract/contexts.js'
import { CLAIM_BOUNDS, type ClaimOptions } from '../../contract/deduplicator.js'
import type { SpillStore } from '../../contract/history.js'
import type { HistoryOptions } from '../../contract/history-bounds.js'
import { createIngestOver, type Ingest } from '../../contract/ingest.js'
import { resolveBounds } from '../../contract/options.js'
import type { RpcOptions } from '../../contract/rpc.js'
import { browserWindowRegistryOn } from '../browser-windows/facility.js'
import { connectionRegistryOn } from '../connections/facility.js'
import { SWEEP_CONNECTIONS } from '../connections/scripts.js'
import { contextRegistryOn } from '../contexts/facility.js'
import { deduplicatorOn } from '../deduplicator/facility.js'
import { SWEEP_CLAIMS } from '../deduplicator/scripts.js'
import { commandDispatcherOn, type RedisDispatcherOptions } from '../delivery/facility.js'
import { messageHistoryOn } from '../history/facility.js'
import { retainingOn } from '../history/retaining.js'
import { SWEEP_TABLES } from '../presence/sweep.js'
import { rpcCorrelatorOn } from '../rpc/facility.js'
import { runScript } from '../store/script.js'
import { createStore, type StoreOptions } from '../store/store.js'

export interface RedisFacilitiesOptions extends StoreOptions {
  /** What connections and delivery records say of this node; unique in the deployment. @default random */
  nodeId?: string
  /** Ids of connections and spilled payloads. @default crypto.randomUUID */
  newId?: () => string
  /** Where payloads go that are too large for their message. */
  spill?: SpillStore
  connections?: ConnectionOptions
  history?: HistoryOptions
  rpc?: RpcOptions
  deduplicator?: ClaimOptions
  dispatcher?: RedisDispatcherOptions
  contexts?: ReportedOptions
  browserWindows?: ReportedOptions
}

/** The live objects of one node: what its host writes to. Other nodes and observers see the same through the store. */
export type RedisFacilities = ReturnType<typeof createRedisFacilities>

/**
 * All facilities of one node. They share one bound on unanswered commands. `close()` ends the node's own loops and
 * connections; the host's client stays open, and what is in the store stays there.
 *
 * @example
 * const facilities = createRedisFacilities({ client, deploymentId: 'prod', nodeId: 'a' })
 */
export function createRedisFacilities(options: RedisFacilitiesOptions) {
  const { nodeId = crypto.randomUUID(), newId = () => crypto.randomUUID(), spill } = options
  const store = createStore(options)
  const connections = connectionRegistryOn(store, { newId, nodeId, ...options.connections })
  const kept = { newId, spill, ...options.history }
  const history = messageHistoryOn(store, kept)
  const rpc = rpcCorrelatorOn(store, { ...options.rpc })
  const claims = resolveBounds({ ...options.deduplicator }, CLAIM_BOUNDS)
  const deduplicator = deduplicatorOn(store, claims)
  const { heartbeatTimeoutMs, retentionMs, maxDisconnected } = resolveBounds(
    { ...options.connections },
    CONNECTION_BOUNDS,
  )
  const settling = { lost_after: heartbeatTimeoutMs, retention: retentionMs, max_ended: maxDisconnected }
  // What lives by silence leaves by the node's loop, not only when its family is next written to.
  const dispatcher = commandDispatcherOn(store, { nodeId, connections, ...options.dispatcher }, [
    (shard) => runScript(store, SWEEP_CONNECTIONS, shard, settling),
    (shard) => runScript(store, SWEEP_CLAIMS, shard, { ttl: claims.ttlMs }),
    (shard) => runScript(store, SWEEP_TABLES, shard, { tables: ['contexts', 'windows', 'calls'] }),
  ])
  const contexts = contextRegistryOn(store, { ...options.contexts })
  const browserWindows = browserWindowRegistryOn(store, { ...options.browserWindows })
  // Claimed and retained in one step: a node that dies between the two would leave a claim without a message.
  const ingest: Ingest = createIngestOver(connections, retainingOn(store, kept, claims))
  return {
    connections,
    history,
    rpc,
    deduplicator,
    dispatcher,
    contexts,
    browserWindows,
    ingest,
    /** Ends within 5 s, whatever hooks and the store do; resolves to how many waiters and calls the store could not be told of. */
    close: (): Promise<Ending> => endTogether([dispatcher.close(), rpc.close()]),
  }
}
