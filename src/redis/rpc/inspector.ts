/** Reads the RPC correlator of a shared store. */

import * as z from 'zod'
import { createActionCounts } from '../../internal/contract/call-counts.js'
import type { Instance } from '../../internal/contract/connections.js'
import { compareIds, toTimestamp } from '../../internal/contract/ids.js'
import { toJson } from '../../internal/contract/json.js'
import { LATENCY_BOUNDS_MS } from '../../internal/contract/latency.js'
import { PAGE_MAX } from '../../internal/contract/limits.js'
import type { InspectionContext, Page, PageQuery } from '../../internal/contract/page.js'
import {
  admitsCall,
  CallCounters,
  type CallOutcome,
  ENDED_CALL_KEPT_MS,
  EndedCall,
  foldCall,
  ObservedAction,
  type ObservedCalls,
  PendingCall,
  type PendingCallFilter,
  type RpcInspector,
  type RpcSummaryInput,
} from '../../internal/contract/rpc.js'
import { Refusal, type RefusalCode } from '../../internal/refusal.js'
import { readCurrentInstance } from '../connections/format.js'
import { count, listOf, type StoreReply, strings, sumCounts } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { indexOf, mergePage, type Run, readPage, type Stretch, shardRange } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import {
  BadRow,
  getRecord,
  locateRows,
  Millis,
  readIndex,
  readRows,
  type TableReader,
  timestampOf,
} from '../table/rows.js'
import { allShards } from '../table/shards.js'
import { readSpan, type Scores, SPAN_MAX, scoreOf } from '../table/spans.js'
import { listUserIds, observeUsers } from '../table/users.js'
import { scripts } from './rpc.lua'

// Formats of a stored pending call and its reply. A reply is JSON; a refusal of this library stays a refusal, and an
// Error stays an Error.

const StoredCall = PendingCall.omit({ age_ms: true, overdue: true }).extend({
  /** Position among the calls of all shards. */
  seq: z.number().min(0).optional(),
  started_at: Millis,
  deadline_at: Millis.nullable(),
  /** When an observed call that is not reported again leaves. */
  lease_at: Millis.optional(),
})
type StoredCall = z.infer<typeof StoredCall>

/** Calls without a recorded end. The node of an overdue call has died or is late; another node removes it. */
const CALLS: TableReader<PendingCall, StoredCall> = {
  name: 'calls',
  idOf: ({ correlation_id }) => correlation_id,
  schema: StoredCall,
  indexes: ['user_id'],
  read({ seq: _, started_at, deadline_at, lease_at, ...row }, now) {
    if (lease_at !== undefined && lease_at <= now) return undefined
    return {
      ...row,
      started_at: timestampOf(started_at),
      deadline_at: deadline_at === null ? null : timestampOf(deadline_at),
      age_ms: Math.max(0, now - started_at),
      overdue: deadline_at !== null && deadline_at <= now,
    }
  },
}

const StoredEndedCall = EndedCall.omit({ duration_ms: true }).extend({ started_at: Millis, ended_at: Millis })

const ENDED_CALLS: TableReader<EndedCall, z.infer<typeof StoredEndedCall>> = {
  name: 'ended-calls',
  idOf: ({ correlation_id }) => correlation_id,
  schema: StoredEndedCall,
  indexes: ['user_id'],
  read({ started_at, ended_at, connection_reason, ...row }, now) {
    if (ended_at + ENDED_CALL_KEPT_MS <= now) return undefined
    return {
      ...row,
      started_at: timestampOf(started_at),
      ended_at: timestampOf(ended_at),
      duration_ms: Math.max(0, ended_at - started_at),
      ...(row.observed && { connection_reason }),
    }
  },
}

/** Maximum size of one reply in bytes: a result of 1 MiB, the maximum for an action, and its envelope. */
const REPLY_BYTES = 1_048_576 + 65_536

/** Encodes a reply. @throws Refusal `invalid_input` if it is not JSON, `payload_too_large`. */
export function encodeReply(outcome: CallOutcome): string {
  if (outcome.ok) return toJson({ ok: true, result: outcome.result ?? null }, REPLY_BYTES).text
  const { error } = outcome
  if (error instanceof Refusal)
    return toJson({ ok: false, refusal: error.code, detail: error.detail ?? null }, REPLY_BYTES).text
  // Name and message are not enumerable: without this it would become an empty object.
  if (error instanceof Error) {
    const fields = { ...error, name: error.name, message: error.message }
    return toJson({ ok: false, error: fields, is_error: true }, REPLY_BYTES).text
  }
  return toJson({ ok: false, error: error ?? null }, REPLY_BYTES).text
}

/** Creates an Error with the stored fields; its stack is the one of the reading process. */
function toError(fields: object): Error {
  const error = new Error()
  for (const [field, value] of Object.entries(fields)) {
    const enumerable = field !== 'name' && field !== 'message'
    // Defined rather than assigned, because a field may have any name, including `__proto__`.
    Object.defineProperty(error, field, { value, enumerable, configurable: true, writable: true })
  }
  return error
}

export function decodeReply(text: string): { ok: true; result: unknown } | { ok: false; error: unknown } {
  const reply: unknown = JSON.parse(text)
  if (reply === null || typeof reply !== 'object') throw new Refusal('unavailable', 'a stored reply is not an object')
  const { ok, result, error, refusal, detail, is_error } = reply as Record<string, unknown>
  if (ok === true) return { ok, result }
  if (is_error === true && error !== null && typeof error === 'object') return { ok: false, error: toError(error) }
  if (typeof refusal !== 'string') return { ok: false, error }
  return { ok: false, error: new Refusal(refusal as RefusalCode, typeof detail === 'string' ? detail : undefined) }
}

// Lists pending calls in one order across all shards, oldest first by default.

/** Maximum number of overdue calls that are sorted in memory; if there are more, all calls are scanned. */
const FEW = 500

/** Returns a page of the calls under `filter`. @throws Refusal as `mergePage`. */
async function listPending(
  store: Store,
  filter: PendingCallFilter,
  { order = 'oldest', ...rest }: PageQuery,
  ctx: InspectionContext,
): Promise<Page<PendingCall>> {
  const page = { ...rest, order }
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  if (!filter.overdue) return readPage(store, CALLS, filter, page, ctx)
  const now = await store.time(ctx)
  const read = async (shard: number, scores: Scores, stretch: Stretch) =>
    (await readOverdue(store, shard, filter, scores, stretch, now, ctx)) ??
    readOn(store, shard, filter, scores, stretch, now, ctx)
  return mergePage(reach, page, ctx, read)
}

/** Reads a range of the index of all calls, or of one user's calls. */
async function readOn(
  store: Store,
  shard: number,
  filter: PendingCallFilter,
  scores: Scores,
  { round, budget }: Stretch,
  now: number,
  ctx: InspectionContext,
): Promise<Run<PendingCall>> {
  const most = Math.min(round === 0 ? PAGE_MAX : SPAN_MAX, budget)
  const { entries, isTruncated } = await readSpan(store, CALLS, shard, indexOf(CALLS, filter), scores, most, ctx)
  return {
    shard,
    isTruncated,
    examined: entries.length,
    entries: entries.map(({ score, row, isBad }) => {
      const call = row && CALLS.read(row, now)
      return {
        position: { shard, sequence: score },
        record: call && admitsCall(filter, call) ? call : undefined,
        isBad,
      }
    }),
  }
}

/** Returns all overdue calls of a shard from the index of deadlines, or `null` if there are too many. */
async function readOverdue(
  store: Store,
  shard: number,
  filter: PendingCallFilter,
  { from, order }: Scores,
  { budget }: Stretch,
  now: number,
  ctx: InspectionContext,
): Promise<Run<PendingCall> | null> {
  const index = filter.user_id === undefined ? ['leaves'] : ['live', filter.user_id]
  const key = store.key(shard, CALLS.name, ...index)
  const most = Math.min(FEW, budget)
  const range = ['ZRANGE', key, '-inf', String(now), 'BYSCORE', 'LIMIT', '0', String(most + 1)]
  const ids = strings(await readIndex(store, range, ctx))
  if (ids.length > most) return null
  const found = await readRows(store, CALLS, shard, ids, ctx)
  const direction = order === 'newest' ? -1 : 1
  const after = scoreOf(from)
  const isBehind = (sequence: number) => {
    if (sequence === after) return !from.startsWith('(')
    return direction * sequence > direction * after
  }
  const entries = found.flatMap(({ row, isBad }) => {
    // The position of an invalid row is unknown: it is reported on the first page.
    const sequence = row?.seq ?? 0
    const call = row && CALLS.read(row, now)
    const isShown = row ? isBehind(sequence) : isBad && isBehind(1)
    if (!isShown) return []
    return [{ position: { shard, sequence }, record: call && admitsCall(filter, call) ? call : undefined, isBad }]
  })
  entries.sort((a, b) => direction * (a.position.sequence - b.position.sequence))
  return { shard, entries, examined: ids.length, isTruncated: false }
}

// Reads the counters of the correlator's scripts, shard by shard, each at one instant.

const COUNTERS = CallCounters.keyof().options

const SUMMARY = defineReadScript(
  {
    args: ['at'],
    constants: { COUNTERS },
    answer: ([counts, pending = null, overdue = null, ids = null, rows, actions]) => ({
      counts: listOf(counts),
      actions: listOf(actions).filter((_, i) => i % 2 === 1),
      pending: count(pending),
      overdue: count(overdue),
      oldest: strings(ids).map((id, i) => ({ id, value: listOf(rows)[i] ?? null })),
    }),
  },
  scripts.summary,
)

async function partOf(store: Store, shard: number, now: number, ctx: InspectionContext) {
  const { counts, oldest, actions, ...sizes } = await readShard(store, SUMMARY, shard, { at: now }, ctx)
  const places = await locateRows(store, CALLS, shard, oldest, ctx)
  const [evicted = null, unrecorded = null, since = null, ...counted] = counts
  return {
    ...sizes,
    actions: actions.flatMap((text) => actionOf(store, shard, text, ctx) ?? []),
    evicted: count(evicted),
    unrecorded: count(unrecorded),
    counted: counted.map(count),
    since: sinceOf(store, shard, since, ctx),
    startedAt: places.flatMap(({ row }) => (row ? [row.started_at] : []))[0],
  }
}

function sinceOf(store: Store, shard: number, reply: StoreReply, ctx: InspectionContext): number | undefined {
  if (reply === null) return undefined
  const since = Millis.safeParse(Number(reply))
  if (!since.success) store.onError(new BadRow(`${store.key(shard, CALLS.name, 'counts')} has an invalid "since"`), ctx)
  return since.data
}

/** Parses the counts of an observed action. */
function actionOf(store: Store, shard: number, text: StoreReply, ctx: InspectionContext): ObservedAction | undefined {
  try {
    return ObservedAction.parse(JSON.parse(String(text)))
  } catch {
    store.onError(new BadRow(`${store.key(shard, CALLS.name, 'observed-actions')} has an invalid value`), ctx)
    return undefined
  }
}

/** Returns the counts of observed calls of all shards; `null` where there are none. */
function observedOf(
  parts: readonly { actions: ObservedAction[]; evicted: number; unrecorded: number }[],
): ObservedCalls | null {
  const counts = createActionCounts()
  const byName = (a: ObservedAction, b: ObservedAction) => compareIds(a.action, b.action)
  for (const action of parts.flatMap(({ actions }) => actions).sort(byName)) counts.add(action)
  const actions = counts.list()
  const evicted = sumCounts(parts.map((part) => part.evicted))
  const unrecorded = sumCounts(parts.map((part) => part.unrecorded))
  return actions.length === 0 ? null : { bounds_ms: [...LATENCY_BOUNDS_MS], actions, evicted, unrecorded }
}

/**
 * Returns the summary of all shards. @throws Refusal `unavailable` if a shard is down, because the sums would be wrong.
 */
async function readCallSummary(store: Store, ctx: InspectionContext): Promise<RpcSummaryInput> {
  const shards = await allShards(store, ctx)
  const now = await store.time(ctx)
  const parts = await Promise.all(shards.map((shard) => partOf(store, shard, now, ctx)))
  type Part = (typeof parts)[number]
  const sum = (of: (part: Part) => number) => sumCounts(parts.map(of))
  const earliest = (of: (part: Part) => number | undefined) =>
    parts.map(of).reduce((a, b) => (a === undefined || (b !== undefined && b < a) ? b : a), undefined)
  const startedAt = earliest((part) => part.startedAt)
  const since = earliest((part) => part.since)
  const [pending, observed_at] = [sum((part) => part.pending), toTimestamp(now)]
  // No call was ever opened: nothing may count them.
  if (since === undefined && pending === 0) return { observed_at }
  return {
    pending,
    oldest_started_at: startedAt === undefined ? null : toTimestamp(startedAt),
    oldest_age_ms: startedAt === undefined ? null : Math.max(0, Math.round(now - startedAt)),
    overdue: sum((part) => part.overdue),
    counters: Object.fromEntries(
      COUNTERS.map((name, i) => [name, sum(({ counted }) => counted[i] ?? 0)]),
    ) as CallCounters,
    observed: observedOf(parts),
    counting_since: since === undefined ? null : toTimestamp(since),
    observed_at,
  }
}

type CurrentInstance = (client: Instance, ctx: InspectionContext) => Promise<string | null>

/**
 * Creates the inspector.
 *
 * @param currentInstance Returns the instance that holds a client. @default the deployment's connection registry
 */
export function createRpcInspector(
  store: Store,
  currentInstance: CurrentInstance = (client, ctx) => readCurrentInstance(store, client, ctx),
): RpcInspector {
  return {
    listPending: (filter, page, ctx) => listPending(store, filter, page, ctx),
    listEnded: (filter, page, ctx) => readPage(store, ENDED_CALLS, filter, { order: 'newest', ...page }, ctx),
    getEnded: async (id, ctx) => (await getRecord(store, ENDED_CALLS, id, ctx))?.record ?? null,
    getPending: async (id, ctx) => (await getRecord(store, CALLS, id, ctx))?.record ?? null,
    async checkInstance(instance, ctx) {
      const current_instance_id = await currentInstance(instance, ctx)
      return { current: current_instance_id === instance.instance_id, current_instance_id }
    },
    summary: (ctx) => readCallSummary(store, ctx),
    listUserIds: (page, ctx) => listUserIds(store, CALLS.name, page, ctx, 0),
    observeUsers: (userIds, ctx) => observeUsers(store, CALLS, userIds, ctx, foldCall),
  }
}
