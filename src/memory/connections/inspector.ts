/** Reads the connections of one process as they are now, whether or not what is due has been swept. */
import {
  type ClientOfUser,
  ClientType,
  type Connection,
  type ConnectionCounts,
  foldConnection,
  type RegistryInspector,
} from '../../contract/connections.js'
import { foldAll, type UserPart } from '../../contract/observation.js'
import { annotated, examinable, parseSequence } from '../../contract/page.js'
import { observeEach } from '../table/users.js'
import { type ConnectionLifecycle, eventsOf, type LivingConnection } from './lifecycle.js'

/** How the registry looks at its connections at this moment. */
interface Look {
  /** `isSwept`: nothing that has come due is left. */
  sweep(): { isSwept: boolean; view: ReturnType<ConnectionLifecycle['view']> }
  find(id: string): { entry: LivingConnection | undefined }
  /** The instance that holds a client. */
  current(client: ClientOfUser): string | null
}

export function createConnectionInspector(
  lifecycle: ConnectionLifecycle,
  { sweep, find, current }: Look,
): RegistryInspector {
  const { table, actions } = lifecycle

  const inspector: RegistryInspector = {
    listConnections: (filter, page, ask) => table.list(filter, page, sweep().view, examinable(ask)),
    getConnection: (id) => find(id).entry?.record ?? null,
    listConnectionHistory(id, page) {
      const after = parseSequence(page.cursor)
      const { entry } = find(id)
      if (!entry) return null
      const events = eventsOf(entry)
      const items = events.slice(after, after + page.limit)
      const has_more = after + items.length < events.length
      return { items, next_cursor: has_more ? String(after + items.length) : null, has_more, examined: items.length }
    },
    // The index over actions counts whoever has fallen silent until that is swept: until then it says nothing.
    listActions: (filter, page, ask) => (sweep().isSwept ? actions.list(filter, page, examinable(ask)) : null),
    version: () => (sweep().isSwept ? table.version() : null),
    currentInstances: (clients) => clients.map(current),
    countConnections(filter, ask) {
      const { view, isSwept } = sweep()
      return table.count(filter, view, isSwept, examinable(ask))
    },
    listUserIds(page, ask) {
      const { view, isSwept } = sweep()
      return table.users.userIds(page, view, isSwept, examinable(ask))
    },
    observeUsers(userIds, ask) {
      const { view, isSwept } = sweep()
      if (isSwept) return annotated(userIds.filter(table.users.knowsUser).map(toPart), { examined: 0 })
      return observeEach(
        userIds,
        examinable(ask),
        (userId, bound) => table.users.recordsOf(userId, view, bound),
        partOf,
      )
    },
  }

  /** What the indexes know of a user, where everything is swept. */
  function toPart(user_id: string): UserPart {
    const counts = table.count({ user_id, status: 'connected' }, sweep().view, true, 0) as ConnectionCounts
    const { names, cut } = actions.namesOf(user_id)
    const clients = table.users.clientIds(user_id)
    return {
      user_id,
      observed_connections: counts.total,
      observed_client_types: ClientType.options.filter((type) => counts.by_client_type[type] > 0),
      observed_action_types: names,
      observed_client_ids: clients.ids,
      last_seen_at: lifecycle.lastSeenOf(user_id),
      ...(cut || clients.cut ? { truncated: true } : {}),
    }
  }

  /** What the user's own records say, where some have not been swept. */
  const partOf = (user_id: string, records: readonly Connection[]): UserPart => ({
    user_id,
    ...foldAll(foldConnection, records),
    last_seen_at: lifecycle.lastSeenOf(user_id),
  })

  return inspector
}
