/** All facilities of one node over a shared store, connected to each other. */

import { type CloseResult, endTogether } from '../../internal/async/deadline.js'
import { publishCommands } from '../../internal/contract/channels.js'
import { ConnectionOptions } from '../../internal/contract/connections.js'
import { PresenceOptions } from '../../internal/contract/contexts.js'
import { ClaimOptions } from '../../internal/contract/deduplicator.js'
import { EventBusOptions } from '../../internal/contract/event-bus.js'
import type { FacilityName } from '../../internal/contract/families.js'
import { HistoryOptions, SPILL_STORE } from '../../internal/contract/history.js'
import { randomUuid } from '../../internal/contract/ids.js'
import { createIngestOver, type Ingest } from '../../internal/contract/ingest.js'
import { defineOptions, func, type Input, optionsOf, readParts, text } from '../../internal/contract/options.js'
import { RpcOptions } from '../../internal/contract/rpc.js'
import { SessionOptions } from '../../internal/contract/sessions.js'
import { SiteOptions } from '../../internal/contract/sites.js'
import { ReportedOptions } from '../../internal/contract/subscriptions.js'
import { browserWindowRegistryOn } from '../browser-windows/facility.js'
import { connectionRegistryOn, SWEEP_CONNECTIONS } from '../connections/facility.js'
import { contextRegistryOn } from '../contexts/facility.js'
import { deduplicatorOn, SWEEP_CLAIMS } from '../deduplicator/facility.js'
import { commandDispatcherOn, RedisDispatcherOptions } from '../delivery/facility.js'
import { eventBusOn } from '../event-bus/facility.js'
import { messageHistoryOn, retainOn } from '../history/facility.js'
import { SWEEP_TABLES } from '../presence/records.js'
import { rpcCorrelatorOn } from '../rpc/facility.js'
import { SWEEP_CALLS } from '../rpc/pending.js'
import { SWEEP_SESSIONS, sessionRegistryOn } from '../sessions/facility.js'
import { siteRegistryOn } from '../sites/facility.js'
import { runScript } from '../store/script.js'
import { createStore, inStore, type StoreOptions } from '../store/store.js'
import { warnAboutStore } from '../store/warnings.js'
import { subscriptionRegistryOn } from '../subscriptions/facility.js'

const OfNode = defineOptions({
  /** Id of this node in connections and delivery records; unique in the deployment. @default random */
  nodeId: text().optional(),
  /** Creates ids of connections, sessions and spilled payloads. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
  /** Store for payloads that are too large for their message. @default none: such messages are refused */
  spill: SPILL_STORE.optional(),
  /** Options of the connection registry. */
  connections: optionsOf<ConnectionOptions>(ConnectionOptions),
  /** Options of the message history. */
  history: optionsOf<HistoryOptions>(HistoryOptions),
  /** Options of the RPC correlator. */
  rpc: optionsOf<RpcOptions>(RpcOptions),
  /** Options of the deduplicator. */
  deduplicator: optionsOf<ClaimOptions>(ClaimOptions),
  /** Options of the command dispatcher. */
  dispatcher: optionsOf<RedisDispatcherOptions>(RedisDispatcherOptions),
  /** Options of the context registry. */
  contexts: optionsOf<PresenceOptions>(PresenceOptions),
  /** Options of the browser-window registry. */
  browserWindows: optionsOf<PresenceOptions>(PresenceOptions),
  /** Options of the event bus of cooperative sites. */
  bus: optionsOf<EventBusOptions>(EventBusOptions),
  /** Options of the registry of cooperative sites. */
  sites: optionsOf<SiteOptions>(SiteOptions),
  /** Options of the session registry. */
  sessions: optionsOf<SessionOptions>(SessionOptions),
  /** Options of the reports of viewer streams. */
  subscriptions: optionsOf<ReportedOptions>(ReportedOptions),
})
/** Options of `createRedisFacilities`. */
export interface RedisFacilitiesOptions extends StoreOptions, Input<typeof OfNode> {}

/** Per family, the tables whose rows only expire by their lease. The others are swept by scripts of their own. */
const TABLES: Record<FacilityName, readonly string[]> = {
  connections: [],
  contexts: ['contexts'],
  browserWindows: ['windows'],
  rpc: [],
  history: [],
  deduplicator: [],
  dispatcher: [],
  sites: [],
  sessions: [],
  subscriptions: ['subscriptions'],
}
const LEASED = Object.values(TABLES).flat()

/** The facilities of one node, to which its host writes. Other nodes and observers see the data through the store. */
export type RedisFacilities = ReturnType<typeof createRedisFacilities>

/**
 * Creates all facilities of one node. They share one limit on unanswered commands. `close()` ends the node's loops and
 * connections; your client stays open, and the data stays in the store.
 *
 * @example
 * const facilities = createRedisFacilities({ client, deploymentId: 'prod', nodeId: 'a' })
 */
export function createRedisFacilities(options: RedisFacilitiesOptions) {
  const store = createStore(options, inStore(OfNode))
  void warnAboutStore(store)
  const { nodeId = crypto.randomUUID(), newId, spill } = readParts(OfNode, options)
  const connections = connectionRegistryOn(store, { newId, nodeId, ...options.connections })
  const kept = { newId, spill, ...options.history }
  const history = messageHistoryOn(store, kept)
  const rpc = rpcCorrelatorOn(store, { ...options.rpc })
  const claims = readParts(ClaimOptions, { ...options.deduplicator })
  const deduplicator = deduplicatorOn(store, claims)
  const { heartbeatTimeoutMs, retentionMs, maxDisconnected } = readParts(ConnectionOptions, { ...options.connections })
  const sweepBounds = { lost_after: heartbeatTimeoutMs, retention: retentionMs, max_ended: maxDisconnected }
  const { maxSessions } = readParts(SessionOptions, { ...options.sessions })
  // Expired entries are removed by the node's loop, not only by the next write of their family.
  const dispatcher = publishCommands(
    commandDispatcherOn(store, { nodeId, connections, ...options.dispatcher }, [
      (shard) => runScript(store, SWEEP_CONNECTIONS, shard, sweepBounds),
      (shard) => runScript(store, SWEEP_CLAIMS, shard, { ttl: claims.ttlMs }),
      (shard) => runScript(store, SWEEP_CALLS, shard, {}),
      (shard) => runScript(store, SWEEP_SESSIONS, shard, { max_sessions: maxSessions }),
      (shard) => runScript(store, SWEEP_TABLES, shard, { tables: LEASED }),
    ]),
  )
  const contexts = contextRegistryOn(store, { ...options.contexts })
  const browserWindows = browserWindowRegistryOn(store, { ...options.browserWindows })
  const bus = eventBusOn(store, { ...options.bus })
  const sites = siteRegistryOn(store, { ...options.sites })
  const sessions = sessionRegistryOn(store, { newId, sites, ...options.sessions })
  const subscriptions = subscriptionRegistryOn(store, { nodeId, ...options.subscriptions })
  // Claimed and retained in one step: a node that dies in between would leave a claim without a message.
  const ingest: Ingest = createIngestOver(connections, retainOn(store, kept, claims))
  return {
    connections,
    history,
    rpc,
    deduplicator,
    dispatcher,
    contexts,
    browserWindows,
    bus,
    sites,
    sessions,
    subscriptions,
    ingest,
    /**
     * Ends within 5 s, even if hooks and the store stall. Resolves with the number of waiters and calls that could not
     * be removed from the store. Viewer streams that could not be removed expire.
     */
    async close(): Promise<CloseResult> {
      const [ending] = await Promise.all([
        endTogether([dispatcher.close(), rpc.close()]),
        bus.close(),
        sessions.disconnect(),
        subscriptions.close(),
      ])
      return ending
    },
  } satisfies Record<FacilityName | 'bus' | 'ingest' | 'close', unknown>
}
