/** All facilities of one process, connected to each other. */

import { type CloseResult, endTogether } from '../../internal/async/deadline.js'
import type { FacilityName } from '../../internal/contract/families.js'
import { SPILL_STORE, type SpillStore } from '../../internal/contract/history.js'
import { randomUuid } from '../../internal/contract/ids.js'
import { createIngest, type Ingest } from '../../internal/contract/ingest.js'
import { defineOptions, func, type Input, optionsOf, readOptions, text } from '../../internal/contract/options.js'
import { BrowserWindowRegistryOptions, createBrowserWindowRegistry } from '../browser-windows.js'
import { ConnectionRegistryOptions, createConnectionRegistry } from '../connections/facility.js'
import { ContextRegistryOptions, createContextRegistry } from '../contexts.js'
import { CooperativeSiteEventBusOptions, createCooperativeSiteEventBus } from '../cooperative/event-bus.js'
import { createSessionRegistry, SessionRegistryOptions } from '../cooperative/sessions.js'
import { createSiteRegistry, SiteRegistryOptions } from '../cooperative/sites.js'
import { createSubscriptionRegistry } from '../cooperative/subscriptions.js'
import { createDeduplicator, DeduplicatorOptions } from '../deduplicator.js'
import { CommandDispatcherOptions, createCommandDispatcher } from '../delivery/facility.js'
import { createMessageHistory, MessageHistoryOptions } from '../history/facility.js'
import { createMemorySpillStore } from '../history/spill-store.js'
import { createRpcCorrelator, RpcCorrelatorOptions } from '../rpc/facility.js'

/** Options of `createMemoryFacilities`. */
export const MemoryFacilitiesOptions = defineOptions({
  /** Clock of all facilities: returns epoch ms. @default Date.now */
  now: func<() => number>().default(() => Date.now),
  /** Creates ids of connections, sessions and spilled payloads. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
  /** Id of the node in connections and delivery records; a single process needs none. @default none */
  nodeId: text().optional(),
  /**
   * Store for payloads that are too large for their message. The default keeps up to 64 MiB of them in this process.
   * @default createMemorySpillStore()
   */
  spill: SPILL_STORE.optional(),
  /** Options of the connection registry. */
  connections: optionsOf<ConnectionRegistryOptions>(ConnectionRegistryOptions),
  /** Options of the message history. */
  history: optionsOf<MessageHistoryOptions>(MessageHistoryOptions),
  /** Options of the RPC correlator. */
  rpc: optionsOf<RpcCorrelatorOptions>(RpcCorrelatorOptions),
  /** Options of the deduplicator. */
  deduplicator: optionsOf<DeduplicatorOptions>(DeduplicatorOptions),
  /** Options of the command dispatcher. */
  dispatcher: optionsOf<CommandDispatcherOptions>(CommandDispatcherOptions),
  /** Options of the context registry. */
  contexts: optionsOf<ContextRegistryOptions>(ContextRegistryOptions),
  /** Options of the browser-window registry. */
  browserWindows: optionsOf<BrowserWindowRegistryOptions>(BrowserWindowRegistryOptions),
  /** Options of the event bus of cooperative sites. */
  bus: optionsOf<CooperativeSiteEventBusOptions>(CooperativeSiteEventBusOptions),
  /** Options of the registry of cooperative sites, which uses the bus. */
  sites: optionsOf<SiteRegistryOptions>(SiteRegistryOptions),
  /** Options of the session registry, which looks up the owner of a site in the site registry. */
  sessions: optionsOf<SessionRegistryOptions>(SessionRegistryOptions),
})
/** Options of `createMemoryFacilities`. */
export interface MemoryFacilitiesOptions extends Input<typeof MemoryFacilitiesOptions> {}

/** The facilities of one process, to which a host writes, and whose inspectors `memoryComposition` returns. */
export type MemoryFacilities = ReturnType<typeof createMemoryFacilities>

/**
 * Maximum size of large payloads in the process, in bytes: half of what the spill store accepts, so that only the
 * history evicts.
 */
const SPILLED_BYTES = 64 * 1_048_576

const spilling = (spill: SpillStore | undefined) =>
  spill === undefined ? { spill: createMemorySpillStore(), maxSpilledBytes: SPILLED_BYTES } : { spill }

/**
 * Creates all facilities of one process. The correlator and the dispatcher use the connections, so that both reject
 * outdated instances; `ingest` checks the instance, deduplicates and retains a message; the sites show the last events
 * of the bus. `close()` ends the dispatcher's loop and every subscription of the bus, and rejects every pending call.
 *
 * @example
 * const facilities = createMemoryFacilities()
 * const { connections } = facilities // only what your host writes to
 * const router = createDiagnosticsRouter({ ...memoryComposition({ connections }), auth: apiKeyAuth(key) })
 */
export function createMemoryFacilities(options: MemoryFacilitiesOptions = {}) {
  const { now, newId, nodeId } = readOptions(MemoryFacilitiesOptions, options)
  const node = nodeId === undefined ? {} : { nodeId }
  const connections = createConnectionRegistry({ now, newId, ...node, ...options.connections })
  const history = createMessageHistory({ now, newId, ...spilling(options.spill), ...options.history })
  const rpc = createRpcCorrelator({ now, connections, ...options.rpc })
  const deduplicator = createDeduplicator({ now, ...options.deduplicator })
  const dispatcher = createCommandDispatcher({ now, ...node, connections, ...options.dispatcher })
  const contexts = createContextRegistry({ now, ...options.contexts })
  const browserWindows = createBrowserWindowRegistry({ now, ...options.browserWindows })
  const bus = createCooperativeSiteEventBus({ now, ...options.bus })
  const sites = createSiteRegistry({ now, bus, ...options.sites })
  const sessions = createSessionRegistry({ now, newId, sites, ...options.sessions })
  const subscriptions = createSubscriptionRegistry(node)
  const ingest: Ingest = createIngest({ connections, deduplicator, history })
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
    /** Ends all facilities. Does not wait for callers. */
    async close(): Promise<CloseResult> {
      const [ending] = await Promise.all([endTogether([dispatcher.close(), rpc.close()]), bus.close()])
      return ending
    },
  } satisfies Record<FacilityName | 'bus' | 'ingest' | 'close', unknown>
}
