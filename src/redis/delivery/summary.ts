/** Reads the summary of a dispatcher: what is recorded, and which open commands are past their deadline. */
import {
  type DeliverySummary,
  type DeliverySummaryInput,
  LATENCY_SAMPLE,
  type LegacyReason,
  NO_LEGACY,
  TerminalState,
} from '../../internal/contract/delivery.js'
import { AGE_SAMPLE, latencyOf, reportedTimes, type StepTimes } from '../../internal/contract/delivery-rules.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { defineOptions, type Input, text } from '../../internal/contract/options.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { count, listOf, type StoreReply, strings, WrongType } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { wasEverWritten } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { BadRow, Millis } from '../table/rows.js'
import { allShards } from '../table/shards.js'
import { BUCKET_MS, CHUNK } from './library.js'
import { scripts } from './reads.lua'
import { RECORD_TEXT_BYTES, withRecords } from './record.js'

// Reads the backlog of the single command stream of an older installation. Never writes to it.

/** An older command stream and the consumer group that processes it. */
export const LegacyStream = defineOptions({
  /** Key of the stream. */
  stream: text(),
  /** Name of its consumer group. */
  group: text(),
})
export interface LegacyStream extends Input<typeof LegacyStream> {}

type LegacyFields = Pick<DeliverySummary, keyof typeof NO_LEGACY>

const NO_SUCH_KEY = /no such key/
const MISSING = Symbol('missing')

const unknown = (legacy_reason: LegacyReason, depth: number | null = null): LegacyFields => ({
  ...NO_LEGACY,
  legacy_stream_depth: depth,
  legacy_reason,
})

/**
 * Returns depth, pending entries and lag of a legacy stream. Unknown values are `null` with a reason, and don't fail the rest of
 * the summary.
 */
async function readLegacy(
  store: Store,
  legacy: LegacyStream | undefined,
  ctx: InspectionContext,
): Promise<LegacyFields> {
  if (!legacy) return NO_LEGACY
  const { stream, group } = legacy
  const [length, groups] = await Promise.all([
    attempt(store, ['XLEN', stream], stream, ctx),
    attempt(store, ['XINFO', 'GROUPS', stream], stream, ctx),
  ])
  // XLEN returns 0 for a stream that does not exist, which would look like an empty backlog.
  if (groups === MISSING) return unknown('stream_missing')
  const depth = numberOf(length)
  if (!Array.isArray(groups)) return unknown('unreadable', depth)
  const fields = groups.map(fieldsOf).find(({ name }) => name === group)
  if (!fields) return unknown('group_missing', depth)
  const [pending, lag] = [numberOf(fields.pending), numberOf(fields.lag)]
  return {
    legacy_stream_depth: depth,
    legacy_pending_depth: pending,
    legacy_stream_lag: lag,
    legacy_reason: depth === null || pending === null ? 'unreadable' : lag === null ? 'lag_unknown' : null,
  }
}

const numberOf = (reply: unknown) => (typeof reply === 'number' ? reply : null)

/** Parses a group of `XINFO GROUPS`, a list of alternating names and values. */
function fieldsOf(reply: StoreReply): Record<string, StoreReply> {
  const list = listOf(reply)
  return Object.fromEntries(
    list.flatMap((name, i) => (i % 2 === 0 ? [[String(name), list[i + 1] ?? null] as const] : [])),
  )
}

async function attempt(
  store: Store,
  args: string[],
  stream: string,
  ctx: InspectionContext,
): Promise<StoreReply | typeof MISSING> {
  try {
    return await store.command(args, stream, ctx)
  } catch (error) {
    if (ctx.signal.aborted) throw error
    if (error instanceof Error && NO_SUCH_KEY.test(error.message)) return MISSING
    store.onError(
      error instanceof WrongType ? new WrongType(`Expected ${stream} to hold a stream; it holds another type`) : error,
    )
    return null
  }
}

/** Maximum number of records of a shard that are examined: a few milliseconds. */
const RECORDS_MAX = 1_000
/** Maximum number of mailboxes of a shard that one read counts: some 10 ms of the store. */
const MAILBOXES_MAX = 5_000

// `open`: commands without a recorded end, by state in the order w, a, h, p, q, k. `overdue`: those of them past their deadline;
// empty if there are too many to count. `attached`: commands in queues of clients that are attached to a node with a live lease;
// -1 if unknown. `ended`: by state in the order r, f, x, c, j; empty if records of too many instants are past their retention.
const SHARD = defineReadScript(
  {
    args: ['at', 'max_records', 'max_mailboxes', 'max_sample'],
    constants: {
      CHUNK,
      BUCKET: BUCKET_MS,
      RECORD_BYTES: RECORD_TEXT_BYTES,
      SAMPLE: LATENCY_SAMPLE,
      // Maximum number of entries of past deadlines, of instants with expired records or deadlines, and of chunks with open
      // commands to read.
      ENTRIES: 50_000,
      BUCKETS: 400,
      CHUNKS: 32,
    },
    answer: ([open, overdue, attached, deadline, sample, ended, reasons, oldest, times]) => ({
      open: listOf(open).map((n) => count(n)),
      overdue: listOf(overdue).map((n) => count(n)),
      attached: attached === -1 ? null : count(attached ?? null),
      deadline: deadline === '' ? null : (Millis.safeParse(Number(deadline)).data ?? null),
      sample: listOf(sample).map((one) => listOf(one).map(String)),
      ended: listOf(ended).map(Number),
      reasons: listOf(reasons).map(String),
      oldest: oldest === '' ? [] : [Number(oldest)],
      times: strings(times ?? null),
    }),
  },
  withRecords(scripts.summary),
)

const summed = (counts: readonly number[]) => counts.reduce((sum, n) => sum + n, 0)

/** Counts the open commands of a shard, without those past their deadline, by what they wait for. */
function openOf(open: readonly number[], overdue: readonly number[], attached: number | null) {
  const [waiting = 0, given = 0, handed = 0, paused = 0, again = 0, acknowledged = 0] = open.map((n, i) =>
    Math.max(0, n - (overdue[i] ?? 0)),
  )
  const queued = waiting + again
  const turn = attached === null ? null : Math.min(queued, attached)
  const waits: DeliverySummary['waits_for'] = {
    client_not_attached: turn === null ? 0 : queued - turn,
    turn: turn ?? 0,
    delivery: given,
    acknowledgement: handed,
    retry_pause: paused,
    outcome: acknowledged,
    expiry: summed(overdue),
    unknown: turn === null ? queued : 0,
  }
  return { queued, turn, waits }
}

/** Returns the retained commands of a shard by state; `null` if unknown. */
function statesOf(open: readonly number[], ended: readonly number[]): DeliverySummary['by_state'] {
  if (ended.length === 0 || ended.some((n) => n < 0)) return null
  const [waiting = 0, given = 0, handed = 0, paused = 0, again = 0, acknowledged = 0] = open
  const [resulted = 0, failed = 0, expired = 0, cancelled = 0, rejected = 0] = ended
  const attempted = given + handed + paused + again
  return { waiting, attempted, acknowledged, resulted, failed, expired, cancelled, rejected }
}

/**
 * Returns ended commands by reason, from a list of alternating names and changes of their counts; `null` if the sum differs from
 * the number of ended commands.
 */
function reasonsOf(states: DeliverySummary['by_state'], pairs: readonly string[]): DeliverySummary['by_reason'] {
  if (states === null) return null
  const counts = new Map<string, number>()
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const reason = pairs[i] as string
    counts.set(reason, (counts.get(reason) ?? 0) + Number(pairs[i + 1]))
  }
  const others = [...counts].filter(([, n]) => n < 0)
  // Reasons without a counter of their own were counted under `other`, so subtract them there.
  for (const [reason, n] of others) {
    counts.delete(reason)
    counts.set('other', (counts.get('other') ?? 0) + n)
  }
  const known = [...counts].filter(([, n]) => n !== 0)
  const ended = summed(TerminalState.options.map((state) => states[state]))
  const isWhole = known.every(([, n]) => n > 0) && summed(known.map(([, n]) => n)) === ended
  return isWhole ? Object.fromEntries(known) : null
}

/** Adds up counts by name; `null` if one of the parts is unknown. */
function total<Counts extends Readonly<Record<string, number>>>(parts: readonly (Counts | null)[]): Counts | null {
  const sums: Record<string, number> = {}
  for (const part of parts) {
    if (part === null) return null
    for (const [name, n] of Object.entries(part)) sums[name] = (sums[name] ?? 0) + n
  }
  return sums as Counts
}

/** Parses the times of an ended command, as the script returns them. */
function timesOf(text: string): { endedAt: number; times: StepTimes } {
  const texts = text.split(' ')
  return { endedAt: Number(texts[3] ?? 0), times: reportedTimes(texts) }
}

async function partOf(store: Store, shard: number, now: number, ctx: InspectionContext) {
  const given = { at: now, max_records: RECORDS_MAX, max_mailboxes: MAILBOXES_MAX, max_sample: AGE_SAMPLE }
  const read = await readShard(store, SHARD, shard, given, ctx)
  const { queued, turn, waits } = openOf(read.open, read.overdue, read.attached)
  const queuedSince = read.sample.flatMap(([ref = '', text]) => {
    const since = Millis.safeParse(Number(text))
    if (since.success) return [since.data]
    store.onError(new BadRow(`${store.key(shard, 'delivery', 'command')}:${ref} has an invalid admission time`), ctx)
    return []
  })
  const byState = statesOf(read.open, read.ended)
  const tracked = summed(read.open)
  return {
    tracked,
    byState,
    byReason: reasonsOf(byState, read.reasons),
    waits: read.overdue.length === 0 ? null : waits,
    due: turn,
    waiting: turn === null ? null : queued - turn,
    deadlines: read.deadline === null ? [] : [read.deadline],
    queuedSince: queuedSince.slice(0, tracked),
    openSince: read.oldest.filter((at) => Millis.safeParse(at).success),
    ended: read.times.map(timesOf),
  }
}

/** Returns the summary over all shards. @param isOfNode Whether a dispatcher of this process asks. */
export async function readSummary(
  store: Store,
  legacy: LegacyStream | undefined,
  isOfNode: boolean,
  ctx: InspectionContext,
): Promise<DeliverySummaryInput> {
  const shards = await allShards(store, ctx)
  const [now, legacyFields] = await Promise.all([store.time(ctx), readLegacy(store, legacy, ctx)])
  const parts = await Promise.all(shards.map((shard) => partOf(store, shard, now, ctx)))
  type Part = (typeof parts)[number]
  const sum = (of: (part: Part) => number) => summed(parts.map(of))
  const isCounted = parts.every(({ due }) => due !== null)
  const deadlines = parts.flatMap((part) => part.deadlines)
  const sample = parts
    .flatMap((part) => part.queuedSince)
    .sort((a, b) => a - b)
    .slice(0, AGE_SAMPLE)
  const [oldest] = sample
  const openSince = parts.flatMap((part) => part.openSince)
  const ended = parts.flatMap((part) => part.ended).sort((a, b) => b.endedAt - a.endedAt)
  const by_state = total(parts.map(({ byState }) => byState))
  const about = { deployment_id: store.deploymentId, mode: 'shared_store', observed_at: toTimestamp(now) } as const
  const isEmpty = by_state !== null && summed(Object.values(by_state)) === 0
  // Each dispatcher is listed as a node. Without one, commands are not counted.
  if (isEmpty && !isOfNode && !(await wasEverWritten(store, 'nodes', ctx))) return { ...about, ...legacyFields }
  return {
    ...about,
    tracked_commands: sum((part) => part.tracked),
    by_state,
    by_reason: total(parts.map(({ byReason }) => byReason)),
    waits_for: total(parts.map(({ waits }) => waits)),
    due_commands: isCounted ? sum(({ due }) => due ?? 0) : null,
    waiting_for_client: isCounted ? sum(({ waiting }) => waiting ?? 0) : null,
    oldest_deadline_at: deadlines.length === 0 ? null : toTimestamp(Math.min(...deadlines)),
    oldest_queued_age_ms: oldest === undefined ? null : Math.max(0, Math.round(now - oldest)),
    sample_size: sample.length,
    oldest_open_age_ms: openSince.length === 0 ? null : Math.max(0, Math.round(now - Math.min(...openSince))),
    latency: latencyOf(ended.slice(0, LATENCY_SAMPLE).map(({ times }) => times)),
    ...legacyFields,
  }
}
