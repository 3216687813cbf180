/** Reads what waits in the shards of a dispatcher. What is past its deadline is over, whether or not a node is left to say so. */
import type { DeliverySummary } from '../../contract/delivery.js'
import { AGE_SAMPLE } from '../../contract/delivery-rules.js'
import { toTimestamp } from '../../contract/ids.js'
import type { Ask } from '../../contract/page.js'
import { count, strings } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { readIndex } from '../table/rows.js'
import { instantsOf } from '../table/scores.js'
import { allShards } from '../table/shards.js'
import { type LegacyStream, readLegacy } from './legacy.js'

const NAME = 'delivery'
/** Expired commands of a shard that are told from the others one by one: with a node alive there are none for long. */
const EXPIRED_MAX = 1_000

interface Part {
  tracked: number
  due: number
  deadlines: number[]
  queuedSince: number[]
}

/** How many of `refs` are not acknowledged, and how many of these wait for a later attempt. */
async function countExpired(store: Store, shard: number, refs: string[], now: number, ask: Ask) {
  if (refs.length === 0) return { queued: 0, later: 0 }
  const scores = (name: string) => readIndex(store, ['ZMSCORE', store.key(shard, NAME, name), ...refs], ask)
  const [queued, wakes] = (await Promise.all([scores('queued'), scores('wakes')])).map((reply) =>
    Array.isArray(reply) ? reply : [],
  ) as [unknown[], unknown[]]
  return {
    queued: queued.filter((score) => score !== null).length,
    later: wakes.filter((score, i) => score !== null && queued[i] !== null && Number(score) > now).length,
  }
}

async function readShard(store: Store, shard: number, now: number, ask: Ask): Promise<Part> {
  const key = (name: string) => store.key(shard, NAME, name)
  const index = (name: string, command: string, ...args: string[]) =>
    readIndex(store, [command, key(name), ...args], ask)
  const [all, queued, later, deadline, sample, expired] = await Promise.all([
    index('deadlines', 'ZCOUNT', `(${now}`, '+inf'),
    index('queued', 'ZCARD'),
    index('wakes', 'ZCOUNT', `(${now}`, '+inf'),
    index('deadlines', 'ZRANGE', `(${now}`, '+inf', 'BYSCORE', 'LIMIT', '0', '1', 'WITHSCORES'),
    index('queued', 'ZRANGE', '0', String(AGE_SAMPLE - 1), 'WITHSCORES'),
    index('deadlines', 'ZRANGE', '-inf', String(now), 'BYSCORE', 'LIMIT', '0', String(EXPIRED_MAX)),
  ])
  const tracked = count(all)
  const over = await countExpired(store, shard, strings(expired), now, ask)
  // What is not acknowledged and does not wait for a later attempt.
  const due = count(queued) - over.queued - (count(later) - over.later)
  return {
    tracked,
    due: Math.min(tracked, Math.max(0, due)),
    deadlines: instantsOf(store, key('deadlines'), deadline, ask),
    queuedSince: instantsOf(store, key('queued'), sample, ask, new Set(strings(expired))).slice(0, tracked),
  }
}

/** The summary over all shards. */
export async function readSummary(store: Store, legacy: LegacyStream | undefined, ask: Ask): Promise<DeliverySummary> {
  const shards = await allShards(store, ask)
  const [now, depths] = await Promise.all([store.time(ask), readLegacy(store, legacy, ask)])
  const parts = await Promise.all(shards.map((shard) => readShard(store, shard, now, ask)))
  const sum = (of: (part: Part) => number) => parts.reduce((n, part) => n + of(part), 0)
  const deadlines = parts.flatMap((part) => part.deadlines)
  const sample = parts
    .flatMap((part) => part.queuedSince)
    .sort((a, b) => a - b)
    .slice(0, AGE_SAMPLE)
  const [oldest] = sample
  return {
    deployment_id: store.deploymentId,
    mode: 'shared_store',
    tracked_commands: sum((part) => part.tracked),
    due_commands: sum((part) => part.due),
    oldest_deadline_at: deadlines.length === 0 ? null : toTimestamp(Math.min(...deadlines)),
    oldest_queued_age_ms: oldest === undefined ? null : Math.max(0, Math.round(now - oldest)),
    sample_size: sample.length,
    legacy_stream_depth: depths.depth,
    legacy_pending_depth: depths.pending,
    observed_at: toTimestamp(now),
  }
}
