/** Reads what the scripts of the connection registry counted in each of the last minutes, shard by shard. */
import {
  CHURN_COMBINATIONS,
  type ChurnFilter,
  type ChurnMinute,
  ClientType,
  type ConnectionChurn,
  MINUTE_MS,
} from '../../contract/connections.js'
import { Reason, toTimestamp } from '../../contract/ids.js'
import type { InspectionContext } from '../../contract/page.js'
import { count, sumCounts } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { minutesReader } from '../table/minutes.js'
import { allShards } from '../table/shards.js'

/**
 * Maximum number of entries per minute: the combinations, a marker that the minute was counted, and the overflow
 * entries per client type.
 */
const ENTRIES = CHURN_COMBINATIONS + 1 + 2 * ClientType.options.length

const readMinutes = minutesReader('connections', ENTRIES)

const ENTRY = /^(?:opened|ended (\S+)) (\S+)(?: (.*))?$/s

/** Parses an entry if `filter` matches it. `reason` is `undefined` for a new connection. */
function readEntry(entry: string, filter: ChurnFilter): { reason: string | undefined } | undefined {
  const [found, reason, type, node] = ENTRY.exec(entry) ?? []
  if (found === undefined || !ClientType.safeParse(type).success) return undefined
  if (filter.client_type !== undefined && filter.client_type !== type) return undefined
  if (filter.node_id !== undefined && filter.node_id !== node) return undefined
  return { reason: reason === undefined ? undefined : Reason.parse(reason) }
}

/**
 * Reads the last minutes of all shards. @throws Refusal `unavailable` if a shard is down, because the sums would be
 * wrong.
 */
export async function readChurn(store: Store, filter: ChurnFilter, ctx: InspectionContext): Promise<ConnectionChurn> {
  const shards = await allShards(store, ctx)
  const now = await store.time(ctx)
  const parts = await Promise.all(shards.map((shard) => readMinutes(store, shard, now, ctx)))
  const minutes = new Map<number, Map<string | undefined, number>>()
  for (const { minute, entries } of parts.flat()) {
    const counts = minutes.get(minute) ?? new Map<string | undefined, number>()
    minutes.set(minute, counts)
    for (const { member, score } of entries) {
      const read = readEntry(member, filter)
      if (read) counts.set(read.reason, sumCounts([counts.get(read.reason) ?? 0, count(score)]))
    }
  }
  const items = [...minutes].sort(([a], [b]) => a - b).map(([minute, counts]) => toMinute(minute, counts))
  return { items, observed_at: toTimestamp(now) }
}

function toMinute(minute: number, counts: ReadonlyMap<string | undefined, number>): ChurnMinute {
  const ended = [...counts].filter((one): one is [string, number] => one[0] !== undefined).sort()
  return {
    minute: toTimestamp(minute * MINUTE_MS),
    opened: counts.get(undefined) ?? 0,
    ended: Object.fromEntries(ended),
  }
}
