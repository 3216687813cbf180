/** All live objects of one process, wired to each other. */

import { type Ending, endTogether } from '../../async/ending.js'
import type { FacilityName } from '../../contract/families.js'
import { SPILL_STORE, type SpillStore } from '../../contract/history.js'
import { randomUuid } from '../../contract/ids.js'
import { createIngest, type Ingest } from '../../contract/ingest.js'
import { checkOptions, FUNCTION, optionsOf, type Shape, TEXT } from '../../contract/options.js'
import {
  BROWSER_WINDOW_REGISTRY_OPTIONS,
  type BrowserWindowRegistryOptions,
  createBrowserWindowRegistry,
} from '../browser-windows.js'
import {
  CONNECTION_REGISTRY_OPTIONS,
  type ConnectionRegistryOptions,
  createConnectionRegistry,
} from '../connections/facility.js'
import { CONTEXT_REGISTRY_OPTIONS, type ContextRegistryOptions, createContextRegistry } from '../contexts.js'
import {
  COOPERATIVE_SITE_EVENT_BUS_OPTIONS,
  type CooperativeSiteEventBusOptions,
  createCooperativeSiteEventBus,
} from '../cooperative/event-bus.js'
import {
  createSessionRegistry,
  SESSION_REGISTRY_OPTIONS,
  type SessionRegistryOptions,
} from '../cooperative/sessions.js'
import { createSiteRegistry, SITE_REGISTRY_OPTIONS, type SiteRegistryOptions } from '../cooperative/sites.js'
import { createSubscriptionRegistry } from '../cooperative/subscriptions.js'
import { createDeduplicator, DEDUPLICATOR_OPTIONS, type DeduplicatorOptions } from '../deduplicator.js'
import {
  COMMAND_DISPATCHER_OPTIONS,
  type CommandDispatcherOptions,
  createCommandDispatcher,
} from '../delivery/facility.js'
import { createMessageHistory, MESSAGE_HISTORY_OPTIONS, type MessageHistoryOptions } from '../history/facility.js'
import { createMemorySpillStore } from '../history/spill-store.js'
import { createRpcCorrelator, RPC_CORRELATOR_OPTIONS, type RpcCorrelatorOptions } from '../rpc/facility.js'

export interface MemoryFacilitiesOptions {
  /** Epoch ms, for all of them. @default Date.now */
  now?: () => number
  /** Ids of connections, sessions and spilled payloads. @default crypto.randomUUID */
  newId?: () => string
  /** What connections and delivery records say of the node; one process needs no name. */
  nodeId?: string
  /** Where payloads go that are too large for their message; the default takes 64 MiB of them in this process. @default createMemorySpillStore() */
  spill?: SpillStore
  connections?: ConnectionRegistryOptions
  history?: MessageHistoryOptions
  rpc?: RpcCorrelatorOptions
  deduplicator?: DeduplicatorOptions
  dispatcher?: CommandDispatcherOptions
  contexts?: ContextRegistryOptions
  browserWindows?: BrowserWindowRegistryOptions
  /** The event bus of cooperative sites. */
  bus?: CooperativeSiteEventBusOptions
  /** The registry of cooperative sites, which knows the bus. */
  sites?: SiteRegistryOptions
  /** The registry of their sessions, which asks them for the owner of a site. */
  sessions?: SessionRegistryOptions
}

const OPTIONS: Shape<MemoryFacilitiesOptions> = {
  now: FUNCTION,
  newId: FUNCTION,
  nodeId: TEXT,
  spill: SPILL_STORE,
  connections: optionsOf(CONNECTION_REGISTRY_OPTIONS),
  history: optionsOf(MESSAGE_HISTORY_OPTIONS),
  rpc: optionsOf(RPC_CORRELATOR_OPTIONS),
  deduplicator: optionsOf(DEDUPLICATOR_OPTIONS),
  dispatcher: optionsOf(COMMAND_DISPATCHER_OPTIONS),
  contexts: optionsOf(CONTEXT_REGISTRY_OPTIONS),
  browserWindows: optionsOf(BROWSER_WINDOW_REGISTRY_OPTIONS),
  bus: optionsOf(COOPERATIVE_SITE_EVENT_BUS_OPTIONS),
  sites: optionsOf(SITE_REGISTRY_OPTIONS),
  sessions: optionsOf(SESSION_REGISTRY_OPTIONS),
}

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
  checkOptions(options, OPTIONS)
  const { now = Date.now, newId = randomUuid, nodeId } = options
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
    async close(): Promise<Ending> {
      const [ending] = await Promise.all([endTogether([dispatcher.close(), rpc.close()]), bus.close()])
      return ending
    },
  } satisfies Record<FacilityName | 'bus' | 'ingest' | 'close', unknown>
}
