/** Which instance holds a client now, for the inspectors of the correlator and whoever fences by reading. */
import type { Ask } from '../../contract/page.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { readRows } from '../table/rows.js'
import { CONNECTIONS, endOf } from './format.js'

/** The instance that holds (user, client) now, or `null`. */
export async function readCurrentInstance(
  store: Store,
  client: { user_id: string; client_id: string },
  ask: Ask,
): Promise<string | null> {
  const [shards, now] = await Promise.all([store.shards(ask), store.time(ask)])
  const shard = shardOf(client.user_id, shards)
  const key = store.key(shard, CONNECTIONS.name, 'current', client.user_id, client.client_id)
  const [id] = [await store.command(['MGET', key], key, ask)].flat()
  if (typeof id !== 'string') return null
  const [found] = await readRows(store, CONNECTIONS, shard, [id], ask)
  const row = found?.row
  const holds = row?.user_id === client.user_id && row.client_id === client.client_id
  return holds && !endOf(row, now) ? row.instance_id : null
}
