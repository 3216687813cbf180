/** Reads the context registry of a shared store. */

import {
  CONTEXT_FAMILY,
  Context,
  type ContextRegistryInspector,
  countWorker,
  noWorkersIn,
  type WindowCounts,
  type WindowKey,
} from '../../internal/contract/contexts.js'
import { type Indexed, type InspectionContext, scanLimit } from '../../internal/contract/page.js'
import { presenceInspector, presenceTable } from '../presence/table.js'
import { shardOf } from '../store/keys.js'
import type { Store } from '../store/store.js'
import { readShards, shareOut } from '../table/shards.js'
import { gather } from '../table/users.js'

export const CONTEXTS = presenceTable(
  'contexts',
  'context_id',
  Context,
  ['task_id', 'window_id', 'user_id'],
  CONTEXT_FAMILY,
)

export function createContextInspector(store: Store): ContextRegistryInspector {
  const { list, get, count, ...rest } = presenceInspector(store, CONTEXTS)
  return {
    ...rest,
    listContexts: list,
    getContext: get,
    countContexts: count,
    countByWindow: (windowIds, ctx, windows) => countByWindow(store, windowIds, ctx, windows),
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
