/** The face of `relayscope/redis`: one deployment in a shared store, for its nodes and for whoever observes it. */
export { createRedisBrowserWindowRegistry, type RedisBrowserWindowRegistryOptions } from './browser-windows.js'
export type { IoRedisClient, Listener, NodeRedisClient, RedisClient } from './client.js'
export { type RedisCompositionOptions, redisComposition } from './composition.js'
export {
  type ConnectionLimits,
  createRedisConnectionRegistry,
  type RedisConnectionRegistryOptions,
} from './connections.js'
export { createRedisContextRegistry, type RedisContextRegistryOptions } from './contexts.js'
export { createRedisDeduplicator, type DeduplicatorLimits, type RedisDeduplicatorOptions } from './deduplicator.js'
export {
  createRedisCommandDispatcher,
  type DispatcherLimits,
  type RedisCommandDispatcher,
  type RedisCommandDispatcherOptions,
} from './delivery.js'
export { createRedisEventBus, type RedisEventBusOptions } from './event-bus.js'
export { createRedisFacilities, type RedisFacilities, type RedisFacilitiesOptions } from './facilities.js'
export { createFileBucket, createFileSpillStore, type FileBucketOptions } from './file-bucket.js'
export { createRedisMessageHistory, type HistoryLimits, type RedisMessageHistoryOptions } from './history.js'
export { createRedisIdempotencyStore, type RedisIdempotencyStoreOptions } from './idempotency.js'
export { type Bucket, createObjectSpillStore, type ObjectSpillStoreOptions } from './object-spill-store.js'
export type { LegacyStream } from './observe/delivery-legacy.js'
export type { ReportedOptions } from './reported.js'
export {
  createRedisRpcCorrelator,
  type RedisRpcCorrelator,
  type RedisRpcCorrelatorOptions,
  type RpcCounters,
  type RpcLimits,
} from './rpc.js'
export {
  createRedisSessionRegistry,
  type RedisSessionRegistry,
  type RedisSessionRegistryOptions,
} from './session-registry.js'
export { createRedisSiteRegistry, type RedisSiteRegistryOptions } from './site-registry.js'
export type { StoreOptions } from './store.js'
