/** Reads the newest events of all connections out of their records: no write stores an event. */
import type { ClientEvent, ClientEventFilter } from '../../contract/connections.js'
import { compareIds } from '../../contract/ids.js'
import { PAGE_MAX } from '../../contract/limits.js'
import {
  type InspectionContext,
  matcherOf,
  omittedCount,
  type Page,
  type PageQuery,
  scanLimit,
} from '../../contract/page.js'
import { Refusal } from '../../refusal.js'
import { listOf } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { shardRange } from '../table/pages.js'
import { defineReadScript, readShard } from '../table/read-script.js'
import { locateRows } from '../table/rows.js'
import { SPAN_MAX } from '../table/spans.js'
import { timestampOf } from '../table/timestamp.js'
import eventsLua from './events.lua'
import { CONNECTIONS, endOf } from './format.js'

/** Bytes of rows in one answer, beyond which it ends with the row at hand. */
const ANSWER_BYTES = 8_388_608

const EVENTS = defineReadScript(
  {
    args: ['user', 'from', 'at', 'max_entries', 'max_bytes'],
    answer: ([cut, entries = null]) => ({
      isTruncated: cut === 1,
      entries: listOf(entries)
        .map((entry) => {
          const [kind = null, id, place, value = null] = listOf(entry)
          return { kind: kind === 1 ? 1 : 2, id: String(id), place: Number(place), value }
        })
        .filter(({ place }) => Number.isFinite(place)),
    }),
  },
  eventsLua,
)

/** Position of an event in the list: newest place first, then by shard, connects before ends, greatest id first. */
interface Position {
  place: number
  shard: number
  kind: number
  id: string
}

const comparePositions = (a: Position, b: Position): number =>
  b.place - a.place || a.shard - b.shard || a.kind - b.kind || compareIds(b.id, a.id)

const TOKEN = /^(0|[1-9]\d{0,15})\.(0|[1-9]\d?)\.([12])\.(.+)$/s

const toToken = ({ place, shard, kind, id }: Position) => `${place}.${shard}.${kind}.${id}`

/** @throws Refusal `invalid_cursor`. */
function parseToken(token: string): Position {
  const [, place, shard, kind, id] = TOKEN.exec(token) ?? []
  if (place === undefined || id === undefined) throw new Refusal('invalid_cursor')
  return { place: Number(place), shard: Number(shard), kind: Number(kind), id }
}

/** Position before all events of the next place, for a place with more events than may be read. */
const positionBefore = ({ place }: Position): Position => ({ place: place - 1, shard: 0, kind: 1, id: '\u{10ffff}' })

type Event = Position & { event: ClientEvent | undefined; isBad: boolean }

/** Reads at most `most` events of one shard from a place on. */
async function readEvents(
  store: Store,
  shard: number,
  { user, from, at }: { user: string; from: string; at: number },
  most: number,
  ctx: InspectionContext,
): Promise<{ events: Event[]; isTruncated: boolean }> {
  const bounds = { max_entries: most, max_bytes: ANSWER_BYTES }
  const { entries, isTruncated } = await readShard(store, EVENTS, shard, { user, from, at, ...bounds }, ctx)
  const places = await locateRows(store, CONNECTIONS, shard, entries, ctx)
  const events = entries.map(({ kind, id, place }, i): Event => {
    const { row, isBad } = places[i] ?? { row: undefined, isBad: false }
    const position = { place, shard, kind, id, isBad }
    const record = row && CONNECTIONS.read(row, at)
    const ended = row && endOf(row, at)
    if (!row || !record || (kind === 2 && !ended)) return { ...position, event: undefined }
    const { connection_id, user_id, client_id, instance_id, client_type, node_id } = record
    const what =
      kind === 1 || !ended
        ? { event: 'connected' as const, at: record.connected_at, reason: null }
        : { event: ended.end, at: timestampOf(ended.at), reason: ended.reason }
    return { ...position, event: { connection_id, user_id, client_id, instance_id, client_type, node_id, ...what } }
  })
  return { events, isTruncated }
}

/** A page of events, the newest first. @throws Refusal `invalid_cursor`, `unavailable` if a shard is down. */
export async function listClientEvents(
  store: Store,
  filter: ClientEventFilter,
  { limit, cursor }: PageQuery,
  ctx: InspectionContext,
): Promise<Page<ClientEvent>> {
  const after = cursor === null ? undefined : parseToken(cursor)
  const matches = matcherOf(filter)
  const [first, last] = shardRange(filter.user_id, await store.shards(ctx))
  const shards = Array.from({ length: last - first + 1 }, (_, i) => first + i)
  const at = await store.time(ctx)
  const given = { user: filter.user_id ?? '', from: after ? String(after.place) : '+inf', at }
  const bound = Math.max(1, Math.floor(scanLimit(ctx) / shards.length))
  const isSparse = Object.entries(filter).some(([name, value]) => name !== 'user_id' && value !== undefined)
  // Many events can have one place: a page that ends among them reads more of them the next time.
  for (let most = isSparse ? PAGE_MAX : limit + 1; ; most *= 4) {
    const count = Math.min(most, bound, SPAN_MAX)
    const read = await Promise.all(shards.map((shard) => readEvents(store, shard, given, count, ctx)))
    const cuts = read.flatMap(({ events, isTruncated }) => (isTruncated ? (events.at(-1) ?? []) : []))
    const [horizon] = cuts.sort(comparePositions)
    const usable = read
      .flatMap(({ events }) => events)
      .filter((one) => !horizon || comparePositions(one, horizon) <= 0)
      .filter((one) => !after || comparePositions(one, after) > 0)
      .sort(comparePositions)
    const examined = read.reduce((sum, { events }) => sum + events.length, 0)
    if (usable.length === 0 && horizon && count === most) continue
    const items: ClientEvent[] = []
    let omitted = 0
    let taken = 0
    for (const { event, isBad } of usable) {
      if (items.length === limit) break
      taken += 1
      omitted += Number(isBad)
      if (event && matches(event)) items.push(event)
    }
    const end =
      usable[taken - 1] ??
      (horizon && after && comparePositions(horizon, after) <= 0 ? positionBefore(horizon) : horizon)
    const has_more = end !== undefined && (taken < usable.length || horizon !== undefined)
    return {
      items,
      next_cursor: has_more ? toToken(end) : null,
      has_more,
      examined,
      ...omittedCount(omitted),
    }
  }
}
