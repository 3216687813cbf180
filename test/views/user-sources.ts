/** Sources that know users: one with an index over them, and the entries that others count. */
import type { Connection, RegistryInspector } from '../../src/internal/contract/connections.js'
import { compareIds } from '../../src/internal/contract/ids.js'
import type { IdPageQuery } from '../../src/internal/contract/page.js'
import { connection, context } from '../diagnostics/world.js'
import { listOf } from './subject.js'

/** A registry that keeps an index over its users. */
export function indexed(connections: Connection[], over: Partial<RegistryInspector> = {}): RegistryInspector {
  const ids = [...new Set(connections.map((entry) => entry.user_id))].sort(compareIds)
  return {
    listConnections: (filter, page) => listOf(connections).list(filter, page),
    getConnection: () => null,
    listUserIds: ({ after, limit }: IdPageQuery) =>
      ids.filter((id) => after === null || compareIds(id, after) > 0).slice(0, limit),
    observeUsers: (asked) =>
      asked.flatMap((user_id) => {
        const own = connections.filter((entry) => entry.user_id === user_id)
        return own.length ? [{ user_id, observed_connections: own.length, observed_client_types: ['web'] }] : []
      }),
    ...over,
  }
}

/** One context of each user. */
export const contextsOf = (...users: string[]) =>
  users.map((user_id, i) => context({ user_id, context_id: `ctx-${i}` }))

/** One connection of each user. */
export const connectionsOf = (...users: string[]) =>
  users.map((user_id, i) => connection({ user_id, connection_id: `conn-${i}` }))
