/** The context registry of a deployment in a shared store, for hosts. */
import {
  type ContextRegistry,
  type ContextRegistryInspector,
  PresenceOptions,
} from '../../internal/contract/contexts.js'
import type { Inspected } from '../../internal/contract/families.js'
import { contextRules } from '../../internal/rules/presence.js'
import { presenceRecords } from '../presence/records.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { CONTEXTS, createContextInspector } from './inspector.js'

/** Options of `createRedisContextRegistry`. */
export type RedisContextRegistryOptions = StoreOptions & PresenceOptions

/**
 * Creates a context registry in Redis. Closing a context on purpose releases its task.
 *
 * @example
 * const contexts = createRedisContextRegistry({ client, deploymentId: 'prod' })
 */
export function createRedisContextRegistry(
  options: RedisContextRegistryOptions,
): Inspected<ContextRegistry, ContextRegistryInspector> {
  return contextRegistryOn(createStore(options, inStore(PresenceOptions)), options)
}

export const contextRegistryOn = (
  store: Store,
  options: PresenceOptions,
): Inspected<ContextRegistry, ContextRegistryInspector> => ({
  inspector: createContextInspector(store),
  ...contextRules(presenceRecords(store, CONTEXTS, options)),
})
