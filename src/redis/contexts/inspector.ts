/** Reads the context registry of a shared store. */
import * as z from 'zod'
import { ClientType } from '../../contract/connections.js'
import {
  Context,
  type ContextCounts,
  type ContextRegistryInspector,
  ContextStatus,
  countWorker,
  noWorkersIn,
  Ownership,
  tellContext,
  type WindowCounts,
  type WindowKey,
} from '../../contract/contexts.js'
import { type Ask, examinable, type Indexed } from '../../contract/page.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { countAll, tally } from '../table/counts.js'
import { gather } from '../table/gather.js'
import { readPage } from '../table/pages.js'
import { getRecord, type TableReader } from '../table/rows.js'
import { readShards, shareOut } from '../table/shards.js'
import { Millis, timestampOf } from '../table/timestamp.js'
import { listUserIds, observeUsers } from '../table/users.js'

const StoredContext = Context.omit({ status: true, task_assigned_at: true, created_at: true, updated_at: true }).extend(
  {
    status: z.enum(['active', 'idle', 'closed']),
    task_assigned_at: Millis.nullable(),
    created_at: Millis,
    updated_at: Millis,
    ttl_ms: Millis,
  },
)

export const CONTEXTS: TableReader<Context, z.infer<typeof StoredContext>> = {
  name: 'contexts',
  idOf: ({ context_id }) => context_id,
  schema: StoredContext,
  indexes: ['window_id', 'user_id'],
  // Field by field: a page is fifty of these, and spreading them costs more than parsing.
  read(row, now) {
    const silence = now - row.updated_at
    if (silence >= (row.status === 'closed' ? 1 : 2) * row.ttl_ms) return undefined
    return {
      context_id: row.context_id,
      user_id: row.user_id,
      client_id: row.client_id,
      instance_id: row.instance_id,
      client_type: row.client_type,
      status: row.status !== 'closed' && silence >= row.ttl_ms ? 'stale' : row.status,
      ownership: row.ownership,
      window_id: row.window_id,
      task_id: row.task_id,
      task_assigned_at: row.task_assigned_at === null ? null : timestampOf(row.task_assigned_at),
      created_at: timestampOf(row.created_at),
      updated_at: timestampOf(row.updated_at),
    }
  },
}

export function createContextInspector(store: Store): ContextRegistryInspector {
  return {
    listContexts: (filter, page, ask) => readPage(store, CONTEXTS, filter, page, ask),
    getContext: async (id, ask) => (await getRecord(store, CONTEXTS, id, ask))?.record ?? null,
    async countContexts(filter, ask): Promise<ContextCounts> {
      const { records, indexed } = await countAll(store, CONTEXTS, filter, ask)
      return {
        ...indexed,
        total: records.length,
        by_status: tally(ContextStatus.options, records, ({ status }) => status),
        by_client_type: tally(ClientType.options, records, ({ client_type }) => client_type),
        by_ownership: tally(Ownership.options, records, ({ ownership }) => ownership),
      }
    },
    countByWindow: (windowIds, ask, windows) => countByWindow(store, windowIds, ask, windows),
    listUserIds: (page, ask) => listUserIds(store, CONTEXTS.name, page, ask),
    observeUsers: (userIds, ask) => observeUsers(store, CONTEXTS, userIds, ask, tellContext),
  }
}

/**
 * One question a shard, whatever the number of windows. A window whose contexts were not all reached is left out. Given
 * whose they are, a context counts only in a window of its own user and client, whose shard alone is asked.
 */
async function countByWindow(
  store: Store,
  windowIds: readonly string[],
  ask: Ask,
  windows: readonly WindowKey[] | undefined,
): Promise<WindowCounts[] & Indexed> {
  const count = await store.shards(ask)
  const now = await store.time(ask)
  const owners = new Map(windows?.map((window) => [window.window_id, window]))
  const asked = new Map<number, string[]>()
  for (const window_id of new Set(windowIds)) {
    const owner = owners.get(window_id)
    const shards = owner ? [shardOf(owner.user_id, count)] : Array.from({ length: count }, (_, shard) => shard)
    for (const shard of shards) asked.set(shard, [...(asked.get(shard) ?? []), window_id])
  }
  const counts = new Map(windowIds.map((window_id): [string, WindowCounts] => [window_id, noWorkersIn(window_id)]))
  const shards = [...asked.keys()]
  const shares = shareOut(
    examinable(ask),
    [...asked.values()].map((ids) => ids.length),
  )
  let examined = 0
  await readShards(shards, ask, async (shard) => {
    const values = asked.get(shard) as string[]
    const wanted = { index: 'window_id', values, most: shares[shards.indexOf(shard)] as number, shards: shards.length }
    await gather(store, CONTEXTS, shard, wanted, ask, (window_id, { rows, isCut }) => {
      examined += rows.length
      if (isCut) counts.delete(window_id)
      const [counted, owner] = [counts.get(window_id), owners.get(window_id)]
      for (const row of counted ? rows : []) {
        const context = row && CONTEXTS.read(row, now)
        if (context?.window_id === window_id && isOf(owner, context)) countWorker(counted as WindowCounts, context)
      }
    })
    asked.delete(shard)
  })
  // What a shard that is lost holds may be in any window that it was asked for.
  for (const lost of asked.values()) for (const window_id of lost) counts.delete(window_id)
  const isTruncated = counts.size < new Set(windowIds).size
  return Object.assign([...counts.values()], { examined, ...(isTruncated ? { truncated: true } : {}) })
}

const isOf = (owner: WindowKey | undefined, { user_id, client_id }: Context) =>
  owner === undefined || (owner.user_id === user_id && owner.client_id === client_id)
