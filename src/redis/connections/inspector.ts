/** Reads the connection registry of a shared store. */

import {
  CONNECTION_FAMILY,
  type Connection,
  type ConnectionCounts,
  type ConnectionEvent,
  foldConnection,
  type RegistryInspector,
} from '../../contract/connections.js'
import { countBy } from '../../contract/counts.js'
import { toTimestamp } from '../../contract/ids.js'
import { parseSequence } from '../../contract/page.js'
import type { Store } from '../store/store.js'
import { countAll } from '../table/counts.js'
import { readPage } from '../table/pages.js'
import { getRecord } from '../table/rows.js'
import { listUserIds, observeUsers } from '../table/users.js'
import { versioned } from '../table/version.js'
import { listActions } from './actions.js'
import { readChurn } from './churn.js'
import { readCurrentInstances } from './current-instance.js'
import { listClientEvents } from './events.js'
import { CONNECTIONS, endOf } from './format.js'

export function createRegistryInspector(store: Store): RegistryInspector {
  return {
    ...versioned(store, [CONNECTIONS.name]),
    listConnections: (filter, page, ctx) => readPage(store, CONNECTIONS, filter, page, ctx),
    getConnection: async (id, ctx) => (await getRecord(store, CONNECTIONS, id, ctx))?.record ?? null,
    async listConnectionHistory(id, page, ctx) {
      const after = parseSequence(page.cursor)
      const [found, now] = await Promise.all([getRecord(store, CONNECTIONS, id, ctx), store.time(ctx)])
      if (!found) return null
      const events = eventsOf(found.record, endOf(found.row, now))
      const items = events.slice(after, after + page.limit)
      const has_more = after + items.length < events.length
      return { items, next_cursor: has_more ? String(after + items.length) : null, has_more, examined: items.length }
    },
    listConnectionEvents: (filter, page, ctx) => listClientEvents(store, filter, page, ctx),
    connectionChurn: (filter, ctx) => readChurn(store, filter, ctx),
    listActions: (filter, page, ctx) => listActions(store, filter, page, ctx),
    currentInstances: (clients, ctx) => readCurrentInstances(store, clients, ctx),
    async countConnections(filter, ctx): Promise<ConnectionCounts> {
      const { records, indexed } = await countAll(store, CONNECTIONS, filter, ctx)
      return {
        ...indexed,
        ...countBy(CONNECTION_FAMILY.counted, records),
      }
    },
    listUserIds: (page, ctx) => listUserIds(store, CONNECTIONS.name, page, ctx),
    observeUsers: (userIds, ctx) => observeUsers(store, CONNECTIONS, userIds, ctx, foldConnection),
  }
}

/** Returns the events of a connection in order: when it connected, and how it ended if it has. */
function eventsOf({ connection_id, connected_at }: Connection, ended: ReturnType<typeof endOf>): ConnectionEvent[] {
  const events: ConnectionEvent[] = [{ connection_id, event: 'connected', at: connected_at, reason: null }]
  if (ended) events.push({ connection_id, event: ended.end, at: toTimestamp(ended.at), reason: ended.reason })
  return events
}
