/** The routes of the connections family. */
import {
  ChurnFilter,
  ClientEventAnswer,
  ClientEventFilter,
  ConnectionAnswer,
  ConnectionChurnAnswer,
  ConnectionEventAnswer,
  ConnectionQuery,
} from '../contract/connections.js'
import { pageSchema } from '../contract/page.js'
import { ConnectionCount, countConnections, countOfSilentNodes } from '../views/counts.js'
import { CHURN, CLIENT_EVENT, CONNECTION, CONNECTION_EVENT, complete, exampleTime, lastPage } from './examples.js'
import { diagnosticsRoute, routeSection, toFilter } from './route.js'

export const CONNECTION_ROUTES = routeSection('connections', 'Connections and what happened to them.', [
  diagnosticsRoute({
    path: '/connections',
    operationId: 'listConnections',
    summary: 'Connections, the newest first unless `order` says otherwise',
    requires: ['registry'],
    scopable: true,
    page: 'paged',
    order: 'newest',
    query: ConnectionQuery,
    response: pageSchema(ConnectionAnswer),
    example: lastPage(CONNECTION),
    read: ({ registry }, { filter, page }, view) =>
      registry.listConnections(toFilter('last_seen_before', filter, view), page, view.ctx),
  }),
  diagnosticsRoute({
    path: '/connections/count',
    operationId: 'countConnections',
    summary: 'How many connections there are',
    // A node turns silent by the passing of time.
    unversioned: true,
    requires: ['registry'],
    scopable: true,
    query: ConnectionQuery,
    response: ConnectionCount,
    example: {
      total: 3,
      by_status: { connected: 2, disconnected: 1 },
      by_client_type: { browser: 2, console: 1, mobile: 0, web: 0 },
      of_silent_nodes: 0,
      completeness: complete({ registry: 0 }),
      observed_at: exampleTime(30),
    },
    async read(inspectors, { filter: query }, view) {
      const filter = toFilter('last_seen_before', query, view)
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
    requires: ['connection_churn'],
    query: ChurnFilter,
    response: ConnectionChurnAnswer,
    example: CHURN,
    read: ({ registry }, { filter }, { ctx }) => registry.connectionChurn?.(filter, ctx),
  }),
  diagnosticsRoute({
    path: '/connections/events',
    operationId: 'listConnectionEvents',
    summary: 'Connects, disconnects and takeovers of all clients, newest first',
    requires: ['connection_events'],
    scopable: true,
    page: 'paged',
    query: ClientEventFilter,
    response: pageSchema(ClientEventAnswer),
    example: lastPage(CLIENT_EVENT),
    read: ({ registry }, { filter, page }, { ctx }) => registry.listConnectionEvents?.(filter, page, ctx),
  }),
  diagnosticsRoute({
    path: '/connections/{connection_id}',
    operationId: 'getConnection',
    record: true,
    summary: 'One connection',
    requires: ['registry'],
    scopable: true,
    response: ConnectionAnswer,
    example: CONNECTION,
    read: ({ registry }, { params }, { ctx }) => registry.getConnection(params.connection_id, ctx),
  }),
  diagnosticsRoute({
    path: '/connections/{connection_id}/history',
    operationId: 'listConnectionHistory',
    record: true,
    summary: 'What happened to one connection, oldest first',
    requires: ['registry_connection_history'],
    scopable: true,
    page: 'paged',
    response: pageSchema(ConnectionEventAnswer),
    example: lastPage(CONNECTION_EVENT),
    read: ({ registry }, { params, page }, { ctx }) =>
      registry.listConnectionHistory?.(params.connection_id, page, ctx),
  }),
])
