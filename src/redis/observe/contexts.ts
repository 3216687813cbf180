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
import { EXAMINED_MAX } from '../../contract/limits.js'
import type { Ask } from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { count, strings } from '../reply.js'
import type { Store } from '../store.js'
import { countAll, distinct, tally } from './counts.js'
import { readPage } from './pages.js'
import { getRecord, listUserIds, observeUsers, readIndex, readRows, type TableReader } from './rows.js'
import { allShards } from './shards.js'
import { Millis, timestampOf } from './stored.js'

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
    async countContexts(filter, ask): Promise<ContextCounts | null> {
      const found = await countAll(store, CONTEXTS, filter, ask)
      if (!found) return null
      const { records, lost } = found
      return {
        ...lost,
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

/** Three rounds whatever the number of windows: how many contexts each has, which, and what they are. */
async function countByWindow(store: Store, windowIds: readonly string[], ask: Ask): Promise<WindowCounts[]> {
  const shards = await allShards(store, ask)
  const now = store.time(ask)
  now.catch(() => {})
  const indexes = windowIds.flatMap((window) =>
    shards.map((shard) => ({ window, shard, key: store.key(shard, CONTEXTS.name, 'window_id', window) })),
  )
  const sizes = await Promise.all(indexes.map(({ key }) => readIndex(store, ['ZCARD', key], ask)))
  const present = indexes.map((index, i) => ({ ...index, size: count(sizes[i] ?? 0) })).filter(({ size }) => size > 0)
  if (present.reduce((sum, { size }) => sum + size, 0) > EXAMINED_MAX)
    throw new Refusal('unavailable', `more than ${EXAMINED_MAX} contexts in the windows of one answer`)
  const counts = new Map<string, WindowCounts>()
  await Promise.all(
    present.map(async ({ window, shard, key, size }) => {
      const ids = strings(await readIndex(store, ['ZRANGE', key, '0', String(size - 1)], ask))
      for (const { row } of await readRows(store, CONTEXTS, shard, ids, ask)) {
        const context = CONTEXTS.read(row, await now)
        if (context?.window_id !== window || context.ownership !== 'worker') continue
        if (context.status === 'closed' || context.status === 'stale') continue
        const counted = counts.get(window) ?? { window_id: window, worker_count: 0, idle_count: 0, busy_count: 0 }
        counts.set(window, counted)
        counted.worker_count++
        if (context.task_id !== null) counted.busy_count++
        else if (context.status === 'idle') counted.idle_count++
      }
    }),
  )
  return [...counts.values()]
}
