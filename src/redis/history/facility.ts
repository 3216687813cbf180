/** The live message history of a deployment in a shared store, for the hosts that write to it. */
import type { HistoryInspector, MessageHistory } from '../../contract/history.js'
import { HISTORY_OPTIONS, type HistoryOptions } from '../../contract/history-bounds.js'
import type { Inspected } from '../../contract/inspectors.js'
import { createStore, STORE_OPTIONS, type Store, type StoreOptions } from '../store/store.js'
import { createHistoryInspector } from './inspector.js'
import { retainOn } from './retain.js'

export type RedisMessageHistoryOptions = StoreOptions & HistoryOptions

/**
 * A message history in Redis, with the payloads that are too large for it in a spill store.
 *
 * @example
 * const history = createRedisMessageHistory({ client, deploymentId: 'prod', spill })
 */
export function createRedisMessageHistory(
  options: RedisMessageHistoryOptions,
): Inspected<Required<MessageHistory>, HistoryInspector> {
  return messageHistoryOn(createStore(options, { ...STORE_OPTIONS, ...HISTORY_OPTIONS }), options)
}

export function messageHistoryOn(
  store: Store,
  options: HistoryOptions,
): Inspected<Required<MessageHistory>, HistoryInspector> {
  const { spill, hydrationMs } = options
  const retain = retainOn(store, options)
  return {
    inspector: createHistoryInspector(store, { spill, hydrationMs }),
    retain,
    append: async (given) => (await retain(given)).message,
  }
}
