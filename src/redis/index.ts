/** The face of `relayscope/redis`: one deployment in a shared store, for its nodes and for whoever observes it. */
export { createRedisBrowserWindowRegistry, type RedisBrowserWindowRegistryOptions } from './browser-windows.js'
export type { IoRedisClient, NodeRedisClient, RedisClient } from './client.js'
export { type RedisCompositionOptions, redisComposition } from './composition.js'
export { createRedisConnectionRegistry, type RedisConnectionRegistryOptions } from './connections.js'
export { createRedisContextRegistry, type RedisContextRegistryOptions } from './contexts.js'
export { createRedisDeduplicator, type RedisDeduplicatorOptions } from './deduplicator.js'
export {
  createRedisCommandDispatcher,
  type RedisCommandDispatcher,
  type RedisCommandDispatcherOptions,
} from './delivery.js'
export { createRedisEventBus, type RedisEventBusOptions } from './event-bus.js'
export { createRedisFacilities, type RedisFacilities, type RedisFacilitiesOptions } from './facilities.js'
export { createFileBucket, createFileSpillStore, type FileBucketOptions } from './file-bucket.js'
export { createRedisMessageHistory, type RedisMessageHistoryOptions } from './history.js'
export { type Bucket, createObjectSpillStore, type ObjectSpillStoreOptions } from './object-spill-store.js'
export type { LegacyStream } from './observe/delivery-legacy.js'
export { createRedisRpcCorrelator, type RedisRpcCorrelator, type RedisRpcCorrelatorOptions } from './rpc.js'
export type { StoreOptions } from './store.js'
