/** The connection registry of one process, which rejects outdated instances. */
import { createClock } from '../../internal/async/timer.js'
import {
  type ClientOfUser,
  ConnectionOptions,
  type ConnectionRegistry,
  checkClient,
  LifecycleReason,
  type RegistryInspector,
} from '../../internal/contract/connections.js'
import type { Inspected } from '../../internal/contract/families.js'
import { toReason, toTimestamp } from '../../internal/contract/ids.js'
import { deepFreeze } from '../../internal/contract/json.js'
import { type Clocked, readOptions, withClock } from '../../internal/contract/options.js'
import { Refusal } from '../../internal/refusal.js'
import { connectedRecord, readConnect, readMetadata } from '../../internal/rules/connections.js'
import { createChurn } from './churn.js'
import { createConnectionSet } from './connection-set.js'
import { createConnectionInspector } from './inspector.js'

/** Options of `createConnectionRegistry`. */
export const ConnectionRegistryOptions = withClock(ConnectionOptions)
/** Options of `createConnectionRegistry`. */
export interface ConnectionRegistryOptions extends ConnectionOptions, Clocked {}

/**
 * Creates a connection registry in memory. At most one connection per (user, client) is current: connecting with
 * another `instance_id` ends the previous one as `superseded`, reason `new_instance`; connecting again with the same
 * one ends it as `disconnected`, reason `reconnected`. Heartbeat timeouts and retention are computed on access; there
 * is no timer.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
 *
 * @example
 * const connections = createConnectionRegistry()
 * await connections.connect({ user_id: 'u', client_id: 'c', instance_id: 'i', client_type: 'console' })
 */
export function createConnectionRegistry(
  options: ConnectionRegistryOptions = {},
): Inspected<ConnectionRegistry, RegistryInspector> {
  const read = readOptions(ConnectionRegistryOptions, options)
  const { newId, nodeId, maxConnections, maxConnectionsPerUser } = read
  const clock = createClock(read.now)
  const churn = createChurn(clock.now)
  const connections = createConnectionSet(read, churn)

  /** Returns the current time as a timestamp. */
  const stamp = () => toTimestamp(clock.now())

  /** Sweeps due entries and returns the steady time; `isSwept` is false while some remain. */
  function sweep() {
    const time = clock.steady()
    return { time, isSwept: connections.sweep(time), view: connections.view(time) }
  }

  /** Returns the entry with that id as of now. */
  function find(id: string) {
    const { time } = sweep()
    return { time, entry: connections.find(id, time) }
  }

  /** Returns the instance that holds (user, client). */
  const current = (client: ClientOfUser) => {
    const { status, instance_id } = connections.latestOf(client, sweep().time)?.record ?? {}
    return status === 'connected' ? (instance_id ?? null) : null
  }

  return {
    inspector: createConnectionInspector(connections, { sweep, find, current, stamp }, churn, nodeId),
    async connect(given) {
      const input = readConnect(given)
      const { user_id, instance_id } = input.client
      const { time } = sweep()
      const now = clock.now()
      const at = toTimestamp(now)
      const latest = connections.latestOf(input.client, time)
      const previous = latest?.record.status === 'connected' ? latest : undefined
      if (!previous && connections.connectedOf(user_id) >= maxConnectionsPerUser)
        throw new Refusal('capacity_exceeded', `maximum of ${maxConnectionsPerUser} connections per user reached`)
      if (!previous && connections.connectedCount() >= maxConnections)
        throw new Refusal('capacity_exceeded', `maximum of ${maxConnections} connections reached`)
      const isSuperseding = previous !== undefined && previous.record.instance_id !== instance_id
      const superseded_count = (latest?.record.superseded_count ?? 0) + Number(isSuperseding)
      if (previous?.record.instance_id === instance_id)
        connections.end(previous, { end: 'disconnected', reason: LifecycleReason.enum.reconnected }, time, at)
      else if (previous)
        connections.end(previous, { end: 'superseded', reason: LifecycleReason.enum.new_instance }, time, at)
      const made = { connection_id: newId(), node_id: nodeId, connected_at: at, superseded_count }
      const record = connectedRecord(input, made)
      connections.begin(record, input.descriptors, time, now)
      return record
    },
    async heartbeat(id, given) {
      const metadata = given === undefined ? undefined : deepFreeze(JSON.parse(readMetadata(given)))
      const { entry, time } = find(id)
      if (entry?.record.status !== 'connected') return false
      const now = stamp()
      const { last_seen_at: before } = entry.record
      // If the clock was set back, keep the later time.
      connections.heartbeat(entry, time, { last_seen_at: now > before ? now : before, ...(metadata && { metadata }) })
      return true
    },
    async disconnect(id, reason) {
      const { entry, time } = find(id)
      if (entry?.record.status !== 'connected') return false
      connections.end(entry, { end: 'disconnected', reason: toReason(reason) }, time, stamp())
      return true
    },
    async isCurrentInstance(instance) {
      checkClient(instance, ['user_id', 'client_id', 'instance_id'])
      return current(instance) === instance.instance_id
    },
    async currentInstance(client) {
      checkClient(client)
      return current(client)
    },
  }
}
