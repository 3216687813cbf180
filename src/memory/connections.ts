/** The live connection registry of one process, with instance fencing, and the inspector that looks through at it. */
import type {
  ActionDescriptor,
  Connection,
  ConnectionCounts,
  ConnectionEvent,
  ConnectionRegistry,
  RegistryInspector,
} from '../contract/connections.js'
import { ClientType, ConnectInput, ConnectionStatus } from '../contract/connections.js'
import { toReason, toTimestamp } from '../contract/ids.js'
import { parseInput } from '../contract/input.js'
import type { Inspected } from '../contract/inspectors.js'
import { deepFreeze, type JsonObject, toJson } from '../contract/json.js'
import { RECORD_BYTES } from '../contract/limits.js'
import type { UserPart } from '../contract/observation.js'
import { parseSequence } from '../contract/page.js'
import { Refusal } from '../refusal.js'
import { createActionIndex } from './action-index.js'
import { ExpiryQueue } from './expiry-queue.js'
import { createTable, type Entry } from './table.js'

export interface ConnectionRegistryOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
  /** @default crypto.randomUUID */
  newId?: () => string
  /** What connections say of the node that holds them; in one process there is nothing to tell apart. @default null */
  nodeId?: string | null
  /** Silence after which a connection reads as `disconnected`, reason `heartbeat_lost`. @default 90000 */
  heartbeatTimeoutMs?: number
  /** How long a disconnected connection stays readable. @default 3600000 */
  retentionMs?: number
  /** Connected connections; another is refused with `capacity_exceeded`. @default 1000000 */
  maxConnections?: number
  /** Disconnected connections kept; beyond, the one that went first leaves early. @default 10000 */
  maxDisconnected?: number
}

/** How a connection ended. */
interface Life {
  end: 'superseded' | 'disconnected'
  reason: string | null
}

type Held = Entry<Connection, Life>

const NO_METADATA: JsonObject = Object.freeze({})

/**
 * A connection registry in memory. One connection at most is current per (user, client): connecting with another
 * `instance_id` ends the one before as `superseded`, reason `new_instance`; connecting again with the same one ends it
 * as `disconnected`, reason `reconnected`. Silence and retention are settled when somebody looks; there is no timer.
 *
 * @example
 * const connections = createConnectionRegistry()
 * await connections.connect({ user_id: 'u', client_id: 'c', instance_id: 'i', client_type: 'console' })
 */
export function createConnectionRegistry(
  options: ConnectionRegistryOptions = {},
): Inspected<ConnectionRegistry, RegistryInspector> {
  const { now = Date.now, newId = () => crypto.randomUUID(), nodeId = null } = options
  const { heartbeatTimeoutMs = 90_000, retentionMs = 3_600_000 } = options
  const { maxConnections = 1_000_000, maxDisconnected = 10_000 } = options
  const table = createTable<Connection, Life, ConnectionCounts>({
    fields: ['client_id'],
    dimensions: [
      { name: 'status', values: ConnectionStatus.options, counted: true },
      { name: 'client_type', values: ClientType.options, counted: true },
    ],
  })
  const actions = createActionIndex()
  const connected = new ExpiryQueue<Held>()
  const disconnected = new ExpiryQueue<Held>()
  const current = new Map<string, Held>()
  const lastSeen = new Map<string, number>()

  // Ids hold no control character, so that the pair is unmistakable.
  const clientKey = (of: { user_id: string; client_id: string }) => `${of.user_id}\n${of.client_id}`
  const isLost = (entry: Held, time: number) =>
    entry.record.status === 'connected' && entry.touchedAt + heartbeatTimeoutMs <= time

  /** Ends an entry that has left the queue of the connected. */
  function end(entry: Held, life: Life, at: number): void {
    Object.assign(entry.state, life)
    actions.remove(entry.record)
    table.replace(entry, Object.freeze({ ...entry.record, status: 'disconnected', disconnected_at: toTimestamp(at) }))
    const key = clientKey(entry.record)
    if (current.get(key) === entry) current.delete(key)
    disconnected.push(entry, at)
    if (disconnected.size > maxDisconnected && disconnected.oldest) {
      const oldest = disconnected.oldest
      disconnected.remove(oldest)
      leave(oldest)
    }
  }

  function lose(entry: Held): void {
    end(entry, { end: 'disconnected', reason: 'heartbeat_lost' }, entry.touchedAt + heartbeatTimeoutMs)
  }

  function leave(entry: Held): void {
    table.remove(entry)
    if (!table.knowsUser(entry.record.user_id)) lastSeen.delete(entry.record.user_id)
  }

  /** Settles what has come due; false when more is due than one call should pay for. */
  function settle(time: number): boolean {
    const silent = connected.sweep(time - heartbeatTimeoutMs, lose)
    return disconnected.sweep(time - retentionMs, leave) && silent
  }

  /** The connected entry of that id, silence taken into account. */
  function connectedEntry(id: string, time: number): Held | undefined {
    settle(time)
    const entry = table.get(id)
    return entry && entry.record.status === 'connected' && !isLost(entry, time) ? entry : undefined
  }

  function currentEntry(of: { user_id: string; client_id: string }): Held | undefined {
    const time = now()
    settle(time)
    const entry = current.get(clientKey(of))
    return entry && !isLost(entry, time) ? entry : undefined
  }

  function sight(userId: string, time: number): void {
    if ((lastSeen.get(userId) ?? 0) < time) lastSeen.set(userId, time)
  }

  const view = (time: number) => (entry: Held) => {
    if (isLost(entry, time)) {
      const at = entry.touchedAt + heartbeatTimeoutMs
      return { ...entry.record, status: 'disconnected' as const, disconnected_at: toTimestamp(at) }
    }
    const gone = entry.record.status === 'disconnected' && entry.touchedAt + retentionMs <= time
    return gone ? undefined : entry.record
  }

  const inspector: RegistryInspector = {
    listConnections(filter, page) {
      const time = now()
      settle(time)
      return table.list(filter, page, view(time))
    },
    getConnection(id) {
      const time = now()
      settle(time)
      const entry = table.get(id)
      return (entry && view(time)(entry)) ?? null
    },
    listConnectionHistory(id, page) {
      const after = parseSequence(page.cursor)
      settle(now())
      const entry = table.get(id)
      const events = entry ? eventsOf(entry) : []
      const items = events.slice(after, after + page.limit)
      const has_more = after + items.length < events.length
      return { items, next_cursor: has_more ? String(after + items.length) : null, has_more }
    },
    listActions(filter, page) {
      settle(now())
      return actions.list(filter, page)
    },
    countConnections(filter) {
      const time = now()
      const settled = settle(time)
      return table.count(filter, view(time), settled)
    },
    listUserIds(page) {
      settle(now())
      return table.userIds(page)
    },
    observeUsers(userIds) {
      const time = now()
      const settled = settle(time)
      return userIds.filter(table.knowsUser).map((user_id): UserPart => {
        const filter = { user_id, status: 'connected' }
        const counts = table.count(filter, view(time), true) as ConnectionCounts
        const { names, cut } = actions.namesOf(user_id)
        const clients = table.clientIds(user_id)
        const seen = lastSeen.get(user_id)
        return {
          user_id,
          observed_connections: counts.total,
          observed_client_types: ClientType.options.filter((type) => counts.by_client_type[type] > 0),
          observed_action_types: names,
          observed_client_ids: clients.ids,
          last_seen_at: seen === undefined ? null : toTimestamp(seen),
          ...(settled && !cut && !clients.cut ? {} : { truncated: true }),
        }
      })
    },
  }

  return {
    inspector,
    async connect(given) {
      const input = parseInput(ConnectInput, given)
      const time = now()
      settle(time)
      const { user_id, client_id, instance_id, client_type } = input
      const { descriptors, metadata } = bounded(input)
      const previous = current.get(clientKey(input))
      if (connected.size - (previous ? 1 : 0) >= maxConnections)
        throw new Refusal('capacity_exceeded', `${maxConnections} connections`)
      if (previous) {
        connected.remove(previous)
        if (isLost(previous, time)) lose(previous)
        else if (previous.record.instance_id === instance_id)
          end(previous, { end: 'disconnected', reason: 'reconnected' }, time)
        else end(previous, { end: 'superseded', reason: 'new_instance' }, time)
      }
      const connection_id = newId()
      const at = toTimestamp(time)
      const record: Connection = Object.freeze({
        connection_id,
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
      const entry = table.add(connection_id, record, { end: 'disconnected', reason: null })
      connected.push(entry, time)
      current.set(clientKey(record), entry)
      actions.add(record, descriptors)
      sight(user_id, time)
      return record
    },
    async heartbeat(id) {
      const time = now()
      const entry = connectedEntry(id, time)
      if (!entry) return false
      connected.touch(entry, time)
      table.replace(entry, Object.freeze({ ...entry.record, last_seen_at: toTimestamp(time) }))
      sight(entry.record.user_id, time)
      return true
    },
    async disconnect(id, reason) {
      const time = now()
      const entry = connectedEntry(id, time)
      if (!entry) return false
      connected.remove(entry)
      end(entry, { end: 'disconnected', reason: toReason(reason) }, time)
      return true
    },
    async isCurrentInstance(instance) {
      return currentEntry(instance)?.record.instance_id === instance.instance_id
    },
    async currentInstance(client) {
      return currentEntry(client)?.record.instance_id ?? null
    },
  }
}

/** The life of a connection in order: how it began, and how it ended when it did. */
function eventsOf({ id: connection_id, record, state }: Held): ConnectionEvent[] {
  const events: ConnectionEvent[] = [{ connection_id, event: 'connected', at: record.connected_at, reason: null }]
  if (record.disconnected_at !== null)
    events.push({ connection_id, event: state.end, at: record.disconnected_at, reason: state.reason })
  return events
}

/** Actions that need no measuring: this many names of 256 bytes, each escaped, stay well below the record bound. */
const FEW_ACTIONS = 64

/**
 * The descriptors, each name once and its last description, and the metadata, cut loose from the caller's objects.
 *
 * @throws Refusal `payload_too_large` when they make a record too large, `invalid_input` for what is no JSON.
 */
function bounded({ actions, metadata }: ReturnType<typeof ConnectInput.parse>) {
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
  // Ids and times of the record take less than the kibibyte that is set aside for each of them.
  const { text } = toJson({ descriptors, metadata }, RECORD_BYTES - 4_096)
  return deepFreeze(JSON.parse(text)) as { descriptors: ActionDescriptor[]; metadata: JsonObject }
}

const bare = (name: string): ActionDescriptor => ({ name, description: null, parameters_schema: null })
