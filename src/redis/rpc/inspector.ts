/** Reads the correlator of a shared store. */

import * as z from 'zod'
import type { Instance } from '../../contract/connections.js'
import { toTimestamp } from '../../contract/ids.js'
import { toJson } from '../../contract/json.js'
import { PAGE_MAX } from '../../contract/limits.js'
import type { InspectionContext, Page, PageQuery } from '../../contract/page.js'
import {
  CallCounters,
  type CallOutcome,
  foldCall,
  PendingCall,
  type PendingCallFilter,
  type RpcInspector,
  type RpcSummary,
} from '../../contract/rpc.js'
import { Refusal, type RefusalCode } from '../../refusal.js'
import { readCurrentInstance } from '../connections/current-instance.js'
import { count, listOf, type StoreReply, strings, sumCounts } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { indexOf, mergePage, type Run, readPage, type Stretch, shardRange } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow, getRecord, locateRows, readIndex, readRows, type TableReader } from '../table/rows.js'
import { allShards } from '../table/shards.js'
import { readSpan, type Scores, SPAN_MAX, scoreOf } from '../table/spans.js'
import { Millis, timestampOf } from '../table/timestamp.js'
import { listUserIds, observeUsers } from '../table/users.js'
import { versioned } from '../table/version.js'
import summaryLua from './summary.lua'

// How a pending call and its reply are stored, and read back: a reply is JSON, a refusal of ours stays one, and an Error arrives as
// an Error.

const StoredCall = PendingCall.omit({ age_ms: true, overdue: true }).extend({
  /** Its place among all calls, in every shard by the same measure. */
  seq: z.number().min(0).optional(),
  started_at: Millis,
  deadline_at: Millis,
})
type StoredCall = z.infer<typeof StoredCall>

/** Reads the calls that `isShown` admits by whether they are overdue. */
const readerOf = (isShown: (overdue: boolean) => boolean): TableReader<PendingCall, StoredCall> => ({
  name: 'calls',
  idOf: ({ correlation_id }) => correlation_id,
  schema: StoredCall,
  indexes: ['user_id'],
  read({ seq: _, started_at, deadline_at, ...row }, now) {
    const overdue = deadline_at <= now
    if (!isShown(overdue)) return undefined
    return {
      ...row,
      started_at: timestampOf(started_at),
      deadline_at: timestampOf(deadline_at),
      age_ms: Math.max(0, now - started_at),
      overdue,
    }
  },
})

/** Calls within their deadline: the others' node has died, or is late, and a living one takes them away. */
const CALLS = readerOf((overdue) => !overdue)
const OVERDUE_CALLS = readerOf((overdue) => overdue)
const ALL_CALLS = readerOf(() => true)

/** Bytes of one reply: a result of a mebibyte, which is the most an action may answer, and what surrounds it. */
const REPLY_BYTES = 1_048_576 + 65_536

/** @throws Refusal `invalid_input` for what is not JSON, `payload_too_large`. */
export function encodeReply(outcome: CallOutcome): string {
  if (outcome.ok) return toJson({ ok: true, result: outcome.result ?? null }, REPLY_BYTES).text
  const { error } = outcome
  if (error instanceof Refusal)
    return toJson({ ok: false, refusal: error.code, detail: error.detail ?? null }, REPLY_BYTES).text
  // Its name and message are not enumerable: without this it would arrive as an empty object.
  if (error instanceof Error) {
    const fields = { ...error, name: error.name, message: error.message }
    return toJson({ ok: false, error: fields, is_error: true }, REPLY_BYTES).text
  }
  return toJson({ ok: false, error: error ?? null }, REPLY_BYTES).text
}

/** An Error with the fields that were stored of one; its stack is that of whoever reads it. */
function toError(fields: object): Error {
  const error = new Error()
  for (const [field, value] of Object.entries(fields)) {
    const enumerable = field !== 'name' && field !== 'message'
    // Defined, not assigned: a field may have any name, `__proto__` too.
    Object.defineProperty(error, field, { value, enumerable, configurable: true, writable: true })
  }
  return error
}

export function decodeReply(text: string): { ok: true; result: unknown } | { ok: false; error: unknown } {
  const reply: unknown = JSON.parse(text)
  if (reply === null || typeof reply !== 'object') throw new Refusal('unavailable', 'a stored reply must be an object')
  const { ok, result, error, refusal, detail, is_error } = reply as Record<string, unknown>
  if (ok === true) return { ok, result }
  if (is_error === true && error !== null && typeof error === 'object') return { ok: false, error: toError(error) }
  if (typeof refusal !== 'string') return { ok: false, error }
  return { ok: false, error: new Refusal(refusal as RefusalCode, typeof detail === 'string' ? detail : undefined) }
}

// Reads the lists of pending calls in one order whatever the shards, the oldest first unless the page says otherwise: those within their deadline, and those past it.

type CallReader = TableReader<PendingCall, StoredCall>
type Filter = Omit<PendingCallFilter, 'overdue'>

/** Calls past their deadline that are put into order by themselves; where there are more, all calls are walked. */
const FEW = 500

/** A page of the calls under `filter`. @throws Refusal as `mergePage`. */
async function listPending(
  store: Store,
  { overdue = false, ...filter }: PendingCallFilter,
  { order = 'oldest', ...rest }: PageQuery,
  ctx: InspectionContext,
): Promise<Page<PendingCall>> {
  const page = { ...rest, order }
  const reach = shardRange(filter.user_id, await store.shards(ctx))
  if (!overdue) return readPage(store, CALLS, filter, page, ctx)
  const now = await store.time(ctx)
  const read = async (shard: number, scores: Scores, stretch: Stretch) =>
    (await readOverdue(store, shard, filter, scores, stretch, now, ctx)) ??
    readOn(store, OVERDUE_CALLS, shard, filter, scores, stretch, now, ctx)
  return mergePage(reach, page, ctx, read)
}

const matches = (filter: Filter, call: PendingCall) =>
  Object.entries(filter).every(([name, value]) => value === undefined || call[name as keyof Filter] === value)

/** A stretch of the index of all calls, or of those of one user. */
async function readOn(
  store: Store,
  table: CallReader,
  shard: number,
  filter: Filter,
  scores: Scores,
  { round, budget }: Stretch,
  now: number,
  ctx: InspectionContext,
): Promise<Run<PendingCall>> {
  const most = Math.min(round === 0 ? PAGE_MAX : SPAN_MAX, budget)
  const { entries, isTruncated } = await readSpan(store, table, shard, indexOf(table, filter), scores, most, ctx)
  return {
    shard,
    isTruncated,
    examined: entries.length,
    entries: entries.map(({ score, row, isBad }) => {
      const call = row && table.read(row, now)
      return { position: { shard, sequence: score }, record: call && matches(filter, call) ? call : undefined, isBad }
    }),
  }
}

/** All calls of a shard that are past their deadline, by the index of deadlines; `null` where they are not few. */
async function readOverdue(
  store: Store,
  shard: number,
  filter: Filter,
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
  const found = await readRows(store, OVERDUE_CALLS, shard, ids, ctx)
  const direction = order === 'newest' ? -1 : 1
  const after = scoreOf(from)
  const isBehind = (sequence: number) => {
    if (sequence === after) return !from.startsWith('(')
    return direction * sequence > direction * after
  }
  const entries = found.flatMap(({ row, isBad }) => {
    // Of what cannot be read nobody knows its place: it is told of where the list begins.
    const sequence = row?.seq ?? 0
    const call = row && OVERDUE_CALLS.read(row, now)
    const isShown = row ? isBehind(sequence) : isBad && isBehind(1)
    if (!isShown) return []
    return [{ position: { shard, sequence }, record: call && matches(filter, call) ? call : undefined, isBad }]
  })
  entries.sort((a, b) => direction * (a.position.sequence - b.position.sequence))
  return { shard, entries, examined: ids.length, isTruncated: false }
}

// Reads what the scripts of the correlator have counted, shard by shard, each at one instant.

const COUNTERS = CallCounters.keyof().options

const SUMMARY = defineReadScript(
  {
    args: ['at'],
    constants: { COUNTERS },
    answer: ([counts, pending = null, overdue = null, ids = null, rows]) => ({
      counts: listOf(counts),
      pending: count(pending),
      overdue: count(overdue),
      oldest: strings(ids).map((id, i) => ({ id, value: listOf(rows)[i] ?? null })),
    }),
  },
  summaryLua,
)

async function partOf(store: Store, shard: number, now: number, ctx: InspectionContext) {
  const { counts, oldest, ...sizes } = await readShard(store, SUMMARY, shard, { at: now }, ctx)
  const places = await locateRows(store, CALLS, shard, oldest, ctx)
  const [since = null, ...counted] = counts
  return {
    ...sizes,
    counted: counted.map(count),
    since: sinceOf(store, shard, since, ctx),
    startedAt: places.flatMap(({ row }) => (row ? [row.started_at] : []))[0],
  }
}

function sinceOf(store: Store, shard: number, reply: StoreReply, ctx: InspectionContext): number | undefined {
  if (reply === null) return undefined
  const since = Millis.safeParse(Number(reply))
  if (!since.success) store.onError(new BadRow(`${store.key(shard, CALLS.name, 'counts')} has a wrong since`), ctx)
  return since.data
}

/** The summary over all shards. @throws Refusal `unavailable` where one of them is lost: a sum without it would be none. */
async function readCallSummary(store: Store, ctx: InspectionContext): Promise<RpcSummary> {
  const shards = await allShards(store, ctx)
  const now = await store.time(ctx)
  const parts = await Promise.all(shards.map((shard) => partOf(store, shard, now, ctx)))
  type Part = (typeof parts)[number]
  const sum = (of: (part: Part) => number) => sumCounts(parts.map(of))
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

type CurrentInstance = (client: Instance, ctx: InspectionContext) => Promise<string | null>

/** @param currentInstance Who holds a client. Default: what the connection registry of the deployment says. */
export function createRpcInspector(
  store: Store,
  currentInstance: CurrentInstance = (client, ctx) => readCurrentInstance(store, client, ctx),
): RpcInspector {
  return {
    ...versioned(store, [CALLS.name]),
    listPending: (filter, page, ctx) => listPending(store, filter, page, ctx),
    getPending: async (id, ctx) => (await getRecord(store, ALL_CALLS, id, ctx))?.record ?? null,
    async checkInstance(instance, ctx) {
      const current_instance_id = await currentInstance(instance, ctx)
      return { current: current_instance_id === instance.instance_id, current_instance_id }
    },
    summary: (ctx) => readCallSummary(store, ctx),
    listUserIds: (page, ctx) => listUserIds(store, CALLS.name, page, ctx),
    observeUsers: (userIds, ctx) => observeUsers(store, CALLS, userIds, ctx, foldCall),
  }
}
