/** Format of a stored connection, for all readers of the registry. */
import * as z from 'zod'
import { type ClientOfUser, Connection, LifecycleReason } from '../../internal/contract/connections.js'
import { Reason } from '../../internal/contract/ids.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { Millis, readRows, type TableReader, timestampOf } from '../table/rows.js'

const StoredConnection = Connection.pick({
  connection_id: true,
  user_id: true,
  client_id: true,
  instance_id: true,
  client_type: true,
  node_id: true,
  metadata: true,
}).extend({
  /** Names of the actions; absent if there are none, because a script cannot write an empty list. */
  names: z.array(z.string()).optional(),
  /** Descriptions and schemas of the actions that have any, by name, as JSON; absent if there are none. */
  described: z.string().optional(),
  connected_at: Millis,
  seen_at: Millis,
  lost_after_ms: Millis,
  retention_ms: Millis,
  ended_at: Millis.optional(),
  end: z.enum(['superseded', 'disconnected']).optional(),
  reason: Reason.nullable().optional(),
  /** Absent for 0. */
  superseded: z.int().min(0).optional(),
})
type StoredConnection = z.infer<typeof StoredConnection>

/** Returns how a connection ended, or that its heartbeats stopped even if no script has recorded that. */
export function endOf(
  row: StoredConnection,
  now: number,
): { at: number; end: 'superseded' | 'disconnected'; reason: string | null } | null {
  const { ended_at, end = 'disconnected', reason = null, seen_at, lost_after_ms } = row
  if (ended_at !== undefined) return { at: ended_at, end, reason }
  const lostAt = seen_at + lost_after_ms
  return lostAt <= now ? { at: lostAt, end: 'disconnected', reason: LifecycleReason.enum.heartbeat_lost } : null
}

export const CONNECTIONS: TableReader<Connection, StoredConnection> = {
  name: 'connections',
  idOf: ({ connection_id }) => connection_id,
  schema: StoredConnection,
  indexes: ['user_id', 'node_id', 'ended_reason'],
  // A connection whose heartbeats stopped is added to this index only when a script sweeps it.
  isIndexed: (field, value) => field !== 'ended_reason' || value !== LifecycleReason.enum.heartbeat_lost,
  read(row, now) {
    const ended = endOf(row, now)
    if (ended && ended.at + row.retention_ms <= now) return undefined
    const { connection_id, user_id, client_id, instance_id, client_type, node_id, metadata } = row
    return {
      connection_id,
      user_id,
      client_id,
      instance_id,
      client_type,
      node_id,
      status: ended ? 'disconnected' : 'connected',
      connected_at: timestampOf(row.connected_at),
      last_seen_at: timestampOf(row.seen_at),
      disconnected_at: ended ? timestampOf(ended.at) : null,
      ended_reason: ended?.reason ?? null,
      superseded_count: row.superseded ?? 0,
      actions: row.names ?? [],
      metadata,
    }
  },
}

// Reads which instances hold clients now, for inspectors and for hosts that check instances by reading.

/** Returns the instance that holds (user, client) now, or `null`. */
export async function readCurrentInstance(
  store: Store,
  client: ClientOfUser,
  ctx: InspectionContext,
): Promise<string | null> {
  const [current = null] = await readCurrentInstances(store, [client], ctx)
  return current
}

/** Returns the instances that hold `clients` now, in their order, with two reads per shard involved. */
export async function readCurrentInstances(
  store: Store,
  clients: readonly ClientOfUser[],
  ctx: InspectionContext,
): Promise<(string | null)[]> {
  const [shards, now] = await Promise.all([store.shards(ctx), store.time(ctx)])
  const places = new Map<number, number[]>()
  for (const [i, { user_id }] of clients.entries()) {
    const shard = shardOf(user_id, shards)
    places.set(shard, [...(places.get(shard) ?? []), i])
  }
  const current: (string | null)[] = clients.map(() => null)
  await Promise.all([...places].map(([shard, here]) => readShard(shard, here)))
  return current

  async function readShard(shard: number, here: readonly number[]): Promise<void> {
    const asked = here.map((i) => clients[i] as ClientOfUser)
    const keys = asked.map(({ user_id, client_id }) =>
      store.key(shard, CONNECTIONS.name, 'current', user_id, client_id),
    )
    const ids = [await store.command(['MGET', ...keys], keys[0] as string, ctx)].flat()
    const known = ids.filter((id) => typeof id === 'string')
    const rows = await readRows(store, CONNECTIONS, shard, known, ctx)
    const byId = new Map(rows.map(({ id, row }) => [id, row]))
    for (const [k, { user_id, client_id }] of asked.entries()) {
      const row = byId.get(String(ids[k]))
      const holds = row?.user_id === user_id && row.client_id === client_id
      if (holds && !endOf(row, now)) current[here[k] as number] = row.instance_id
    }
  }
}
