/** The routes of the contexts family. */
import { ClientType } from '../contract/connections.js'
import { Context, ContextFilter, ContextStatus, Ownership } from '../contract/contexts.js'
import type { RouterLimits } from '../contract/limits.js'
import { pageOf } from '../contract/page.js'
import { ContextCount, count } from '../views/counts.js'
import { NoQuery, pageQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

export function contextRows(limits: RouterLimits): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/contexts',
      summary: 'Execution contexts in their current state',
      needs: ['context_registry'],
      query: pageQuery(limits).extend(ContextFilter.shape),
      response: pageOf(Context),
      ask: ({ contextRegistry }, { filter, page }, { ask }) => contextRegistry.listContexts(filter, page, ask),
    }),
    diagnosticsRow({
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
    diagnosticsRow({
      path: '/contexts/{context_id}',
      record: true,
      summary: 'One context',
      needs: ['context_registry'],
      query: NoQuery,
      response: Context,
      ask: ({ contextRegistry }, { params }, { ask }) => contextRegistry.getContext(params.context_id, ask),
    }),
  ]
}
