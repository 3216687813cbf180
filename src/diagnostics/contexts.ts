/** The routes of the contexts family. */
import { ClientType } from '../contract/connections.js'
import { Context, ContextFilter, ContextStatus, Ownership } from '../contract/contexts.js'
import { pageOf } from '../contract/page.js'
import { ContextCount, count } from '../views/counts.js'
import { type DiagnosticsRoute, diagnosticsRoute } from './route.js'

export const CONTEXT_ROUTES: readonly DiagnosticsRoute[] = [
  diagnosticsRoute({
    path: '/contexts',
    summary: 'Execution contexts in their current state',
    needs: ['context_registry'],
    page: 'paged',
    query: ContextFilter,
    response: pageOf(Context),
    ask: ({ contextRegistry }, { filter, page }, { ask }) => contextRegistry.listContexts(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/contexts/count',
    summary: 'How many contexts there are',
    needs: ['context_registry'],
    query: ContextFilter,
    response: ContextCount,
    ask: ({ contextRegistry }, { filter }, view) =>
      count(
        'context_registry',
        { status: ContextStatus, client_type: ClientType, ownership: Ownership },
        {
          exact: () => contextRegistry.countContexts?.(filter, view.ask),
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
    response: Context,
    ask: ({ contextRegistry }, { params }, { ask }) => contextRegistry.getContext(params.context_id, ask),
  }),
]
