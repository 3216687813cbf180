/** The contract suite of a context registry's inspector. */
import { ClientType } from '../contract/connections.js'
import {
  Context,
  type ContextRegistryInspector,
  ContextStatus,
  countWorker,
  noWorkersIn,
  Ownership,
  tellContext,
} from '../contract/contexts.js'
import { countCases } from './counts.js'
import { ASK, type ContractCase, check, checkEqual } from './expect.js'
import { listCases, type MakeInspector, NOBODY, walk } from './lists.js'
import { userCases } from './users.js'

const FILTERS = ['user_id', 'client_id', 'client_type', 'status', 'ownership', 'window_id'] as const

/** Holds a context registry's inspector to its contract. `make` gives one with the same contexts each time. */
export function contextRegistryContract(make: MakeInspector<ContextRegistryInspector>): ContractCase[] {
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
      tell: tellContext,
    }),
    { name: 'countByWindow counts the workers of a window as a walk does', run: () => checkWindows(make) },
  ]
}

async function checkWindows(make: MakeInspector<ContextRegistryInspector>): Promise<void> {
  const contexts = await make()
  if (!contexts?.countByWindow) return
  const entries = await walk<Context>((page, ask) => contexts.listContexts({}, page, ask), 100, 'listContexts')
  const ids = [...new Set(entries.flatMap((entry) => entry.window_id ?? []))].slice(0, 499)
  const counted = new Map(
    (await contexts.countByWindow([...ids, NOBODY], ASK)).map((counts) => [counts.window_id, counts]),
  )
  for (const window_id of [...ids, NOBODY]) {
    const expected = noWorkersIn(window_id)
    for (const entry of entries) if (entry.window_id === window_id) countWorker(expected, entry)
    const found = counted.get(window_id)
    check(
      found !== undefined || expected.worker_count === 0,
      `countByWindow leaves out ${window_id}, which has workers`,
    )
    if (found) checkEqual(found, expected, 'countByWindow')
  }
}
