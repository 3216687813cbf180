/** The routes of the connections family. */
import { CONNECTION_FAMILY, Connection, ConnectionEvent, ConnectionFilter } from '../contract/connections.js'
import { pageOf } from '../contract/page.js'
import { ConnectionCount, count } from '../views/counts.js'
import { diagnosticsRoute, routesAbout } from './route.js'

export const CONNECTION_ROUTES = routesAbout('connections', 'Connections and what happened to them.', [
  diagnosticsRoute({
    path: '/connections',
    summary: 'Connections, newest registrations last',
    needs: ['registry'],
    narrows: true,
    page: 'paged',
    query: ConnectionFilter,
    response: pageOf(Connection),
    read: ({ registry }, { filter, page }, { ask }) => registry.listConnections(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/connections/count',
    summary: 'How many connections there are',
    needs: ['registry'],
    narrows: true,
    query: ConnectionFilter,
    response: ConnectionCount,
    read: ({ registry }, { filter }, view) =>
      count(
        'registry',
        CONNECTION_FAMILY.counted,
        {
          exact: () => registry.countConnections?.(filter, view.ask),
          entry: Connection,
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
    narrows: true,
    response: Connection,
    read: ({ registry }, { params }, { ask }) => registry.getConnection(params.connection_id, ask),
  }),
  diagnosticsRoute({
    path: '/connections/{connection_id}/history',
    record: true,
    summary: 'What happened to one connection, oldest first',
    needs: ['registry_connection_history'],
    narrows: true,
    page: 'paged',
    response: pageOf(ConnectionEvent),
    read: ({ registry }, { params, page }, { ask }) =>
      registry.listConnectionHistory?.(params.connection_id, page, ask),
  }),
])
