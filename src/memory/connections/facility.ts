/** The live connection registry of one process, with instance fencing, and the inspector that looks through at it. */

import { createClock } from '../../async/clock.js'
import {
  ClientType,
  CONNECTION_BOUNDS,
  ConnectInput,
  type Connection,
  type ConnectionCounts,
  type ConnectionOptions,
  type ConnectionRegistry,
  LifecycleReason,
  type RegistryInspector,
  tellConnection,
} from '../../contract/connections.js'
import { toReason, toTimestamp } from '../../contract/ids.js'
import { parseInput } from '../../contract/input.js'
import type { Inspected } from '../../contract/inspectors.js'
import { tellAll, type UserPart } from '../../contract/observation.js'
import { resolveBounds } from '../../contract/options.js'
import { examinable, parseSequence, saying } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { observeEach } from '../table/users.js'
import { bounded } from './input.js'
import { createConnectionLives, eventsOf } from './lifecycle.js'

export interface ConnectionRegistryOptions extends ConnectionOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
}

/**
 * A connection registry in memory. One connection at most is current per (user, client): connecting with another
 * `instance_id` ends the one before as `superseded`, reason `new_instance`; connecting again with the same one ends it
 * as `disconnected`, reason `reconnected`. Silence and retention are settled when somebody looks; there is no timer.
 *
 * @throws RangeError for a bound that is not a whole number from 1.
 *
 * @example
 * const connections = createConnectionRegistry()
 * await connections.connect({ user_id: 'u', client_id: 'c', instance_id: 'i', client_type: 'console' })
 */
export function createConnectionRegistry(
  options: ConnectionRegistryOptions = {},
): Inspected<ConnectionRegistry, RegistryInspector> {
  const { newId = () => crypto.randomUUID(), nodeId = null } = options
  const clock = createClock(options.now ?? Date.now)
  const bounds = resolveBounds(options, CONNECTION_BOUNDS)
  const { maxConnections, maxConnectionsPerUser } = bounds
  const lives = createConnectionLives(bounds)
  const { table, actions } = lives

  /** What is shown as the time of what happens now. */
  const stamp = () => toTimestamp(clock.now())

  /** The steady time, with everything settled that has come due by then; `settled` is false while that lags behind. */
  function look() {
    const time = clock.steady()
    return { time, settled: lives.settle(time), view: lives.view(time) }
  }

  /** The entry of that id as it is now. */
  function find(id: string) {
    const { time } = look()
    return { time, entry: lives.find(id, time) }
  }

  /** The instance that holds (user, client). */
  const current = (client: { user_id: string; client_id: string }) =>
    lives.holder(client, look().time)?.record.instance_id ?? null

  const inspector: RegistryInspector = {
    listConnections: (filter, page, ask) => table.list(filter, page, look().view, examinable(ask)),
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
    // The index over actions counts whoever has fallen silent until that is settled: until then it says nothing.
    listActions: (filter, page, ask) => (look().settled ? actions.list(filter, page, examinable(ask)) : null),
    countConnections(filter, ask) {
      const { view, settled } = look()
      return table.count(filter, view, settled, examinable(ask))
    },
    listUserIds(page, ask) {
      const { view, settled } = look()
      return table.users.userIds(page, view, settled, examinable(ask))
    },
    observeUsers(userIds, ask) {
      const { view, settled } = look()
      if (settled) return saying(userIds.filter(table.users.knowsUser).map(toPart), { examined: 0 })
      return observeEach(
        userIds,
        examinable(ask),
        (userId, bound) => table.users.recordsOf(userId, view, bound),
        partOf,
      )
    },
  }

  /** What the indexes know of a user, where everything is settled. */
  function toPart(user_id: string): UserPart {
    const counts = table.count({ user_id, status: 'connected' }, look().view, true, 0) as ConnectionCounts
    const { names, cut } = actions.namesOf(user_id)
    const clients = table.users.clientIds(user_id)
    return {
      user_id,
      observed_connections: counts.total,
      observed_client_types: ClientType.options.filter((type) => counts.by_client_type[type] > 0),
      observed_action_types: names,
      observed_client_ids: clients.ids,
      last_seen_at: lives.lastSeenOf(user_id),
      ...(cut || clients.cut ? { truncated: true } : {}),
    }
  }

  /** What the user's own records tell, where some have not been settled. */
  const partOf = (user_id: string, records: readonly Connection[]): UserPart => ({
    user_id,
    ...tellAll(tellConnection, records),
    last_seen_at: lives.lastSeenOf(user_id),
  })

  return {
    inspector,
    async connect(given) {
      const input = parseInput(ConnectInput, given)
      const { user_id, client_id, instance_id, client_type } = input
      const { descriptors, metadata } = bounded(input)
      const { time } = look()
      const at = stamp()
      const previous = lives.holder(input, time)
      if (!previous && lives.connectedOf(user_id) >= maxConnectionsPerUser)
        throw new Refusal('capacity_exceeded', `${maxConnectionsPerUser} connections of one user`)
      if (!previous && lives.connectedCount() >= maxConnections)
        throw new Refusal('capacity_exceeded', `${maxConnections} connections`)
      if (previous?.record.instance_id === instance_id)
        lives.end(previous, { end: 'disconnected', reason: LifecycleReason.enum.reconnected }, time, at)
      else if (previous) lives.end(previous, { end: 'superseded', reason: LifecycleReason.enum.new_instance }, time, at)
      const record: Connection = Object.freeze({
        connection_id: newId(),
        user_id,
        client_id,
        instance_id,
        client_type,
        node_id: nodeId,
        status: 'connected',
        connected_at: at,
        last_seen_at: at,
        disconnected_at: null,
        actions: Object.freeze(descriptors.map(({ name }) => name)) as string[],
        metadata,
      })
      lives.begin(record, descriptors, time)
      return record
    },
    async heartbeat(id) {
      const { entry, time } = find(id)
      if (entry?.record.status !== 'connected') return false
      lives.beat(entry, time, stamp())
      return true
    },
    async disconnect(id, reason) {
      const { entry, time } = find(id)
      if (entry?.record.status !== 'connected') return false
      lives.end(entry, { end: 'disconnected', reason: toReason(reason) }, time, stamp())
      return true
    },
    async isCurrentInstance(instance) {
      return current(instance) === instance.instance_id
    },
    async currentInstance(client) {
      return current(client)
    },
  }
}
