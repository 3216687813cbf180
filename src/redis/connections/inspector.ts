/** Reads the connection registry of a shared store. */

import * as z from 'zod'
import { shown } from '../../internal/contract/checks.js'
import {
  ActionDescriptor,
  type ActionFilter,
  type ActionObservation,
  CHURN_COMBINATIONS,
  type ChurnFilter,
  type ChurnMinute,
  type ClientEvent,
  type ClientEventFilter,
  ClientType,
  CONNECTION_FAMILY,
  type Connection,
  type ConnectionChurn,
  type ConnectionEvent,
  foldConnection,
  MINUTE_MS,
  type RegistryInspector,
} from '../../internal/contract/connections.js'
import { compareIds, Reason, toTimestamp } from '../../internal/contract/ids.js'
import { PAGE_MAX } from '../../internal/contract/limits.js'
import { countBy } from '../../internal/contract/observation.js'
import {
  type Indexed,
  type InspectionContext,
  matcherOf,
  omittedCount,
  type Page,
  type PageQuery,
  parseSequence,
  scanLimit,
} from '../../internal/contract/page.js'
import { Refusal } from '../../internal/refusal.js'
import { shardOf } from '../store/keys.js'
import { count, listOf, sumCounts } from '../store/reply.js'
import type { Store } from '../store/store.js'
import { countAll, readPage, shardRange } from '../table/pages.js'
import { defineReadScript, minutesReader, readShard } from '../table/read-script.js'
import { BadRow, getRecord, locateRows, TURN_ROWS, timestampOf, yieldTurn } from '../table/rows.js'
import { allShards, readShards, shareOut } from '../table/shards.js'
import { readSpans, SPAN_MAX } from '../table/spans.js'
import { listUserIds, observeUsers } from '../table/users.js'
import { scripts } from './connections.lua'
import { CONNECTIONS, endOf, readCurrentInstances } from './format.js'

// Reads the newest events of all connections out of their records: no write stores an event.

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
  scripts.events,
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
async function listClientEvents(
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

// Lists the actions that connected clients offer, computed from the connections, within the scan limit.

const Descriptions = z.record(z.string(), ActionDescriptor.pick({ description: true, parameters_schema: true }))
type Description = z.infer<typeof Descriptions>[string]

/** An action with the connections of all shards that offer it. */
interface Offer {
  connections: number
  users: Set<string>
  types: Set<ClientType>
  /** Time at which the latest connection that offers it connected, and that connection's descriptions as JSON. */
  latestAt: number
  latest: string | undefined
}

/**
 * Returns a page of actions, ordered by the UTF-8 bytes of their names; `page.cursor` is the last name of the previous
 * page. `truncated`: a shard is down, or there are more connections than the scan limit and this is a sample.
 */
async function listActions(
  store: Store,
  { user_id, client_type }: ActionFilter,
  page: PageQuery,
  ctx: InspectionContext,
): Promise<Page<ActionObservation> & Indexed> {
  const shards = user_id === undefined ? await allShards(store, ctx) : [shardOf(user_id, await store.shards(ctx))]
  const now = await store.time(ctx)
  const shares = shareOut(scanLimit(ctx), Array(shards.length).fill(1))
  const offers = new Map<string, Offer>()
  const { answers, truncated } = await readShards(shards, ctx, async (shard) => {
    const most = shares[shards.indexOf(shard)] as number
    if (most === 0) return { examined: 0, isSample: true }
    const [index, from] = user_id === undefined ? [['beats'], `(${now}`] : [['user_id', user_id], '-inf']
    const { entries, isTruncated } = await readSpans(store, CONNECTIONS, shard, index, from, most, ctx)
    for (const [n, { row }] of entries.entries()) {
      if (n % TURN_ROWS === TURN_ROWS - 1) await yieldTurn(ctx)
      const connection = row && CONNECTIONS.read(row, now)
      if (!row || connection?.status !== 'connected' || (user_id ?? connection.user_id) !== connection.user_id) continue
      const isCounted = client_type === undefined || connection.client_type === client_type
      for (const name of new Set(connection.actions)) {
        if (page.cursor !== null && compareIds(name, page.cursor) <= 0) continue
        const offer = offers.get(name) ?? noOffer()
        offers.set(name, offer)
        if (row.connected_at >= offer.latestAt)
          Object.assign(offer, { latestAt: row.connected_at, latest: row.described })
        if (!isCounted) continue
        offer.connections += 1
        offer.users.add(connection.user_id)
        offer.types.add(connection.client_type)
      }
    }
    return { examined: entries.length, isSample: isTruncated || entries.some(({ isBad }) => isBad) }
  })
  const counted = [...offers].filter(([, { connections }]) => connections > 0)
  const names = counted.map(([name]) => name).sort(compareIds)
  const listed = names.slice(0, page.limit)
  const has_more = names.length > listed.length
  const items = listed.map((name): ActionObservation => {
    const { connections, users, types, latest } = offers.get(name) as Offer
    return {
      name,
      ...describe(store, name, latest, ctx),
      observed_connections: connections,
      observed_users: users.size,
      observed_client_types: ClientType.options.filter((type) => types.has(type)),
    }
  })
  return {
    items,
    next_cursor: has_more ? (listed.at(-1) as string) : null,
    has_more,
    examined: answers.reduce((sum, { examined }) => sum + examined, 0),
    ...(truncated || answers.some(({ isSample }) => isSample) ? { truncated: true } : {}),
  }
}

const noOffer = (): Offer => ({
  connections: 0,
  users: new Set(),
  types: new Set(),
  latestAt: Number.NEGATIVE_INFINITY,
  latest: undefined,
})

/** Returns the description that the latest connection gave, if it gave one. */
function describe(store: Store, name: string, latest: string | undefined, ctx: InspectionContext): Description {
  const none = { description: null, parameters_schema: null }
  if (!latest) return none
  try {
    const described = Descriptions.parse(JSON.parse(latest))
    return (Object.hasOwn(described, name) && described[name]) || none
  } catch {
    store.onError(new BadRow(`invalid stored descriptor of the action ${shown(name)}`), ctx)
    return none
  }
}

// Reads what the scripts of the connection registry counted in each of the last minutes, shard by shard.

/**
 * Maximum number of entries per minute: the combinations, a marker that the minute was counted, and the overflow
 * entries per client type.
 */
const ENTRIES = CHURN_COMBINATIONS + 1 + 2 * ClientType.options.length

const readMinutes = minutesReader('connections', ENTRIES)

const ENTRY = /^(?:opened|ended (\S+)) (\S+)(?: (.*))?$/s

/** Parses an entry if `filter` matches it. `reason` is `undefined` for a new connection. */
function readEntry(entry: string, filter: ChurnFilter): { reason: string | undefined } | undefined {
  const [found, reason, type, node] = ENTRY.exec(entry) ?? []
  if (found === undefined || !ClientType.safeParse(type).success) return undefined
  if (filter.client_type !== undefined && filter.client_type !== type) return undefined
  if (filter.node_id !== undefined && filter.node_id !== node) return undefined
  return { reason: reason === undefined ? undefined : Reason.parse(reason) }
}

/**
 * Reads the last minutes of all shards. @throws Refusal `unavailable` if a shard is down, because the sums would be
 * wrong.
 */
async function readChurn(store: Store, filter: ChurnFilter, ctx: InspectionContext): Promise<ConnectionChurn> {
  const shards = await allShards(store, ctx)
  const now = await store.time(ctx)
  const parts = await Promise.all(shards.map((shard) => readMinutes(store, shard, now, ctx)))
  const minutes = new Map<number, Map<string | undefined, number>>()
  for (const { minute, entries } of parts.flat()) {
    const counts = minutes.get(minute) ?? new Map<string | undefined, number>()
    minutes.set(minute, counts)
    for (const { member, score } of entries) {
      const read = readEntry(member, filter)
      if (read) counts.set(read.reason, sumCounts([counts.get(read.reason) ?? 0, count(score)]))
    }
  }
  const items = [...minutes].sort(([a], [b]) => a - b).map(([minute, counts]) => toMinute(minute, counts))
  return { items, observed_at: toTimestamp(now) }
}

function toMinute(minute: number, counts: ReadonlyMap<string | undefined, number>): ChurnMinute {
  const ended = [...counts].filter((one): one is [string, number] => one[0] !== undefined).sort()
  return {
    minute: toTimestamp(minute * MINUTE_MS),
    opened: counts.get(undefined) ?? 0,
    ended: Object.fromEntries(ended),
  }
}

export function createRegistryInspector(store: Store): RegistryInspector {
  return {
    listConnections: (filter, page, ctx) => readPage(store, CONNECTIONS, filter, page, ctx),
    getConnection: async (id, ctx) => (await getRecord(store, CONNECTIONS, id, ctx))?.record ?? null,
    async listConnectionHistory(id, page, ctx) {
      const after = parseSequence(page.cursor)
      const [found, now] = await Promise.all([getRecord(store, CONNECTIONS, id, ctx), store.time(ctx)])
      if (!found) return null
      const events = eventsOf(found.record, endOf(found.row, now))
      const items = events.slice(after, after + page.limit)
      const has_more = after + items.length < events.length
      return { items, next_cursor: has_more ? String(after + items.length) : null, has_more, examined: items.length }
    },
    listConnectionEvents: (filter, page, ctx) => listClientEvents(store, filter, page, ctx),
    connectionChurn: (filter, ctx) => readChurn(store, filter, ctx),
    listActions: (filter, page, ctx) => listActions(store, filter, page, ctx),
    currentInstances: (clients, ctx) => readCurrentInstances(store, clients, ctx),
    async countConnections(filter, ctx) {
      const found = await countAll(store, CONNECTIONS, filter, ctx)
      return found ? { ...found.indexed, ...countBy(CONNECTION_FAMILY.counted, found.records) } : {}
    },
    listUserIds: (page, ctx) => listUserIds(store, CONNECTIONS.name, page, ctx),
    observeUsers: (userIds, ctx) => observeUsers(store, CONNECTIONS, userIds, ctx, foldConnection),
  }
}

/** Returns the events of a connection in order: when it connected, and how it ended if it has. */
function eventsOf({ connection_id, connected_at }: Connection, ended: ReturnType<typeof endOf>): ConnectionEvent[] {
  const events: ConnectionEvent[] = [{ connection_id, event: 'connected', at: connected_at, reason: null }]
  if (ended) events.push({ connection_id, event: ended.end, at: toTimestamp(ended.at), reason: ended.reason })
  return events
}
