/** Reads the context registry of a shared store. */
import * as z from 'zod'
import { ClientType } from '../../contract/connections.js'
import {
  Context,
  type ContextCounts,
  type ContextRegistryInspector,
  ContextStatus,
  Ownership,
  type WindowCounts,
} from '../../contract/contexts.js'
import { type Ask, examinable, type Indexed } from '../../contract/page.js'
import type { Store } from '../store.js'
import { countAll, distinct, tally } from './counts.js'
import { gather } from './gather.js'
import { readPage } from './pages.js'
import { getRecord, type TableReader } from './rows.js'
import { allShards, readShards, shareOut } from './shards.js'
import { Millis, timestampOf } from './stored.js'
import { listUserIds, observeUsers } from './users.js'

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

const byStatus = (contexts: Context[]) => tally(ContextStatus.options, contexts, ({ status }) => status)

export function createContextInspector(store: Store): ContextRegistryInspector {
  return {
    listContexts: (filter, page, ask) => readPage(store, CONTEXTS, filter, page, ask),
    getContext: async (id, ask) => (await getRecord(store, CONTEXTS, id, ask))?.record ?? null,
    async countContexts(filter, ask): Promise<ContextCounts> {
      const { records, indexed } = await countAll(store, CONTEXTS, filter, ask)
      return {
        ...indexed,
        total: records.length,
        by_status: byStatus(records),
        by_client_type: tally(ClientType.options, records, ({ client_type }) => client_type),
        by_ownership: tally(Ownership.options, records, ({ ownership }) => ownership),
      }
    },
    countByWindow: (windowIds, ask) => countByWindow(store, windowIds, ask),
    listUserIds: (page, ask) => listUserIds(store, CONTEXTS.name, page, ask),
    observeUsers: (userIds, ask) =>
      observeUsers(store, CONTEXTS, userIds, ask, (contexts) => ({
        observed_client_types: distinct(contexts, ({ client_type }) => client_type),
        observed_contexts: contexts.length,
        contexts_by_status: byStatus(contexts),
        observed_client_ids: distinct(contexts, ({ client_id }) => client_id),
      })),
  }
}

/** One question a shard, whatever the number of windows. A window whose contexts were not all reached is left out. */
async function countByWindow(store: Store, windowIds: readonly string[], ask: Ask): Promise<WindowCounts[] & Indexed> {
  if (windowIds.length === 0) return []
  const shards = await allShards(store, ask)
  const now = await store.time(ask)
  const counts = new Map(windowIds.map((window_id): [string, WindowCounts] => [window_id, noneIn(window_id)]))
  const shares = shareOut(examinable(ask), Array(shards.length).fill(1))
  const wanted = { index: 'window_id', values: windowIds, shards: shards.length }
  let examined = 0
  const { truncated } = await readShards(shards, ask, (shard) =>
    gather(store, CONTEXTS, shard, { ...wanted, most: shares[shard] as number }, ask, (window_id, { rows, isCut }) => {
      examined += rows.length
      if (isCut) counts.delete(window_id)
      const counted = counts.get(window_id)
      if (!counted) return
      for (const row of rows) {
        const context = row && CONTEXTS.read(row, now)
        if (context?.window_id === window_id) add(counted, context)
      }
    }),
  )
  // What a lost shard holds may be in any of them.
  const found: WindowCounts[] & Indexed = truncated ? [] : [...counts.values()]
  if (found.length < windowIds.length) found.truncated = true
  found.examined = examined
  return found
}

const noneIn = (window_id: string): WindowCounts => ({ window_id, worker_count: 0, idle_count: 0, busy_count: 0 })

function add(counts: WindowCounts, context: Context): void {
  if (context.ownership !== 'worker' || context.status === 'closed' || context.status === 'stale') return
  counts.worker_count++
  if (context.task_id !== null) counts.busy_count++
  else if (context.status === 'idle') counts.idle_count++
}
