/** The routes of the connections family. */
import { ClientType, Connection, ConnectionEvent, ConnectionFilter, ConnectionStatus } from '../contract/connections.js'
import { pageOf } from '../contract/page.js'
import { ConnectionCount, count } from '../views/counts.js'
import { type DiagnosticsRoute, diagnosticsRoute } from './route.js'

export const CONNECTION_ROUTES: readonly DiagnosticsRoute[] = [
  diagnosticsRoute({
    path: '/connections',
    summary: 'Connections, newest registrations last',
    needs: ['registry'],
    page: 'paged',
    query: ConnectionFilter,
    response: pageOf(Connection),
    ask: ({ registry }, { filter, page }, { ask }) => registry.listConnections(filter, page, ask),
  }),
  diagnosticsRoute({
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
  diagnosticsRoute({
    path: '/connections/{connection_id}',
    record: true,
    summary: 'One connection',
    needs: ['registry'],
    response: Connection,
    ask: ({ registry }, { params }, { ask }) => registry.getConnection(params.connection_id, ask),
  }),
  diagnosticsRoute({
    path: '/connections/{connection_id}/history',
    record: true,
    summary: 'What happened to one connection, oldest first',
    needs: ['registry_connection_history'],
    page: 'paged',
    response: pageOf(ConnectionEvent),
    ask: ({ registry }, { params, page }, { ask }) => registry.listConnectionHistory?.(params.connection_id, page, ask),
  }),
]
