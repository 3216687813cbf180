/** Stretches of an index with their rows, each a single question: how a reader goes on where one page is not enough. */
import type { Ask } from '../../contract/page.js'
import { scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { askShard, defineQuestion } from './question.js'
import { goodRows, type TableReader } from './rows.js'

/** Entries of one question at most: a few milliseconds of the store. */
export const SPAN_MAX = 2_000
/** Bytes of rows in one answer, beyond which it ends with the row at hand. */
const SPAN_BYTES = 8_388_608

// ARGV: 1 table, 2 and 3 the scores from and to, 4 most entries, 5 most bytes, 6… the parts of the index.
const SPAN = defineQuestion(`
local t, most, bytes = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local found = read('ZRANGE', K(t, unpack(ARGV, 6)), ARGV[2], ARGV[3], 'BYSCORE', 'LIMIT', 0, most + 1, 'WITHSCORES') or {}
local entries, rows, cut = {}, {}, 0
for i = 1, #found, 2 do
  if #rows == most or bytes <= 0 then cut = 1 break end
  local value = row(t, found[i])
  entries[i], entries[i + 1], rows[#rows + 1] = found[i], found[i + 1], value
  if value then bytes = bytes - #value end
end
return { foreign, cut, entries, rows }`)

/** A place in an index and the row there, if there is one. */
export interface SpanEntry<S> {
  id: string
  score: number
  row: S | undefined
}

export interface Span<S> {
  entries: SpanEntry<S>[]
  /** Whether the index goes on within the range. */
  isCut: boolean
}

/** The scores that a span lies between; one is left out of it with `(`, as Redis spells it. */
export interface Scores {
  from: string
  to: string
}

/** At most `most` entries of an index of `table` in one shard, by their scores. */
export async function readSpan<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  index: readonly string[],
  { from, to }: Scores,
  most: number,
  ask: Ask,
): Promise<Span<S>> {
  const args = [table.name, from, to, Math.min(most, SPAN_MAX), SPAN_BYTES, ...index]
  const [cut, entries, rows] = await askShard(store, SPAN, shard, args, ask)
  const places = scored(entries ?? null)
  const values = Array.isArray(rows) ? rows : []
  const found = places.map(({ member }, i) => ({ id: member, value: values[i] ?? null }))
  const good = await goodRows(store, table, shard, found, ask)
  return { entries: places.map(({ member, score }, i) => ({ id: member, score, row: good[i] })), isCut: cut === 1 }
}

/** Questions that follow each other for one answer: more than the bound on entries needs, unless their rows are huge. */
const QUESTIONS_MAX = 8

/** At most `most` entries of an index of `table` in one shard after `from`, by a few questions. */
export async function readAlong<R extends object, S extends object>(
  store: Store,
  table: TableReader<R, S>,
  shard: number,
  index: readonly string[],
  from: string,
  most: number,
  ask: Ask,
): Promise<Span<S>> {
  const entries: SpanEntry<S>[] = []
  let after = from
  for (let asked = 1; ; asked++) {
    const span = await readSpan(store, table, shard, index, { from: after, to: '+inf' }, most - entries.length, ask)
    entries.push(...span.entries)
    const last = span.entries.at(-1)
    if (!span.isCut || !last || entries.length >= most || asked === QUESTIONS_MAX) return { entries, isCut: span.isCut }
    after = `(${last.score}`
  }
}
