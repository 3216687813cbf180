/** The contract suite of a connection registry's inspector. */
import {
  ActionObservation,
  ClientType,
  Connection,
  ConnectionEvent,
  ConnectionStatus,
  type RegistryInspector,
  tellConnection,
} from '../contract/connections.js'
import { compareIds } from '../contract/ids.js'
import { countCases } from './counts.js'
import { ASK, type ContractCase, check, checkEqual, checkSchema } from './expect.js'
import { filtersIn, listCases, type MakeInspector, NO_PAGE, NOBODY, walk, walkAll } from './lists.js'
import { userCases } from './users.js'

const FILTERS = ['user_id', 'client_id', 'client_type', 'status'] as const

const connectionsOf = (registry: RegistryInspector) =>
  walk<Connection>((page, ask) => registry.listConnections({}, page, ask), 100, 'listConnections')

/** Holds a registry inspector to its contract. `make` gives one with the same connections each time. */
export function registryContract(make: MakeInspector<RegistryInspector>): ContractCase[] {
  return [
    ...listCases<RegistryInspector, Connection>(make, {
      name: 'listConnections',
      list: (registry, filter) => (page, ask) => registry.listConnections(filter, page, ask),
      item: Connection,
      id: 'connection_id',
      filters: FILTERS,
      get: (registry, id, ask) => registry.getConnection(id, ask),
    }),
    ...countCases<RegistryInspector, Connection>(make, {
      name: 'countConnections',
      list: (registry, filter, page, ask) => registry.listConnections(filter, page, ask),
      count: (registry, filter, ask) => registry.countConnections?.(filter, ask),
      by: { status: ConnectionStatus, client_type: ClientType },
      filters: FILTERS,
    }),
    ...userCases<RegistryInspector, Connection>(make, {
      list: (registry, page, ask) => registry.listConnections({}, page, ask),
      tell: tellConnection,
    }),
    { name: 'listConnectionHistory tells the steps of one connection, oldest first', run: () => checkHistory(make) },
    { name: 'listActions lists by name what connected connections offer', run: () => checkActions(make) },
  ]
}

async function checkHistory(make: MakeInspector<RegistryInspector>): Promise<void> {
  const registry = await make()
  if (!registry?.listConnectionHistory) return
  const eventsOf = (id: string) =>
    walkAll<ConnectionEvent>(
      async (page, ask) => (await registry.listConnectionHistory?.(id, page, ask)) ?? NO_PAGE,
      'listConnectionHistory',
    )
  for (const { connection_id } of (await connectionsOf(registry)).slice(0, 20)) {
    const events = await eventsOf(connection_id)
    for (const [i, event] of events.entries()) {
      checkSchema(ConnectionEvent, event, 'listConnectionHistory')
      checkEqual(event.connection_id, connection_id, 'listConnectionHistory shows another connection')
      check(i === 0 || (events[i - 1] as ConnectionEvent).at <= event.at, 'listConnectionHistory is not oldest first')
    }
  }
  const unknown = await registry.listConnectionHistory(NOBODY, { limit: 1, cursor: null }, ASK)
  check(unknown === null, 'listConnectionHistory of an unknown connection is not null')
}

async function checkActions(make: MakeInspector<RegistryInspector>): Promise<void> {
  const registry = await make()
  if (!registry?.listActions) return
  const connections = await connectionsOf(registry)
  for (const filter of [{}, ...filtersIn(connections, ['user_id', 'client_type'])]) {
    const actions = await walkAll<ActionObservation>(
      async (page, ask) => (await registry.listActions?.(filter, page, ask)) ?? NO_PAGE,
      'listActions',
    )
    const names = actions.map((action) => action.name)
    checkEqual(names, [...new Set(names)].sort(compareIds), 'listActions is not ordered by name')
    const offered = connections.filter(
      (connection) =>
        connection.status === 'connected' &&
        Object.entries(filter).every(([name, value]) => connection[name as keyof Connection] === value),
    )
    for (const name of offered.flatMap((connection) => connection.actions))
      check(names.includes(name), `listActions under ${JSON.stringify(filter)} leaves out ${name}`)
    for (const action of actions) checkAction(action, offered)
  }
}

function checkAction(action: ActionObservation, connections: readonly Connection[]): void {
  checkSchema(ActionObservation, action, 'listActions')
  const offering = connections.filter((connection) => connection.actions.includes(action.name))
  checkEqual(action.observed_connections ?? offering.length, offering.length, `connections that offer ${action.name}`)
  const users = new Set(offering.map((connection) => connection.user_id)).size
  checkEqual(action.observed_users ?? users, users, `users that offer ${action.name}`)
}
