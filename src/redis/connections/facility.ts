/** The connection registry of a deployment in a shared store, for hosts. */
import {
  CHURN_COMBINATIONS,
  CHURN_MINUTES,
  ConnectionOptions,
  type ConnectionRegistry,
  checkClient,
  LifecycleReason,
  MINUTE_MS,
  OTHER,
  type RegistryInspector,
  UNSPECIFIED,
} from '../../internal/contract/connections.js'
import type { Inspected } from '../../internal/contract/families.js'
import { toReason, toTimestamp } from '../../internal/contract/ids.js'
import { readParts } from '../../internal/contract/options.js'
import { connectedRecord, readConnect, readMetadata } from '../../internal/rules/connections.js'
import { createCache } from '../store/cache.js'
import { shardOf } from '../store/keys.js'
import { count, listOf, parseFlag, parseText } from '../store/reply.js'
import { defineScript, runInShards, runScript } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { scripts } from './connections.lua'
import { createRegistryInspector } from './inspector.js'

// The scripts of the connection registry: connect, heartbeat and disconnect.

const REASON = LifecycleReason.enum

const CONSTANTS = {
  MINUTE_MS,
  // How long a minute is kept: as long as it is reported, plus a margin for clock differences.
  CHURN_KEPT_MS: (CHURN_MINUTES + 5) * MINUTE_MS,
  CHURN_COMBINATIONS,
  OTHER,
  UNSPECIFIED,
  HEARTBEAT_LOST: REASON.heartbeat_lost,
}

// `lost_after`: ms without a heartbeat until a connection is lost; `max_ended`: maximum number of disconnected ones
// that are kept.
const SWEEP_ARGS = ['lost_after', 'retention', 'max_ended'] as const
/**
 * Returns the time, and how often the client has been superseded. A repeated call returns the first result and changes
 * nothing.
 */
export const CONNECT = defineScript(
  'connections.connect',
  {
    args: [...SWEEP_ARGS, 'id', 'fields', 'content', 'max_per_user', 'max_connections'],
    constants: { ...CONSTANTS, RECONNECTED: REASON.reconnected, NEW_INSTANCE: REASON.new_instance },
    answer: (reply) => {
      const [connectedAt = null, superseded = null] = listOf(reply)
      return { connectedAt: count(connectedAt), superseded: count(superseded) }
    },
  },
  scripts.connect,
)

/**
 * Returns whether the connection is connected. `content`: new metadata of the client, or ''. `sent`: the reporter and
 * its sequence number; `content` of a repeated or outdated report is ignored.
 */
export const HEARTBEAT = defineScript(
  'connections.heartbeat',
  { args: [...SWEEP_ARGS, 'id', 'content', 'sent'], constants: CONSTANTS, answer: parseFlag },
  scripts.heartbeat,
)

/** Returns whether the connection was connected. `reason` may be ''. */
export const DISCONNECT = defineScript(
  'connections.disconnect',
  { args: [...SWEEP_ARGS, 'id', 'reason', 'attempt'], constants: CONSTANTS, answer: parseFlag },
  scripts.disconnect,
)

/** Ends lost connections and deletes expired ones, for the loop of a node. Returns whether there is more. */
export const SWEEP_CONNECTIONS = defineScript(
  'connections.sweep',
  { args: SWEEP_ARGS, constants: CONSTANTS, answer: parseFlag, freesMemory: true },
  scripts.sweep,
)

/** Returns the instance that holds the client, or `null`. */
const CURRENT_INSTANCE = defineScript(
  'connections.current',
  { args: [...SWEEP_ARGS, 'user', 'client'], constants: CONSTANTS, answer: parseText },
  scripts.current,
)

// Caches which shard has a connection. A connection never changes its user, and so never its shard.

/** Maximum number of entries, about 100 bytes each. For an evicted one every shard is queried once. */
const KNOWN_MAX = 100_000

/** Options of `createRedisConnectionRegistry`. */
export type RedisConnectionRegistryOptions = StoreOptions & ConnectionOptions

/**
 * Creates a connection registry in Redis. At most one connection per (user, client) is current in the whole deployment,
 * whichever node the client connects to.
 *
 * @example
 * const connections = createRedisConnectionRegistry({ client, deploymentId: 'prod', nodeId: 'a' })
 */
export function createRedisConnectionRegistry(
  options: RedisConnectionRegistryOptions,
): Inspected<ConnectionRegistry, RegistryInspector> {
  return connectionRegistryOn(createStore(options, inStore(ConnectionOptions)), options)
}

export function connectionRegistryOn(
  store: Store,
  options: ConnectionOptions,
): Inspected<ConnectionRegistry, RegistryInspector> {
  const read = readParts(ConnectionOptions, options)
  const { newId, nodeId, heartbeatTimeoutMs, retentionMs, maxConnections, maxConnectionsPerUser, maxDisconnected } =
    read

  const sweepBounds = { lost_after: heartbeatTimeoutMs, retention: retentionMs, max_ended: maxDisconnected }

  const knownShards = createCache<number>(KNOWN_MAX)

  const by = crypto.randomUUID().slice(0, 8)
  let sent = 0

  /** Runs `run` in the shard that is known to have the connection, else in every shard, of which at most one has it. */
  async function inItsShard(id: string, run: (shard: number) => Promise<boolean>): Promise<boolean> {
    const known = knownShards.get(id)
    if (known !== undefined) return run(known)
    const found = await runInShards(run, await store.claimShards(), (isThere) => isThere)
    if (found) knownShards.set(id, found.shard)
    return found !== undefined
  }

  async function currentInstance(client: { user_id: string; client_id: string }): Promise<string | null> {
    checkClient(client)
    const shard = shardOf(client.user_id, await store.claimShards())
    const given = { ...sweepBounds, user: client.user_id, client: client.client_id }
    return runScript(store, CURRENT_INSTANCE, shard, given)
  }

  return {
    inspector: createRegistryInspector(store),
    async connect(given) {
      const input = readConnect(given)
      const { client, descriptors, metadata } = input
      const names = descriptors.map(({ name }) => name)
      const described = descriptors
        .filter((one) => one.description !== null || one.parameters_schema !== null)
        .map(({ name, ...rest }) => [name, rest])
      const fields = {
        ...client,
        connection_id: newId(),
        node_id: nodeId,
        // A script cannot write an empty list.
        ...(names.length > 0 ? { names } : {}),
        ...(described.length > 0 ? { described: JSON.stringify(Object.fromEntries(described)) } : {}),
      }
      const shard = shardOf(client.user_id, await store.claimShards())
      const { connectedAt, superseded } = await runScript(store, CONNECT, shard, {
        ...sweepBounds,
        id: fields.connection_id,
        fields: JSON.stringify(fields),
        content: JSON.stringify({ metadata }),
        max_per_user: maxConnectionsPerUser,
        max_connections: maxConnections,
      })
      const { connection_id, node_id } = fields
      knownShards.set(connection_id, shard)
      const made = { connection_id, node_id, connected_at: toTimestamp(connectedAt), superseded_count: superseded }
      return connectedRecord(input, made)
    },
    async heartbeat(id, metadata) {
      const content = metadata === undefined ? '' : `{"metadata":${readMetadata(metadata)}}`
      const given = { ...sweepBounds, id, content, sent: `${by} ${++sent}` }
      return inItsShard(id, (shard) => runScript(store, HEARTBEAT, shard, given))
    },
    disconnect(id, why) {
      const given = { ...sweepBounds, id, reason: toReason(why) ?? '', attempt: crypto.randomUUID() }
      return inItsShard(id, (shard) => runScript(store, DISCONNECT, shard, given))
    },
    async isCurrentInstance(instance) {
      checkClient(instance, ['user_id', 'client_id', 'instance_id'])
      return (await currentInstance(instance)) === instance.instance_id
    },
    currentInstance,
  }
}
