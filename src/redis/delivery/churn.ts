/** Per-minute counts of admitted and ended commands: each node writes its own, and a reader adds up those of all nodes. */

import { CHURN_MINUTES, MINUTE_MS, minuteOf } from '../../internal/contract/connections.js'
import {
  type DeliveryChurn,
  type DeliveryChurnFilter,
  type DeliveryMinute,
  TerminalState,
  TRACKED_STATES,
} from '../../internal/contract/delivery.js'
import { noEnds } from '../../internal/contract/delivery-rules.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import type { InspectionContext } from '../../internal/contract/page.js'
import { count, parseFlag, sumCounts } from '../store/reply.js'
import { defineScript, runScript } from '../store/script.js'
import type { Store } from '../store/store.js'
import { minutesReader } from '../table/read-script.js'
import { isLost } from '../table/shards.js'
import { scripts } from './nodes.lua'
import { readSummary } from './summary.js'

/** Maximum number of entries of a minute: some hundreds of nodes. */
const ENTRIES = 2_000
/** How long a minute is kept: as long as it is reported, plus a margin for clock differences. */
const KEPT_MS = (CHURN_MINUTES + 5) * MINUTE_MS
/** Shortest time between two writes of a node that are not forced. */
const PAUSE_MS = 1_000

/** The open commands are counted this often, so that the last count of a minute is near its end. */
const COUNT_MS = 5_000

/** Writes the counts of a node. Returns whether the open commands of the current minute are due to be counted. */
const WRITE = defineScript(
  'delivery.churn',
  {
    args: ['node', 'life', 'counted', 'open'],
    constants: { COUNT_MS, ENTRIES, KEPT_MS, MINUTE_MS },
    answer: parseFlag,
    anyTime: true,
  },
  scripts.churn,
)

/** Everything is in one shard. */
const SHARD = 0

/** The unfinished commands of all nodes by state, and when they were counted. */
interface OpenCounts {
  at: number
  counts: NonNullable<DeliveryMinute['open']>
}

/** Counts the unfinished commands of all nodes by state; `null` if they could not be counted. */
async function readOpenCounts(store: Store, ctx: InspectionContext): Promise<OpenCounts | null> {
  const { by_state, observed_at } = await readSummary(store, undefined, true, ctx)
  if (!by_state || !observed_at) return null
  const { waiting, attempted, acknowledged } = by_state
  return { at: Date.parse(observed_at), counts: { waiting, attempted, acknowledged } }
}

/** The counts of one node, which writes them at most once a second, or when forced. */
export function createChurnWriter(store: Store, nodeId: string) {
  const life = crypto.randomUUID()
  const minutes = new Map<number, Record<string, number>>()
  const unwritten = new Set<number>()
  let present = Number.NEGATIVE_INFINITY
  let writtenAt = Number.NEGATIVE_INFINITY
  let ranAt = Number.NEGATIVE_INFINITY
  let under: Promise<void> = Promise.resolve()

  function countsOf(minute: number): Record<string, number> {
    const counts = minutes.get(minute) ?? {}
    minutes.set(minute, counts)
    unwritten.add(minute)
    return counts
  }

  const run = (counted: readonly number[], open: OpenCounts | null) =>
    runScript(store, WRITE, SHARD, {
      node: nodeId,
      life,
      counted: JSON.stringify(counted.map((minute) => ({ minute, counts: minutes.get(minute) ?? {} }))),
      open: open ? JSON.stringify(open) : '',
    })

  async function write(): Promise<void> {
    const counted = [...unwritten]
    if (counted.length === 0 && performance.now() - ranAt < COUNT_MS) return
    unwritten.clear()
    writtenAt = performance.now()
    ranAt = writtenAt
    try {
      const isDue = await run(counted, null)
      const open = isDue ? await readOpenCounts(store, { signal: new AbortController().signal }) : null
      if (open) await run([], open)
    } catch (error) {
      // Safe to retry: the counts are totals.
      for (const minute of counted) unwritten.add(minute)
      throw error
    } finally {
      for (const minute of minutes.keys()) {
        const isOver = minute < present - 1 && !unwritten.has(minute)
        if (isOver || minute <= present - CHURN_MINUTES) {
          minutes.delete(minute)
          unwritten.delete(minute)
        }
      }
    }
  }

  return {
    /** Called with the store's time of each reply, before its counts are added. Marks this minute as observed. */
    at(now: number): void {
      const minute = minuteOf(now)
      if (minute !== present) countsOf(minute)
      present = minute
    },

    /** Called for each event that the node counts. */
    count(kind: string, name: string, times: number): void {
      const what = kind === 'outcome' ? `ended:${name}` : kind === 'other' && name === 'admitted' ? name : undefined
      if (what === undefined || present === Number.NEGATIVE_INFINITY) return
      const counts = countsOf(present)
      counts[what] = (counts[what] ?? 0) + times
    },

    /** Writes the counts that have changed since the last write. */
    publish({ isForced = false } = {}): Promise<void> {
      if (!isForced && performance.now() - writtenAt < PAUSE_MS) return Promise.resolve()
      writtenAt = performance.now()
      under = under.then(write).catch((error) => store.onError(error))
      return under
    },
  }
}

const readMinutes = minutesReader('delivery', ENTRIES + 10)

const ENTRY = /^(watched|admitted|partial|(?:ended|open):[a-z]+)(?: (\S+) (.*))?$/s

type Entries = readonly { member: string; score: number }[]

/** One minute; `undefined` if nothing is known of it. */
function toMinute(minute: number, entries: Entries, nodeId: string | undefined): DeliveryMinute | undefined {
  const counts = new Map<string, number>()
  for (const { member, score } of entries) {
    const [found, what = '', , node] = ENTRY.exec(member) ?? []
    if (found === undefined || (nodeId !== undefined && what !== 'partial' && node !== nodeId)) continue
    counts.set(what, sumCounts([counts.get(what) ?? 0, count(score)]))
  }
  if (!counts.has('watched') || (nodeId === undefined && counts.has('partial'))) return undefined
  const ended = noEnds()
  for (const state of TerminalState.options) ended[state] = counts.get(`ended:${state}`) ?? 0
  const open = TRACKED_STATES.map((state) => [state, counts.get(`open:${state}`)] as const)
  return {
    minute: toTimestamp(minute * MINUTE_MS),
    admitted: counts.get('admitted') ?? 0,
    ended,
    open: open.every(([, n]) => n !== undefined) ? (Object.fromEntries(open) as DeliveryMinute['open']) : null,
  }
}

/** The unfinished commands now; `null` if another shard is down. */
async function openNow(store: Store, ctx: InspectionContext): Promise<DeliveryMinute['open']> {
  try {
    return (await readOpenCounts(store, ctx))?.counts ?? null
  } catch (error) {
    if (!isLost(error, ctx)) throw error
    return null
  }
}

/** Reads the last minutes; in the running one the open commands are counted now. @throws Refusal `unavailable` if their shard is down. */
export async function readDeliveryChurn(
  store: Store,
  { node_id }: DeliveryChurnFilter,
  ctx: InspectionContext,
): Promise<DeliveryChurn> {
  await store.shards(ctx)
  const now = await store.time(ctx)
  const minutes = await readMinutes(store, SHARD, now, ctx)
  const items = minutes.flatMap(({ minute, entries }) => toMinute(minute, entries, node_id) ?? [])
  const last = items.at(-1)
  if (node_id === undefined && last?.minute === toTimestamp(minuteOf(now) * MINUTE_MS))
    last.open = await openNow(store, ctx)
  return { items, observed_at: toTimestamp(now) }
}
