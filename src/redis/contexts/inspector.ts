/** Reads the context registry of a shared store. */

import * as z from 'zod'
import {
  CONTEXT_FAMILY,
  Context,
  type ContextCounts,
  type ContextRegistryInspector,
  countWorker,
  foldContext,
  noWorkersIn,
  type WindowCounts,
  type WindowKey,
} from '../../contract/contexts.js'
import { countBy } from '../../contract/observation.js'
import { type Indexed, type InspectionContext, scanLimit } from '../../contract/page.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { countAll, readPage } from '../table/pages.js'
import { getRecord, Millis, type TableReader, timestampOf } from '../table/rows.js'
import { readShards, shareOut, versioned } from '../table/shards.js'
import { gather, listUserIds, observeUsers } from '../table/users.js'

// Format of a stored context.

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
  indexes: ['task_id', 'window_id', 'user_id'],
  // Field by field, because spreading the fifty rows of a page costs more than parsing them.
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
    ...versioned(store, [CONTEXTS.name]),
    listContexts: (filter, page, ctx) => readPage(store, CONTEXTS, filter, page, ctx),
    getContext: async (id, ctx) => (await getRecord(store, CONTEXTS, id, ctx))?.record ?? null,
    async countContexts(filter, ctx): Promise<ContextCounts> {
      const { records, indexed } = await countAll(store, CONTEXTS, filter, ctx)
      return {
        ...indexed,
        ...countBy(CONTEXT_FAMILY.counted, records),
      }
    },
    countByWindow: (windowIds, ctx, windows) => countByWindow(store, windowIds, ctx, windows),
    listUserIds: (page, ctx) => listUserIds(store, CONTEXTS.name, page, ctx),
    observeUsers: (userIds, ctx) => observeUsers(store, CONTEXTS, userIds, ctx, foldContext),
  }
}

/**
 * Counts the contexts of windows with one read script per shard, whatever the number of windows. A window whose
 * contexts were not all read is left out. With `windows`, a context only counts in a window of its own user, and only
 * that user's shard is queried.
 */
async function countByWindow(
  store: Store,
  windowIds: readonly string[],
  ctx: InspectionContext,
  windows: readonly WindowKey[] | undefined,
): Promise<WindowCounts[] & Indexed> {
  const count = await store.shards(ctx)
  const now = await store.time(ctx)
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
    scanLimit(ctx),
    [...asked.values()].map((ids) => ids.length),
  )
  let examined = 0
  await readShards(shards, ctx, async (shard) => {
    const values = asked.get(shard) as string[]
    const wanted = { index: 'window_id', values, most: shares[shards.indexOf(shard)] as number, shards: shards.length }
    await gather(store, CONTEXTS, shard, wanted, ctx, (window_id, { rows, isBad, isTruncated }) => {
      examined += rows.length
      if (isTruncated || isBad) counts.delete(window_id)
      const [counted, owner] = [counts.get(window_id), owners.get(window_id)]
      for (const row of counted ? rows : []) {
        const context = row && CONTEXTS.read(row, now)
        if (context?.window_id === window_id && (!owner || owner.user_id === context.user_id))
          countWorker(counted as WindowCounts, context)
      }
    })
    asked.delete(shard)
  })
  // A shard that is down may hold contexts of any window that was queried there.
  for (const lost of asked.values()) for (const window_id of lost) counts.delete(window_id)
  const isTruncated = counts.size < new Set(windowIds).size
  return Object.assign([...counts.values()], { examined, ...(isTruncated ? { truncated: true } : {}) })
}
