/** The public API of `relayscope/memory`: the facilities of one process. */
export type { DispatcherOptions } from '../internal/contract/delivery-rules.js'
export type { RpcCounters } from '../internal/contract/rpc.js'
export { type BrowserWindowRegistryOptions, createBrowserWindowRegistry } from './browser-windows.js'
export {
  createMemoryFacilities,
  type MemoryFacilities,
  type MemoryFacilitiesOptions,
} from './composition/facilities.js'
export {
  type InspectedBy,
  type InspectedFacilities,
  type MemoryCompositionOptions,
  memoryComposition,
} from './composition/inspectors.js'
export { type ConnectionRegistryOptions, createConnectionRegistry } from './connections/facility.js'
export { type ContextRegistryOptions, createContextRegistry } from './contexts.js'
export { createDeduplicator, type DeduplicatorOptions } from './deduplicator.js'
export { type CommandDispatcherOptions, createCommandDispatcher } from './delivery/facility.js'
export { createMessageHistory, type MessageHistoryOptions } from './history/facility.js'
export { createMemorySpillStore, type MemorySpillStoreOptions } from './history/spill-store.js'
export { createRpcCorrelator, type MemoryRpcCorrelator, type RpcCorrelatorOptions } from './rpc/facility.js'
