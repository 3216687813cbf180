/** The routes of the connections family. */
import { ChurnFilter, Connection, ConnectionChurn, ConnectionEvent, ConnectionFilter } from '../contract/connections.js'
import { pageOf } from '../contract/page.js'
import { ConnectionCount, countConnections, countOfSilentNodes } from '../views/counts.js'
import { at, CHURN, CONNECTION, CONNECTION_EVENT, complete, lastPage } from './examples.js'
import { diagnosticsRoute, routesAbout } from './route.js'

export const CONNECTION_ROUTES = routesAbout('connections', 'Connections and what happened to them.', [
  diagnosticsRoute({
    path: '/connections',
    operationId: 'listConnections',
    summary: 'Connections, newest registrations last',
    needs: ['registry'],
    narrows: true,
    page: 'paged',
    query: ConnectionFilter,
    response: pageOf(Connection),
    example: lastPage(CONNECTION),
    read: ({ registry }, { filter, page }, { ask }) => registry.listConnections(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/connections/count',
    operationId: 'countConnections',
    summary: 'How many connections there are',
    // A node falls silent by itself.
    unversioned: true,
    needs: ['registry'],
    narrows: true,
    query: ConnectionFilter,
    response: ConnectionCount,
    example: {
      total: 3,
      by_status: { connected: 2, disconnected: 1 },
      by_client_type: { browser: 2, console: 1, mobile: 0, web: 0 },
      of_silent_nodes: 0,
      completeness: complete({ registry: 0 }),
      observed_at: at(30),
    },
    async read(inspectors, { filter }, view) {
      const [counts, of_silent_nodes] = await Promise.all([
        countConnections(inspectors.registry, filter, view),
        countOfSilentNodes(inspectors, filter, view),
      ])
      return { ...counts, of_silent_nodes }
    },
  }),
  diagnosticsRoute({
    path: '/connections/churn',
    unversioned: true,
    operationId: 'getConnectionChurn',
    summary: 'How many connections came and went, minute by minute',
    needs: ['connection_churn'],
    query: ChurnFilter,
    response: ConnectionChurn,
    example: CHURN,
    read: ({ registry }, { filter }, { ask }) => registry.connectionChurn?.(filter, ask),
  }),
  diagnosticsRoute({
    path: '/connections/{connection_id}',
    operationId: 'getConnection',
    record: true,
    summary: 'One connection',
    needs: ['registry'],
    narrows: true,
    response: Connection,
    example: CONNECTION,
    read: ({ registry }, { params }, { ask }) => registry.getConnection(params.connection_id, ask),
  }),
  diagnosticsRoute({
    path: '/connections/{connection_id}/history',
    operationId: 'listConnectionHistory',
    record: true,
    summary: 'What happened to one connection, oldest first',
    needs: ['registry_connection_history'],
    narrows: true,
    page: 'paged',
    response: pageOf(ConnectionEvent),
    example: lastPage(CONNECTION_EVENT),
    read: ({ registry }, { params, page }, { ask }) =>
      registry.listConnectionHistory?.(params.connection_id, page, ask),
  }),
])
