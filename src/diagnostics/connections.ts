/** The routes of the connections family. */
import { ClientType, Connection, ConnectionEvent, ConnectionFilter, ConnectionStatus } from '../contract/connections.js'
import type { RouterLimits } from '../contract/limits.js'
import { pageOf } from '../contract/page.js'
import { ConnectionCount, count } from '../views/counts.js'
import { NoQuery, pageQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

export function connectionRows(limits: RouterLimits): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/connections',
      summary: 'Connections, newest registrations last',
      needs: ['registry'],
      query: pageQuery(limits).extend(ConnectionFilter.shape),
      response: pageOf(Connection),
      ask: ({ registry }, { filter, page }, { ask }) => registry.listConnections(filter, page, ask),
    }),
    diagnosticsRow({
      path: '/connections/count',
      summary: 'How many connections there are',
      needs: ['registry'],
      query: ConnectionFilter,
      response: ConnectionCount,
      ask: ({ registry }, { filter }, view) =>
        count(
          'registry',
          { status: ConnectionStatus, client_type: ClientType },
          {
            exact: () => registry.countConnections?.(filter, view.ask),
            list: (page, ask) => registry.listConnections(filter, page, ask),
          },
          view,
        ),
    }),
    diagnosticsRow({
      path: '/connections/{connection_id}',
      record: true,
      summary: 'One connection',
      needs: ['registry'],
      query: NoQuery,
      response: Connection,
      ask: ({ registry }, { params }, { ask }) => registry.getConnection(params.connection_id, ask),
    }),
    diagnosticsRow({
      path: '/connections/{connection_id}/history',
      record: true,
      summary: 'What happened to one connection, oldest first',
      needs: ['registry_connection_history'],
      query: pageQuery(limits),
      response: pageOf(ConnectionEvent),
      ask: ({ registry }, { params, page }, { ask }) =>
        registry.listConnectionHistory?.(params.connection_id, page, ask),
    }),
  ]
}
