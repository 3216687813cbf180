/** The live context registry of a deployment in a shared store, for the hosts that write to it. */
import {
  type Context,
  type ContextRegistry,
  type ContextRegistryInspector,
  ReportContextInput,
} from '../../contract/contexts.js'
import { Id } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { createReported, type ReportedOptions, toRecord } from '../presence/facility.js'
import { ASSIGN, RELEASE } from '../presence/scripts.js'
import type { Reply } from '../store/reply.js'
import { createStore, type Store, type StoreOptions } from '../store/store.js'
import { CONTEXTS, createContextInspector } from './inspector.js'

export type RedisContextRegistryOptions = StoreOptions & ReportedOptions

/**
 * A context registry in Redis. A closed context gives up its task.
 *
 * @example
 * const contexts = createRedisContextRegistry({ client, deploymentId: 'prod' })
 */
export function createRedisContextRegistry(
  options: RedisContextRegistryOptions,
): Inspected<ContextRegistry, ContextRegistryInspector> {
  return contextRegistryOn(createStore(options), options)
}

export function contextRegistryOn(
  store: Store,
  options: ReportedOptions,
): Inspected<ContextRegistry, ContextRegistryInspector> {
  const reported = createReported(store, CONTEXTS.name, 'window_id', options)

  const toContext = (reply: Reply): Context => toRecord(store, CONTEXTS, reply)
  const toContextOrNull = (reply: Reply) => (reply === null ? null : toContext(reply))

  return {
    inspector: createContextInspector(store),
    async report(given) {
      const input = parseInput(ReportContextInput, given)
      return toContext(await reported.report(input.context_id, { ...input, task_id: null, task_assigned_at: null }))
    },
    close: (contextId) => reported.close(contextId, { task_id: null, task_assigned_at: null }),
    async assignTask(contextId, taskId) {
      return toContextOrNull(
        await reported.inEveryShard(ASSIGN, contextId, parseInput(Id, taskId), crypto.randomUUID()),
      )
    },
    async releaseTask(contextId) {
      return toContextOrNull(await reported.inEveryShard(RELEASE, contextId, crypto.randomUUID()))
    },
  }
}
