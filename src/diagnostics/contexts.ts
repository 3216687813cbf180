/** The routes of the contexts family. */
import { CONTEXT_FAMILY, Context, ContextFilter } from '../contract/contexts.js'
import { pageOf } from '../contract/page.js'
import { ContextCount, count } from '../views/counts.js'
import { at, complete, IDLE_WORKER, lastPage, WORKER } from './examples.js'
import { diagnosticsRoute, routesAbout } from './route.js'

export const CONTEXT_ROUTES = routesAbout('contexts', 'Execution contexts.', [
  diagnosticsRoute({
    path: '/contexts',
    operationId: 'listContexts',
    summary: 'Execution contexts in their current state',
    needs: ['context_registry'],
    narrows: true,
    page: 'paged',
    query: ContextFilter,
    response: pageOf(Context),
    example: lastPage(WORKER, IDLE_WORKER),
    read: ({ contextRegistry }, { filter, page }, { ask }) => contextRegistry.listContexts(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/contexts/count',
    operationId: 'countContexts',
    summary: 'How many contexts there are',
    needs: ['context_registry'],
    narrows: true,
    query: ContextFilter,
    response: ContextCount,
    example: {
      total: 2,
      by_status: { active: 1, idle: 1, closed: 0, stale: 0 },
      by_client_type: { browser: 2, console: 0, mobile: 0, web: 0 },
      by_ownership: { 'user-owned': 0, worker: 2 },
      completeness: complete({ context_registry: 0 }),
      observed_at: at(30),
    },
    read: ({ contextRegistry }, { filter }, view) =>
      count(
        'context_registry',
        CONTEXT_FAMILY.counted,
        {
          exact: () => contextRegistry.countContexts?.(filter, view.ask),
          entry: Context,
          id: 'context_id',
          list: (page, ask) => contextRegistry.listContexts(filter, page, ask),
        },
        view,
      ),
  }),
  diagnosticsRoute({
    path: '/contexts/{context_id}',
    operationId: 'getContext',
    record: true,
    summary: 'One context',
    needs: ['context_registry'],
    narrows: true,
    response: Context,
    example: WORKER,
    read: ({ contextRegistry }, { params }, { ask }) => contextRegistry.getContext(params.context_id, ask),
  }),
])
