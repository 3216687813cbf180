/** Stretches of an index with their rows, each by a single read script: how a reader goes on where one page is not enough. */
import type { InspectionContext, Order } from '../../contract/page.js'
import { listOf, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { defineReadScript, readShard } from './read-script.js'
import { locateRows, type Place, type TableReader } from './rows.js'
import spanLua from './span.lua'

/** Entries of one script at most: a few milliseconds of the store. */
export const SPAN_MAX = 2_000
/** Bytes of rows in one answer, beyond which it ends with the row at hand. */
const SPAN_BYTES = 8_388_608

// `from` and `to` are scores, `index` the parts of its key; the newest first where `rev` is 1.
const SPAN = defineReadScript(
  {
    args: ['t', 'from', 'to', 'rev', 'max_entries', 'max_bytes'],
    rest: 'index',
    answer: ([cut, entries = null, rows]) => ({ isTruncated: cut === 1, places: scored(entries), rows: listOf(rows) }),
  },
  spanLua,
)

/** A place in an index and the row there, if there is one. */
interface SpanEntry<S> extends Place<S> {
  id: string
  score: number
}

interface Span<S> {
  entries: SpanEntry<S>[]
  /** Whether the index goes on within the range. */
  isTruncated: boolean
}

/** The scores that a span lies between, the end of the list last; one is left out of it with `(`, as Redis spells it. */
export interface Scores {
  from: string
  to: string
  order?: Order | undefined
}

/** The score in `from` of a span, as a number. */
export const scoreOf = (from: string): number =>
  /inf$/.test(from) ? Number.POSITIVE_INFINITY : Number(from.replace('(', ''))

/** The scores of an index that come after `sequence` in `order`, which is included where `isIncluded`. */
export function scoresAfter(sequence: number, order?: Order, isIncluded = false): Scores {
  const score = sequence === Number.POSITIVE_INFINITY ? '+inf' : String(sequence)
  return { from: `${isIncluded ? '' : '('}${score}`, to: order === 'newest' ? '-inf' : '+inf', order }
}

/** At most `most` entries of an index of `table` in one shard, by their scores. */
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

/** Scripts that follow each other for one answer: more than the bound on entries needs, unless their rows are huge. */
const ROUNDS_MAX = 8

/** At most `most` entries of an index of `table` in one shard after `from`, in a few rounds. */
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
