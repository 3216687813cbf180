/** The routes of the contexts family. */
import { CONTEXT_FAMILY, ContextAnswer, ContextQuery } from '../contract/contexts.js'
import { pageSchema } from '../contract/page.js'
import { ContextCount, count } from '../views/counts.js'
import { complete, exampleTime, IDLE_WORKER, lastPage, WORKER } from './examples.js'
import { diagnosticsRoute, routeSection, toFilter } from './route.js'

export const CONTEXT_ROUTES = routeSection('contexts', 'Execution contexts.', [
  diagnosticsRoute({
    path: '/contexts',
    operationId: 'listContexts',
    summary: 'Execution contexts in their current state, the newest first unless `order` says otherwise',
    requires: ['context_registry'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: ContextQuery,
    response: pageSchema(ContextAnswer),
    example: lastPage(WORKER, IDLE_WORKER),
    read: ({ contextRegistry }, { filter, page }, view) =>
      contextRegistry.listContexts(toFilter('updated_before', filter, view), page, view.ctx),
  }),
  diagnosticsRoute({
    path: '/contexts/count',
    operationId: 'countContexts',
    summary: 'How many contexts there are',
    requires: ['context_registry'],
    scopable: true,
    query: ContextQuery,
    response: ContextCount,
    example: {
      total: 2,
      by_status: { active: 1, idle: 1, closed: 0, stale: 0 },
      by_client_type: { browser: 2, console: 0, mobile: 0, web: 0 },
      by_ownership: { 'user-owned': 0, worker: 2 },
      completeness: complete({ context_registry: 0 }),
      observed_at: exampleTime(30),
    },
    read({ contextRegistry }, { filter: query }, view) {
      const filter = toFilter('updated_before', query, view)
      return count(
        'context_registry',
        CONTEXT_FAMILY.counted,
        {
          exact: () => contextRegistry.countContexts?.(filter, view.ctx),
          entry: ContextAnswer,
          id: 'context_id',
          list: (page, ctx) => contextRegistry.listContexts(filter, page, ctx),
        },
        view,
      )
    },
  }),
  diagnosticsRoute({
    path: '/contexts/{context_id}',
    operationId: 'getContext',
    record: true,
    summary: 'One context',
    requires: ['context_registry'],
    scopable: true,
    response: ContextAnswer,
    example: WORKER,
    read: ({ contextRegistry }, { params }, { ctx }) => contextRegistry.getContext(params.context_id, ctx),
  }),
])
