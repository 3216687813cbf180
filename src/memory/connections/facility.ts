/** The connection registry of one process, which rejects outdated instances. */
import { createClock } from '../../async/timer.js'
import {
  type ActionDescriptor,
  type ClientOfUser,
  ConnectInput,
  type Connection,
  ConnectionOptions,
  type ConnectionRegistry,
  checkClient,
  LifecycleReason,
  type RegistryInspector,
} from '../../contract/connections.js'
import type { Inspected } from '../../contract/families.js'
import { toReason, toTimestamp } from '../../contract/ids.js'
import { deepFreeze, type JsonObject, JsonRecord, toJson } from '../../contract/json.js'
import { RECORD_BYTES } from '../../contract/limits.js'
import { type Clocked, parseInput, readOptions, withClock } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import { createChurn } from './churn.js'
import { createConnectionInspector } from './inspector.js'
import { createConnectionLifecycle } from './lifecycle.js'

// The data that a connecting client reports, limited in size and copied.

const NO_METADATA: JsonObject = Object.freeze({})

/** Maximum size of the client's own data in bytes. The rest of a record is reserved for ids and times. */
const SAID_BYTES = RECORD_BYTES - 4_096

/**
 * Up to this many actions need no measuring: names of 256 bytes, each escaped, stay well below the size limit of a
 * record.
 */
const FEW_ACTIONS = 64

/**
 * Returns a copy of the descriptors, without duplicate names (the last one wins), and of the metadata.
 *
 * @throws Refusal `payload_too_large` if the record would be too large, `invalid_input` if they are not JSON.
 */
function bounded({ actions, metadata }: ReturnType<typeof ConnectInput.parse>): {
  descriptors: ActionDescriptor[]
  metadata: JsonObject
} {
  const byName = new Map<string, ActionDescriptor>()
  let plain = actions.length <= FEW_ACTIONS
  for (const action of actions) {
    if (typeof action === 'string') byName.set(action, bare(action))
    else byName.set(action.name, action)
    plain &&= typeof action === 'string'
  }
  const descriptors = [...byName.values()]
  for (const _ in metadata) plain = false
  if (plain) return { descriptors, metadata: NO_METADATA }
  const { text } = toJson({ descriptors, metadata }, SAID_BYTES)
  return deepFreeze(JSON.parse(text))
}

/** Returns a copy of new metadata. @throws Refusal as `bounded`. */
function boundedMetadata(given: unknown): JsonObject {
  const { text } = toJson(parseInput(JsonRecord, given), SAID_BYTES)
  return deepFreeze(JSON.parse(text))
}

const bare = (name: string): ActionDescriptor => ({ name, description: null, parameters_schema: null })

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
  const lifecycle = createConnectionLifecycle(read, churn)

  /** Returns the current time as a timestamp. */
  const stamp = () => toTimestamp(clock.now())

  /** Sweeps due entries and returns the steady time; `isSwept` is false while some remain. */
  function sweep() {
    const time = clock.steady()
    return { time, isSwept: lifecycle.sweep(time), view: lifecycle.view(time) }
  }

  /** Returns the entry with that id as of now. */
  function find(id: string) {
    const { time } = sweep()
    return { time, entry: lifecycle.find(id, time) }
  }

  /** Returns the instance that holds (user, client). */
  const current = (client: ClientOfUser) => {
    const { status, instance_id } = lifecycle.latestOf(client, sweep().time)?.record ?? {}
    return status === 'connected' ? (instance_id ?? null) : null
  }

  return {
    inspector: createConnectionInspector(lifecycle, { sweep, find, current, stamp }, churn, nodeId),
    async connect(given) {
      const input = parseInput(ConnectInput, given)
      const { user_id, client_id, instance_id, client_type } = input
      const { descriptors, metadata } = bounded(input)
      const { time } = sweep()
      const now = clock.now()
      const at = toTimestamp(now)
      const latest = lifecycle.latestOf(input, time)
      const previous = latest?.record.status === 'connected' ? latest : undefined
      if (!previous && lifecycle.connectedOf(user_id) >= maxConnectionsPerUser)
        throw new Refusal('capacity_exceeded', `maximum of ${maxConnectionsPerUser} connections per user reached`)
      if (!previous && lifecycle.connectedCount() >= maxConnections)
        throw new Refusal('capacity_exceeded', `maximum of ${maxConnections} connections reached`)
      const isSuperseding = previous !== undefined && previous.record.instance_id !== instance_id
      const superseded_count = (latest?.record.superseded_count ?? 0) + Number(isSuperseding)
      if (previous?.record.instance_id === instance_id)
        lifecycle.end(previous, { end: 'disconnected', reason: LifecycleReason.enum.reconnected }, time, at)
      else if (previous)
        lifecycle.end(previous, { end: 'superseded', reason: LifecycleReason.enum.new_instance }, time, at)
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
        ended_reason: null,
        superseded_count,
        actions: Object.freeze(descriptors.map(({ name }) => name)) as string[],
        metadata,
      })
      lifecycle.begin(record, descriptors, time, now)
      return record
    },
    async heartbeat(id, given) {
      const metadata = given === undefined ? undefined : boundedMetadata(given)
      const { entry, time } = find(id)
      if (entry?.record.status !== 'connected') return false
      const now = stamp()
      const { last_seen_at: before } = entry.record
      // If the clock was set back, keep the later time.
      lifecycle.heartbeat(entry, time, { last_seen_at: now > before ? now : before, ...(metadata && { metadata }) })
      return true
    },
    async disconnect(id, reason) {
      const { entry, time } = find(id)
      if (entry?.record.status !== 'connected') return false
      lifecycle.end(entry, { end: 'disconnected', reason: toReason(reason) }, time, stamp())
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
