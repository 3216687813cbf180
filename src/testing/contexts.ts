/** The contract suite of a context registry's inspector. */
import { ClientType } from '../contract/connections.js'
import { Context, type ContextRegistryInspector, ContextStatus, Ownership } from '../contract/contexts.js'
import { countCases } from './counts.js'
import { ASK, type ContractCase, check, checkEqual } from './expect.js'
import { listCases, type Make, NOBODY, walk } from './lists.js'
import { namesOf, tallyOf, userCases } from './users.js'

const FILTERS = ['user_id', 'client_id', 'client_type', 'status', 'ownership', 'window_id'] as const

/** Holds a context registry's inspector to its contract. `make` gives one with the same contexts each time. */
export function contextRegistryContract(make: Make<ContextRegistryInspector>): ContractCase[] {
  return [
    ...listCases<ContextRegistryInspector, Context>(make, {
      name: 'listContexts',
      list: (contexts, filter) => (page, ask) => contexts.listContexts(filter as object, page, ask),
      item: Context,
      id: 'context_id',
      filters: FILTERS,
      get: (contexts, id, ask) => contexts.getContext(id, ask),
    }),
    ...countCases<ContextRegistryInspector, Context>(make, {
      name: 'countContexts',
      list: (contexts, filter, page, ask) => contexts.listContexts(filter as object, page, ask),
      count: (contexts, filter, ask) => contexts.countContexts?.(filter as object, ask),
      by: { status: ContextStatus, client_type: ClientType, ownership: Ownership },
      filters: FILTERS,
    }),
    ...userCases<ContextRegistryInspector, Context>(make, {
      list: (contexts, page, ask) => contexts.listContexts({}, page, ask),
      partOf: (entries) => ({
        observed_contexts: entries.length,
        contexts_by_status: tallyOf(entries, 'status'),
        observed_client_types: namesOf(entries.map((entry) => entry.client_type)),
        observed_client_ids: namesOf(entries.map((entry) => entry.client_id)),
      }),
    }),
    { name: 'countByWindow counts the workers of a window as a walk does', run: () => checkWindows(make) },
  ]
}

async function checkWindows(make: Make<ContextRegistryInspector>): Promise<void> {
  const contexts = await make()
  if (!contexts?.countByWindow) return
  const entries = await walk<Context>((page, ask) => contexts.listContexts({}, page, ask), 100, 'listContexts')
  const ids = [...new Set(entries.flatMap((entry) => entry.window_id ?? []))].slice(0, 499)
  const counted = new Map(
    (await contexts.countByWindow([...ids, NOBODY], ASK)).map((counts) => [counts.window_id, counts]),
  )
  for (const window_id of [...ids, NOBODY]) {
    const workers = entries.filter(
      (entry) =>
        entry.window_id === window_id &&
        entry.ownership === 'worker' &&
        entry.status !== 'closed' &&
        entry.status !== 'stale',
    )
    const expected = {
      window_id,
      worker_count: workers.length,
      busy_count: workers.filter((worker) => worker.task_id !== null).length,
      idle_count: workers.filter((worker) => worker.task_id === null && worker.status === 'idle').length,
    }
    const found = counted.get(window_id)
    check(found !== undefined || workers.length === 0, `countByWindow leaves out ${window_id}, which has workers`)
    if (found) checkEqual(found, expected, 'countByWindow')
  }
}
