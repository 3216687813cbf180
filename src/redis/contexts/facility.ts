/** The context registry of a deployment in a shared store, for hosts. */
import {
  type Context,
  type ContextRegistry,
  type ContextRegistryInspector,
  PresenceOptions,
  ReportContextInput,
} from '../../contract/contexts.js'
import type { Inspected } from '../../contract/families.js'
import { Id } from '../../contract/ids.js'
import { parseInput } from '../../contract/options.js'
import { ASSIGN_TASK, createPresence, RELEASE_TASK, type Shown, toRecord } from '../presence/facility.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { CONTEXTS, createContextInspector } from './inspector.js'

/** Options of `createRedisContextRegistry`. */
export type RedisContextRegistryOptions = StoreOptions & PresenceOptions

/**
 * Creates a context registry in Redis. Closing a context releases its task.
 *
 * @example
 * const contexts = createRedisContextRegistry({ client, deploymentId: 'prod' })
 */
export function createRedisContextRegistry(
  options: RedisContextRegistryOptions,
): Inspected<ContextRegistry, ContextRegistryInspector> {
  return contextRegistryOn(createStore(options, inStore(PresenceOptions)), options)
}

export function contextRegistryOn(
  store: Store,
  options: PresenceOptions,
): Inspected<ContextRegistry, ContextRegistryInspector> {
  const presence = createPresence(store, CONTEXTS.name, 'window_id', options)

  const toContext = (shown: Shown | null): Context => toRecord(store, CONTEXTS, shown)
  const toContextOrNull = (shown: Shown | null) => shown && toContext(shown)
  const changeOf = (id: string) => ({ t: CONTEXTS.name, id, attempt: crypto.randomUUID() })

  return {
    inspector: createContextInspector(store),
    async report(given) {
      const input = parseInput(ReportContextInput, given)
      return toContext(await presence.report(input.context_id, { ...input, task_id: null, task_assigned_at: null }))
    },
    close: (contextId) => presence.close(contextId, { task_id: null, task_assigned_at: null }),
    async assignTask(contextId, taskId) {
      const given = { ...changeOf(contextId), task: parseInput(Id, taskId) }
      return toContextOrNull(await presence.change(ASSIGN_TASK, given))
    },
    async releaseTask(contextId) {
      return toContextOrNull(await presence.change(RELEASE_TASK, changeOf(contextId)))
    },
  }
}
