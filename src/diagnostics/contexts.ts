/** The routes of the contexts family. */
import { CONTEXT_FAMILY, Context, ContextFilter } from '../contract/contexts.js'
import { pageOf } from '../contract/page.js'
import { ContextCount, count } from '../views/counts.js'
import { diagnosticsRoute, routesAbout } from './route.js'

export const CONTEXT_ROUTES = routesAbout('contexts', 'Execution contexts.', [
  diagnosticsRoute({
    path: '/contexts',
    summary: 'Execution contexts in their current state',
    needs: ['context_registry'],
    narrows: true,
    page: 'paged',
    query: ContextFilter,
    response: pageOf(Context),
    read: ({ contextRegistry }, { filter, page }, { ask }) => contextRegistry.listContexts(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/contexts/count',
    summary: 'How many contexts there are',
    needs: ['context_registry'],
    narrows: true,
    query: ContextFilter,
    response: ContextCount,
    read: ({ contextRegistry }, { filter }, view) =>
      count(
        'context_registry',
        CONTEXT_FAMILY.counted,
        {
          exact: () => contextRegistry.countContexts?.(filter, view.ask),
          entry: Context,
          list: (page, ask) => contextRegistry.listContexts(filter, page, ask),
        },
        view,
      ),
  }),
  diagnosticsRoute({
    path: '/contexts/{context_id}',
    record: true,
    summary: 'One context',
    needs: ['context_registry'],
    narrows: true,
    response: Context,
    read: ({ contextRegistry }, { params }, { ask }) => contextRegistry.getContext(params.context_id, ask),
  }),
])
