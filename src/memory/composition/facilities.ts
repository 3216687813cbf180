/** All live objects of one process, wired to each other. */

import { type CloseResult, endTogether } from '../../async/ending.js'
import type { FacilityName } from '../../contract/families.js'
import { SPILL_STORE, type SpillStore } from '../../contract/history.js'
import { randomUuid } from '../../contract/ids.js'
import { createIngest, type Ingest } from '../../contract/ingest.js'
import { defineOptions, func, type Input, optionsOf, readOptions, text } from '../../contract/options.js'
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

export const MemoryFacilitiesOptions = defineOptions({
  /** Epoch ms, for all of them. @default Date.now */
  now: func<() => number>().default(() => Date.now),
  /** Ids of connections, sessions and spilled payloads. @default crypto.randomUUID */
  newId: func<() => string>().default(() => randomUuid),
  /** What connections and delivery records say of the node; one process needs no name. */
  nodeId: text().optional(),
  /** Where payloads go that are too large for their message; the default takes 64 MiB of them in this process. @default createMemorySpillStore() */
  spill: SPILL_STORE.optional(),
  connections: optionsOf<ConnectionRegistryOptions>(ConnectionRegistryOptions),
  history: optionsOf<MessageHistoryOptions>(MessageHistoryOptions),
  rpc: optionsOf<RpcCorrelatorOptions>(RpcCorrelatorOptions),
  deduplicator: optionsOf<DeduplicatorOptions>(DeduplicatorOptions),
  dispatcher: optionsOf<CommandDispatcherOptions>(CommandDispatcherOptions),
  contexts: optionsOf<ContextRegistryOptions>(ContextRegistryOptions),
  browserWindows: optionsOf<BrowserWindowRegistryOptions>(BrowserWindowRegistryOptions),
  /** The event bus of cooperative sites. */
  bus: optionsOf<CooperativeSiteEventBusOptions>(CooperativeSiteEventBusOptions),
  /** The registry of cooperative sites, which knows the bus. */
  sites: optionsOf<SiteRegistryOptions>(SiteRegistryOptions),
  /** The registry of their sessions, which asks them for the owner of a site. */
  sessions: optionsOf<SessionRegistryOptions>(SessionRegistryOptions),
})
export interface MemoryFacilitiesOptions extends Input<typeof MemoryFacilitiesOptions> {}

/** The live objects of one process: what a host writes to, and what `memoryComposition` looks through at. */
export type MemoryFacilities = ReturnType<typeof createMemoryFacilities>

/** Bytes of large payloads in the process itself: half of what its store takes, so that the history alone decides who goes. */
const SPILLED_BYTES = 64 * 1_048_576

const spilling = (spill: SpillStore | undefined) =>
  spill === undefined ? { spill: createMemorySpillStore(), maxSpilledBytes: SPILLED_BYTES } : { spill }

/**
 * All facilities of one process. The correlator and the dispatcher know the connections, so that both tell a current
 * instance from a fenced one; `ingest` fences, deduplicates and retains a message; the sites know the bus, and so their last
 * events. `close()` ends the dispatcher's loop and every subscription of the bus, and rejects every pending call.
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
    /** Waits for nobody. */
    async close(): Promise<CloseResult> {
      const [ending] = await Promise.all([endTogether([dispatcher.close(), rpc.close()]), bus.close()])
      return ending
    },
  } satisfies Record<FacilityName | 'bus' | 'ingest' | 'close', unknown>
}
