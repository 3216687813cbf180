/** The public API of `relayscope/redis`: one deployment in a shared store, for its nodes and for observers. */

export type { ConnectionOptions } from '../internal/contract/connections.js'
export type { PresenceOptions } from '../internal/contract/contexts.js'
export type { ClaimOptions } from '../internal/contract/deduplicator.js'
export type { DispatcherOptions } from '../internal/contract/delivery-rules.js'
export type { EventBusOptions } from '../internal/contract/event-bus.js'
export type { HistoryOptions } from '../internal/contract/history.js'
export type { RpcCounters, RpcOptions } from '../internal/contract/rpc.js'
export type { SessionOptions } from '../internal/contract/sessions.js'
export type { SiteOptions } from '../internal/contract/sites.js'
export type { ReportedOptions, SubscriptionOptions } from '../internal/contract/subscriptions.js'
export {
  type Bucket,
  createFileSpillStore,
  createObjectSpillStore,
  type FileBucketOptions,
  type ObjectSpillStoreOptions,
} from '../internal/spill/object-store.js'
export { createRedisBrowserWindowRegistry, type RedisBrowserWindowRegistryOptions } from './browser-windows/facility.js'
export { createRedisFacilities, type RedisFacilities, type RedisFacilitiesOptions } from './composition/facilities.js'
export { type RedisCompositionOptions, redisComposition } from './composition/inspectors.js'
export {
  createRedisConnectionRegistry,
  type RedisConnectionRegistryOptions,
} from './connections/facility.js'
export { createRedisContextRegistry, type RedisContextRegistryOptions } from './contexts/facility.js'
export {
  createRedisDeduplicator,
  type RedisDeduplicatorOptions,
} from './deduplicator/facility.js'
export {
  createRedisCommandDispatcher,
  type RedisCommandDispatcher,
  type RedisCommandDispatcherOptions,
  type RedisDispatcherOptions,
} from './delivery/facility.js'
export type { LegacyStream } from './delivery/summary.js'
export { createRedisEventBus, type RedisEventBusOptions } from './event-bus/facility.js'
export { createRedisMessageHistory, type RedisMessageHistoryOptions } from './history/facility.js'
export { createRedisIdempotencyStore, type RedisIdempotencyStoreOptions } from './idempotency/facility.js'
export {
  createRedisRpcCorrelator,
  type RedisRpcCorrelator,
  type RedisRpcCorrelatorOptions,
} from './rpc/facility.js'
export {
  createRedisSessionRegistry,
  type RedisSessionRegistry,
  type RedisSessionRegistryOptions,
} from './sessions/facility.js'
export { createRedisSiteRegistry, type RedisSiteRegistryOptions } from './sites/facility.js'
export type { IoRedisClient, Listener, NodeRedisClient, RedisClient } from './store/client.js'
export type { StoreOptions } from './store/store.js'
export { type WatchLinkOptions, watchLink } from './store/watch-link.js'
export {
  createRedisSubscriptionRegistry,
  type RedisSubscriptionRegistry,
  type RedisSubscriptionRegistryOptions,
} from './subscriptions/facility.js'
