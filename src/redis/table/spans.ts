/** Ranges of an index with their rows, each read by a single script: used when one page is not enough. */
import type { InspectionContext, Order } from '../../internal/contract/page.js'
import { listOf, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from './read-script.js'
import { locateRows, type Place, type TableReader } from './rows.js'
import { scripts } from './table.lua'

/** Maximum number of entries per script: a few milliseconds of the store's time. */
export const SPAN_MAX = 2_000
/** Maximum size of the rows in one reply, in bytes. It ends with the row that exceeds it. */
const SPAN_BYTES = 8_388_608

// `from` and `to` are scores, `index` the parts of its key; newest first if `rev` is 1.
const SPAN = defineReadScript(
  {
    args: ['t', 'from', 'to', 'rev', 'max_entries', 'max_bytes'],
    rest: 'index',
    answer: ([cut, entries = null, rows]) => ({ isTruncated: cut === 1, places: scored(entries), rows: listOf(rows) }),
  },
  scripts.span,
)

/** A position in an index and its row, if there is one. */
interface SpanEntry<S> extends Place<S> {
  id: string
  score: number
}

interface Span<S> {
  entries: SpanEntry<S>[]
  /** Whether the index has more entries within the range. */
  isTruncated: boolean
}

/** The scores of a range, in its order. A leading `(` excludes the bound, as in Redis. */
export interface Scores {
  from: string
  to: string
  order?: Order | undefined
}

/** Returns the bound `from` of a range as a number. */
export const scoreOf = (from: string): number =>
  /inf$/.test(from) ? Number.POSITIVE_INFINITY : Number(from.replace('(', ''))

/** Returns the range of an index after `sequence` in `order`; `isIncluded` includes `sequence` itself. */
export function scoresAfter(sequence: number, order?: Order, isIncluded = false): Scores {
  const score = sequence === Number.POSITIVE_INFINITY ? '+inf' : String(sequence)
  return { from: `${isIncluded ? '' : '('}${score}`, to: order === 'newest' ? '-inf' : '+inf', order }
}

/** Reads at most `most` entries of an index of `table` in one shard, by score. */
export async function readSpan<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  index: readonly string[],
  { from, to, order }: Scores,
  most: number,
  ctx: InspectionContext,
): Promise<Span<S>> {
  const bounds = { max_entries: Math.min(most, SPAN_MAX), max_bytes: SPAN_BYTES }
  const given = { t: table.name, from, to, rev: order === 'newest' ? 1 : 0, index, ...bounds }
  const { isTruncated, places, rows } = await readShard(store, SPAN, shard, given, ctx)
  const found = places.map(({ member }, i) => ({ id: member, value: rows[i] ?? null }))
  const read = await locateRows(store, table, shard, found, ctx)
  return {
    entries: places.map(({ member, score }, i) => ({ id: member, score, ...(read[i] as Place<S>) })),
    isTruncated,
  }
}

/** Maximum number of scripts for one result: more than the scan limit needs, unless rows are huge. */
const ROUNDS_MAX = 8

/** Reads at most `most` entries of an index of `table` in one shard after `from`, with a few scripts. */
export async function readSpans<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  index: readonly string[],
  from: string,
  most: number,
  ctx: InspectionContext,
): Promise<Span<S>> {
  const entries: SpanEntry<S>[] = []
  let after = from
  for (let round = 1; ; round++) {
    const span = await readSpan(store, table, shard, index, { from: after, to: '+inf' }, most - entries.length, ctx)
    entries.push(...span.entries)
    const last = span.entries.at(-1)
    if (!span.isTruncated || !last || entries.length >= most || round === ROUNDS_MAX)
      return { entries, isTruncated: span.isTruncated }
    after = `(${last.score}`
  }
}
