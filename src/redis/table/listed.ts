/**
 * Pages over records with a format of their own, listed by their index position: for records stored by id rather than
 * by user.
 */
import { PAGE_MAX } from '../../contract/limits.js'
import { type Filter, type InspectionContext, matcherOf, type Page, type PageQuery } from '../../contract/page.js'
import type { Constants } from '../store/arguments.js'
import { listOf, type StoreReply, scored } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { mergePage, type Run, type Stretch, walkPage } from './pages.js'
import { defineReadScript, readShard } from './read-script.js'
import { BadRow, FOREIGN } from './rows.js'
import { type Scores, SPAN_MAX, scoresAfter } from './spans.js'

/** Maximum size of the records in one reply, in bytes. It ends with the record that exceeds it. */
const ANSWER_BYTES = 8_388_608

/**
 * Defines a script that reads a range of `t:all` or of `t:<field>:<value>`. Its Lua defines `record(id)` and then
 * includes `listing.lua`.
 */
export const defineListing = (lua: string | undefined, constants: Constants) =>
  defineReadScript(
    {
      args: ['t', 'from', 'to', 'rev', 'at', 'max_entries', 'max_bytes'],
      rest: 'index',
      constants,
      answer: ([cut, entries = null, records]) => ({
        isTruncated: cut === 1,
        places: scored(entries),
        records: listOf(records),
      }),
    },
    lua,
  )

/** How the records of a family are listed. */
export interface Listed<R extends object> {
  readonly name: string
  readonly script: ReturnType<typeof defineListing>
  /** Fields with their own index, the most selective first. */
  readonly indexes: readonly (keyof R & string)[]
  /** Part of a record's key before its id. */
  readonly kind: string
  /** Returns the record as of `now`: `null` if it has expired, `undefined` if it is invalid. */
  read(id: string, found: StoreReply, now: number): R | null | undefined
}

/** Reads a page of `listed` under `filter` from its most selective index. @throws Refusal as `readPage`. */
export async function readListed<R extends object>(
  store: Store,
  listed: Listed<R>,
  filter: Filter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<R>> {
  const wanted = Object.entries(filter).filter(([, value]) => value !== undefined)
  const field = listed.indexes.find((name) => typeof filter[name] === 'string')
  const index = field === undefined ? ['all'] : [field, filter[field] as string]
  const isCovered = wanted.every(([name]) => name === field)
  const matches = matcherOf(filter)
  const last = (await store.shards(ctx)) - 1
  const { order } = page
  const read = async (
    shard: number,
    { from, to }: Scores,
    { round, wanted: rest, budget }: Stretch,
  ): Promise<Run<R>> => {
    const now = await store.time(ctx)
    const most = isCovered && round < 2 ? rest : round === 0 ? PAGE_MAX : SPAN_MAX
    const bounds = { max_entries: Math.min(most, budget, SPAN_MAX), max_bytes: ANSWER_BYTES }
    const given = { t: listed.name, from, to, rev: order === 'newest' ? 1 : 0, at: now, ...bounds, index }
    const { isTruncated, places, records } = await readShard(store, listed.script, shard, given, ctx)
    const entries = places.map(({ member, score }, i): Run<R>['entries'][number] => {
      const position = { shard, sequence: score }
      const found = records[i] ?? null
      if (found === null) return { position, record: undefined, isBad: false }
      // The script has already reported keys of a wrong type.
      if (found === FOREIGN) return { position, record: undefined, isBad: true }
      const record = listed.read(member, found, now)
      if (record === undefined) reportBadRecord(store, store.key(shard, listed.name, listed.kind, member), member, ctx)
      return { position, record: record && matches(record) ? record : undefined, isBad: record === undefined }
    })
    return { shard, entries, examined: entries.length, isTruncated }
  }
  return order !== undefined && last > 0
    ? mergePage([0, last], page, ctx, read)
    : walkPage([0, last], page, ctx, ({ shard, sequence }, stretch) =>
        read(shard, scoresAfter(sequence, order, page.cursor === null && stretch.round === 0), stretch),
      )
}

/** Reports a key with an invalid record. */
export function reportBadRecord(store: Store, key: string, id: string, ctx: InspectionContext): void {
  const fields = [{ path: '', expected: 'a record written by this library' }]
  store.onError(new BadRow(`${key} holds an invalid record`, { id, fields }), ctx)
}
