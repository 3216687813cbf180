/** Reads the viewer streams of a deployment. */

import type * as z from 'zod'
import { type InspectionContext, scanLimit } from '../../internal/contract/page.js'
import { type SubscriptionInspector, SubscriptionRow } from '../../internal/contract/subscriptions.js'
import type { Store } from '../store/store.js'
import { readPage } from '../table/pages.js'
import { Millis, readIndex, type TableReader } from '../table/rows.js'
import { allShards, readShards } from '../table/shards.js'
import { gather } from '../table/users.js'

// Format of a stored viewer stream: it exists as long as its node reports it.

const StoredSubscription = SubscriptionRow.extend({ until_ms: Millis })

const SUBSCRIPTIONS: TableReader<SubscriptionRow, z.infer<typeof StoredSubscription>> = {
  name: 'subscriptions',
  idOf: ({ subscription_id }) => subscription_id,
  schema: StoredSubscription,
  indexes: ['session_id', 'user_id', 'site_id'],
  read: ({ until_ms, ...row }, now) => (until_ms <= now ? undefined : row),
}

/** Key of a shard, `subscriptions:beyond`: until when some node has more streams than it reports. */
export const UNREPORTED_UNTIL = 'beyond'

export function createSubscriptionInspector(store: Store): SubscriptionInspector {
  return {
    listSubscriptions: (filter, page, ctx) => readPage(store, SUBSCRIPTIONS, filter, page, ctx),
    countViewers: (sessionIds, ctx) => countViewers(store, sessionIds, ctx),
  }
}

/**
 * Counts the viewers of sessions with one read script per shard, because streams are in the shards of their viewers.
 * The count is `null` for a session whose streams were not all read, and for all sessions if a shard is down or a node
 * reports fewer streams than it has.
 */
async function countViewers(
  store: Store,
  sessionIds: readonly string[],
  ctx: InspectionContext,
): Promise<(number | null)[]> {
  const [shards, now] = await Promise.all([allShards(store, ctx), store.time(ctx)])
  const viewers = new Map<string, number | null>(sessionIds.map((id) => [id, 0]))
  const values = [...viewers.keys()]
  if (values.length === 0) return []
  const wanted = {
    index: 'session_id',
    values,
    most: Math.floor(scanLimit(ctx) / shards.length),
    shards: shards.length,
  }
  const { answers, truncated } = await readShards(shards, ctx, async (shard) => {
    const key = store.key(shard, SUBSCRIPTIONS.name, UNREPORTED_UNTIL)
    const [beyond] = await Promise.all([
      readIndex(store, ['GET', key], ctx),
      gather(store, SUBSCRIPTIONS, shard, wanted, ctx, (sessionId, { rows, isBad, isTruncated }) => {
        const before = viewers.get(sessionId) ?? null
        const open = rows.filter((row) => row && SUBSCRIPTIONS.read(row, now)?.session_id === sessionId).length
        viewers.set(sessionId, before === null || isBad || isTruncated ? null : before + open)
      }),
    ])
    return beyond !== null && !(Number(beyond) <= now)
  })
  const isShort = truncated || answers.includes(true)
  return sessionIds.map((id) => (isShort ? null : (viewers.get(id) ?? null)))
}
