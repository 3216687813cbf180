/** Reads which instances hold clients now, for inspectors and for hosts that check instances by reading. */
import type { ClientOfUser } from '../../contract/connections.js'
import type { InspectionContext } from '../../contract/page.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { readRows } from '../table/rows.js'
import { CONNECTIONS, endOf } from './format.js'

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
