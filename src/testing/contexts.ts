/** Contract suite of the context registry's inspector. */

import {
  CONTEXT_FAMILY,
  ContextAnswer,
  ContextFilter,
  type ContextInput,
  type ContextRegistryInspector,
  countWorker,
  noWorkersIn,
  type WindowCounts,
} from '../internal/contract/contexts.js'
import { answering, type Known } from './answering.js'
import { countCases } from './counts.js'
import {
  CLIENT,
  CONTEXT,
  type ContractCase,
  check,
  checkEqual,
  FAKE_TIME,
  fakePage,
  fill,
  find,
  type Make,
  notTested,
  type Partly,
  toCases,
} from './expect.js'
import { listCases, type MakeInspector, UNKNOWN_ID, userCases, walk } from './lists.js'

const TIMES = ['updated_before']
const FILTERS = ContextFilter.omit({ updated_before: true }).keyof().options

/**
 * Returns the contract suite of a context registry's inspector. `make` creates one with the same contexts each time.
 */
export function contextRegistryContract(given: MakeInspector<ContextRegistryInspector>): ContractCase[] {
  const make = answering(given)
  return toCases([
    ...listCases<Known<ContextRegistryInspector>, ContextAnswer>(make, {
      name: 'listContexts',
      ordered: true,
      list: (contexts, filter) => (page, ctx) => contexts.listContexts(filter as object, page, ctx),
      item: ContextAnswer,
      id: 'context_id',
      filters: FILTERS,
      times: TIMES,
      get: (contexts, id, ctx) => contexts.getContext(id, ctx),
    }),
    ...countCases<Known<ContextRegistryInspector>, ContextAnswer>(make, {
      name: 'countContexts',
      list: (contexts, filter, page, ctx) => contexts.listContexts(filter as object, page, ctx),
      count: (contexts, filter, ctx) => contexts.countContexts?.(filter as object, ctx),
      by: CONTEXT_FAMILY.counted,
      filters: FILTERS,
      times: TIMES,
    }),
    ...userCases(make, CONTEXT_FAMILY.users),
    { name: 'countByWindow returns the counts of a walk', run: () => checkWindows(make) },
  ])
}

async function checkWindows(make: MakeInspector<Known<ContextRegistryInspector>>): Promise<void> {
  const contexts = await make()
  if (!contexts?.countByWindow) return notTested('countByWindow is not implemented')
  const entries = await walk<ContextAnswer>((page, ctx) => contexts.listContexts({}, page, ctx), 100, 'listContexts')
  const ids = [...new Set(entries.flatMap((entry) => entry.window_id ?? []))].slice(0, 499)
  const counted = new Map(
    (await contexts.countByWindow([...ids, UNKNOWN_ID], CONTEXT)).map((counts: WindowCounts) => [
      counts.window_id,
      counts,
    ]),
  )
  for (const window_id of [...ids, UNKNOWN_ID]) {
    const expected = noWorkersIn(window_id)
    for (const entry of entries) if (entry.window_id === window_id) countWorker(expected, entry)
    const found = counted.get(window_id)
    check(
      found !== undefined || expected.worker_count === 0,
      `countByWindow does not return ${window_id}, which has workers`,
    )
    if (found) checkEqual(found, expected, 'countByWindow')
  }
}

/** Data of the fake context registry. */
export interface ContextWorld {
  /** Contexts. */
  contexts?: Partly<ContextInput>[]
}

const toContext: Make<ContextInput> = (given, place) =>
  fill(
    {
      ...CLIENT,
      context_id: `context-${place}`,
      instance_id: null,
      client_type: 'console',
      status: 'active',
      status_reason: null,
      ownership: given.task_id ? 'worker' : 'user-owned',
      window_id: null,
      task_id: null,
      task_assigned_at: given.task_id ? FAKE_TIME : null,
      created_at: FAKE_TIME,
      updated_at: FAKE_TIME,
    },
    given,
  )

export function fakeContexts(world: ContextWorld): ContextRegistryInspector | undefined {
  if (!world.contexts) return undefined
  return {
    listContexts: (filter, page) => fakePage(toContext, world.contexts, filter, page),
    getContext: (context_id) => find(toContext, world.contexts, { context_id }),
  }
}
