/** Reads what the scripts of the correlator have counted, shard by shard, each at one instant. */
import { toTimestamp } from '../../contract/ids.js'
import type { Ask } from '../../contract/page.js'
import { CallCounters, type RpcSummary } from '../../contract/rpc.js'
import { count, listOf, type StoreReply, strings, total } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow, placesOf } from '../table/rows.js'
import { allShards } from '../table/shards.js'
import { Millis } from '../table/timestamp.js'
import { CALLS } from './format.js'

const COUNTERS = CallCounters.keyof().options
/** Calls that are looked at to find the oldest: the first is, unless somebody else has written there. */
const OLDEST_MAX = 4

const SUMMARY = defineReadScript(
  {
    args: ['at'],
    answer: ([counts, pending = null, overdue = null, ids = null, rows]) => ({
      counts: listOf(counts),
      pending: count(pending),
      overdue: count(overdue),
      oldest: strings(ids).map((id, i) => ({ id, value: listOf(rows)[i] ?? null })),
    }),
  },
  `
local t = '${CALLS.name}'
local counts = read('HMGET', K(t, 'counts'), 'since', ${COUNTERS.map((name) => `'${name}'`).join(', ')}) or {}
local pending = read('ZCOUNT', K(t, 'leaves'), '(' .. at, '+inf') or 0
local overdue = read('ZCOUNT', K(t, 'leaves'), '-inf', at) or 0
local ids, rows = read('ZRANGE', K(t, 'all'), 0, ${OLDEST_MAX - 1}) or {}, {}
for i, id in ipairs(ids) do rows[i] = row(t, id) end
return { foreign, counts, pending, overdue, ids, rows }`,
)

async function partOf(store: Store, shard: number, now: number, ask: Ask) {
  const { counts, oldest, ...sizes } = await readShard(store, SUMMARY, shard, { at: now }, ask)
  const places = await placesOf(store, CALLS, shard, oldest, ask)
  const [since = null, ...counted] = counts
  return {
    ...sizes,
    counted: counted.map(count),
    since: sinceOf(store, shard, since, ask),
    startedAt: places.flatMap(({ row }) => (row ? [row.started_at] : []))[0],
  }
}

function sinceOf(store: Store, shard: number, reply: StoreReply, ask: Ask): number | undefined {
  if (reply === null) return undefined
  const since = Millis.safeParse(Number(reply))
  if (!since.success) store.onError(new BadRow(`${store.key(shard, CALLS.name, 'counts')} has a wrong since`), ask)
  return since.data
}

/** The summary over all shards. @throws Refusal `unavailable` where one of them is lost: a sum without it would be none. */
export async function readCallSummary(store: Store, ask: Ask): Promise<RpcSummary> {
  const shards = await allShards(store, ask)
  const now = await store.time(ask)
  const parts = await Promise.all(shards.map((shard) => partOf(store, shard, now, ask)))
  type Part = (typeof parts)[number]
  const sum = (of: (part: Part) => number) => total(parts.map(of))
  const earliest = (of: (part: Part) => number | undefined) =>
    parts.map(of).reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a), undefined)
  const startedAt = earliest((part) => part.startedAt)
  const since = earliest((part) => part.since)
  return {
    pending: sum((part) => part.pending),
    oldest_started_at: startedAt === undefined ? null : toTimestamp(startedAt),
    oldest_age_ms: startedAt === undefined ? null : Math.max(0, Math.round(now - startedAt)),
    overdue: sum((part) => part.overdue),
    counters: Object.fromEntries(
      COUNTERS.map((name, i) => [name, sum(({ counted }) => counted[i] ?? 0)]),
    ) as CallCounters,
    counting_since: since === undefined ? null : toTimestamp(since),
    observed_at: toTimestamp(now),
  }
}
