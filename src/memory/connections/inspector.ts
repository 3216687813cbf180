/** Reads the connections of one process as of now, even if due entries have not been swept. */
import {
  type ClientEvent,
  type ClientEventFilter,
  type ClientOfUser,
  ClientType,
  type Connection,
  type ConnectionCounts,
  type ConnectionFilter,
  foldConnection,
  type RegistryInspector,
} from '../../internal/contract/connections.js'
import { foldAll, type UserPart } from '../../internal/contract/observation.js'
import {
  matcherOf,
  type Page,
  type PageQuery,
  parseSequence,
  scanLimit,
  withMetadata,
} from '../../internal/contract/page.js'
import { createKeptRows } from '../table/kept-rows.js'
import { observeEach, observeKnown } from '../table/users.js'
import type { Churn } from './churn.js'
import {
  type ConnectionSet,
  eventsAmong,
  eventsOf,
  type LivingConnection,
  type PlacedEvent,
  toClientEvent,
} from './connection-set.js'

/** How the registry reads its connections now. */
interface RegistryReads {
  /** `isSwept`: no due entries remain. */
  sweep(): { isSwept: boolean; view: ReturnType<ConnectionSet['view']> }
  find(id: string): { entry: LivingConnection | undefined }
  /** Returns the instance that holds a client. */
  current(client: ClientOfUser): string | null
  /** Returns the current time as a timestamp. */
  stamp(): string
}

export function createConnectionInspector(
  connections: ConnectionSet,
  { sweep, find, current, stamp }: RegistryReads,
  churn: Churn,
  nodeId: string | null,
): RegistryInspector {
  const { table, actions } = connections
  const eventRow = createKeptRows<LivingConnection, ClientEvent>()
  const toEvent = (placed: PlacedEvent) => eventRow(placed.place, placed.entry, () => toClientEvent(placed))

  /** Returns the filter without the node, because all connections are on this one; `null` for another node. */
  function own<F extends ConnectionFilter>({ node_id, ...filter }: F): Omit<F, 'node_id'> | null {
    return node_id === undefined || node_id === nodeId ? filter : null
  }

  const inspector: RegistryInspector = {
    listConnections({ ended_reason, ...others }, page, ctx) {
      const { view, isSwept } = sweep()
      const filter = own(others)
      if (filter === null) return { items: [], next_cursor: null, has_more: false, examined: 0 }
      if (isSwept) return table.list({ ...filter, ended_reason }, page, view, scanLimit(ctx))
      // The index of reasons lacks connections that timed out but were not swept.
      const gone = (entry: LivingConnection) => {
        const record = view(entry)
        return ended_reason === undefined || record?.ended_reason === ended_reason ? record : undefined
      }
      return table.list(filter, page, gone, scanLimit(ctx))
    },
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
    // The index of actions still counts connections that timed out but were not swept, so it is not used until then.
    listActions: (filter, page, ctx) => (sweep().isSwept ? actions.list(filter, page, scanLimit(ctx)) : null),
    version: () => (sweep().isSwept ? table.version() : null),
    currentInstances: (clients) => clients.map(current),
    countConnections(filter, ctx) {
      const { view, isSwept } = sweep()
      const wanted = own(filter)
      if (wanted === null) return withMetadata(table.tally([]), { examined: 0 })
      return filter.ended_reason !== undefined && !isSwept ? null : table.count(wanted, view, isSwept, scanLimit(ctx))
    },
    listConnectionEvents: (filter, page, ctx) =>
      listEvents(connections, toEvent, sweep().view, filter, page, scanLimit(ctx)),
    connectionChurn(filter) {
      sweep()
      const wanted = own(filter)
      const admits = (type: ClientType) => wanted !== null && (wanted.client_type ?? type) === type
      return { items: churn.read(admits), observed_at: stamp() }
    },
    listUserIds(page, ctx) {
      const { view, isSwept } = sweep()
      return table.users.userIds(page, view, isSwept, scanLimit(ctx))
    },
    observeUsers(userIds, ctx) {
      const { view, isSwept } = sweep()
      if (isSwept) return observeKnown(userIds, ctx, table.users.knowsUser, toPart)
      return observeEach(userIds, ctx, (userId, bound) => table.users.recordsOf(userId, view, bound), partOf)
    },
  }

  /** Returns a user's part from the indexes, if everything is swept. */
  function toPart(user_id: string): UserPart {
    const counts = table.count({ user_id, status: 'connected' }, sweep().view, true, 0) as ConnectionCounts
    const { names, cut } = actions.namesOf(user_id)
    return {
      user_id,
      observed_connections: counts.total,
      observed_client_types: ClientType.options.filter((type) => counts.by_client_type[type] > 0),
      observed_action_types: names,
      observed_client_ids: table.users.clientIds(user_id),
      last_seen_at: connections.lastSeenOf(user_id),
      ...(cut ? { truncated: true } : {}),
    }
  }

  /** Returns a user's part from the records, if some are not swept. */
  const partOf = (user_id: string, records: readonly Connection[]): UserPart => ({
    user_id,
    ...foldAll(foldConnection, records),
    last_seen_at: connections.lastSeenOf(user_id),
  })

  return inspector
}

/** Returns a page of the events that `filter` admits, the newest first, examining at most `bound` of them. */
function listEvents(
  connections: ConnectionSet,
  toEvent: (placed: PlacedEvent) => ClientEvent,
  view: ReturnType<ConnectionSet['view']>,
  filter: ClientEventFilter,
  page: PageQuery,
  bound: number,
): Page<ClientEvent> {
  const { table } = connections
  const { user_id } = filter
  const before = parseSequence(page.cursor, 'newest')
  const isIndexed = user_id !== undefined && table.sizeOf('user_id', user_id) <= bound
  const events = isIndexed ? eventsAmong(table.ofUser(user_id), before) : connections.eventsBefore(before)
  const matches = matcherOf(filter)
  const items: ClientEvent[] = []
  let last = before
  let examined = 0
  for (const placed of events) {
    if (items.length === page.limit || examined === bound)
      return { items, next_cursor: String(last), has_more: true, examined }
    examined++
    last = placed.place
    const event = toEvent(placed)
    if (view(placed.entry) && matches(event)) items.push(event)
  }
  return { items, next_cursor: null, has_more: false, examined }
}
