/**
 * The lifecycle of connections (connected, timed out, ended, deleted), for the connection registry. Every `time` is one
 * of the steady clock; records have timestamps of the wall clock.
 */
import {
  type ActionDescriptor,
  type ActionFilter,
  type ActionObservation,
  type ClientEvent,
  ClientType,
  CONNECTION_FAMILY,
  type Connection,
  type ConnectionCounts,
  type ConnectionEvent,
  LifecycleReason,
} from '../../internal/contract/connections.js'
import { clientKey, compareIds, toTimestamp } from '../../internal/contract/ids.js'
import { OBSERVED_MAX } from '../../internal/contract/limits.js'
import type { Page, PageQuery } from '../../internal/contract/page.js'
import { createTally } from '../../internal/fair-share/fair-share.js'
import { ExpiryQueue, FairQueue } from '../table/expiry-queue.js'
import { countedBy } from '../table/field-index.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable, type Entry } from '../table/table.js'
import type { Churn } from './churn.js'

// The actions that connected clients offer, counted as connections open and end, for the list of actions.

type PerType = Record<ClientType, number>

/** An action with the number of connections that offer it. */
interface Offer {
  readonly name: string
  latest: ActionDescriptor
  readonly connections: PerType
}

/**
 * An action across all users. `users`: number of distinct users per client type; `user_count`: number of distinct
 * users.
 */
interface CommonOffer extends Offer {
  readonly users: PerType
  user_count: number
}

const none = (): PerType => ({ browser: 0, console: 0, mobile: 0, web: 0 })
const sum = (counts: PerType) => counts.browser + counts.console + counts.mobile + counts.web
const nameOf = (offer: Offer) => offer.name
const offers = <T extends Offer>() => new OrderedIndex<string, T>(nameOf, compareIds)

/** Creates an index of the actions of connections with status `connected`. */
function createActionIndex() {
  const common = offers<CommonOffer>()
  /** The same offers by name: every connection that opens or ends looks up all of its actions. */
  const byName = new Map<string, CommonOffer>()
  const byUser = new Map<string, OrderedIndex<string, Offer>>()

  return {
    add({ user_id, client_type }: Connection, descriptors: readonly ActionDescriptor[]): void {
      if (descriptors.length === 0) return
      const own = byUser.get(user_id) ?? offers()
      if (own.size === 0) byUser.set(user_id, own)
      for (const latest of descriptors) {
        const { name } = latest
        const total = byName.get(name) ?? { name, latest, connections: none(), users: none(), user_count: 0 }
        if (total.user_count === 0) {
          common.insert(total)
          byName.set(name, total)
        }
        const ownOffer = own.get(name) ?? { name, latest, connections: none() }
        if (sum(ownOffer.connections) === 0) {
          own.insert(ownOffer)
          total.user_count++
        }
        total.latest = ownOffer.latest = latest
        total.connections[client_type]++
        if (ownOffer.connections[client_type]++ === 0) total.users[client_type]++
      }
    },

    remove({ user_id, client_type, actions }: Connection): void {
      const own = byUser.get(user_id)
      if (!own) return
      for (const name of actions) {
        const total = byName.get(name)
        const ownOffer = own.get(name)
        if (!total || !ownOffer) continue
        if (--total.connections[client_type] === 0 && sum(total.connections) === 0) {
          common.delete(name)
          byName.delete(name)
        }
        if (--ownOffer.connections[client_type] > 0) continue
        total.users[client_type]--
        if (sum(ownOffer.connections) > 0) continue
        own.delete(name)
        total.user_count--
      }
      if (own.size === 0) byUser.delete(user_id)
    },

    /** Returns the actions after `page.cursor`, ordered by name, examining at most `bound`. */
    list({ user_id, client_type }: ActionFilter, page: PageQuery, bound: number): Page<ActionObservation> {
      const items: ActionObservation[] = []
      let last = page.cursor
      let examined = 0
      const source: Iterable<Offer> = (user_id === undefined ? common : byUser.get(user_id))?.after(last) ?? []
      for (const offer of source) {
        if (items.length === page.limit || examined === bound)
          return { items, next_cursor: last, has_more: true, examined }
        examined++
        last = offer.name
        const observed_connections = client_type ? offer.connections[client_type] : sum(offer.connections)
        if (observed_connections === 0) continue
        const types = ClientType.options.filter((type) => offer.connections[type] > 0)
        const { users, user_count } = offer as CommonOffer
        items.push({
          ...offer.latest,
          observed_connections,
          observed_users: user_id !== undefined ? 1 : client_type ? users[client_type] : user_count,
          observed_client_types: client_type ? [client_type] : types,
        })
      }
      return { items, next_cursor: null, has_more: false, examined }
    },

    /** Returns the first 100 names that the user's connections offer, and whether there are more. */
    namesOf(userId: string): { names: string[]; cut: boolean } {
      const own = byUser.get(userId)
      const names: string[] = []
      for (const { name } of own?.after(null) ?? []) if (names.push(name) >= OBSERVED_MAX) break
      return { names, cut: (own?.size ?? 0) > names.length }
    },
  }
}

/** How a connection ended. */
interface ConnectionEnd {
  end: 'superseded' | 'disconnected'
  reason: string | null
  /** Place of its end in the order in which connections began and ended; 0 while it is connected. */
  endedAs: number
}

type Ended = Omit<ConnectionEnd, 'endedAs'>

export type LivingConnection = Entry<Connection, ConnectionEnd>

interface ConnectionSetOptions {
  heartbeatTimeoutMs: number
  retentionMs: number
  maxDisconnected: number
}

type Client = Pick<Connection, 'user_id' | 'client_id'>

export type ConnectionSet = ReturnType<typeof createConnectionSet>

/** Creates the set of connections, connected or retained after their end, with all their counts and indexes. */
export function createConnectionSet(
  { heartbeatTimeoutMs, retentionMs, maxDisconnected }: ConnectionSetOptions,
  churn: Churn,
) {
  const table = createTable<Connection, ConnectionEnd, ConnectionCounts>({
    fields: ['client_id', 'ended_reason'],
    dimensions: countedBy(CONNECTION_FAMILY.counted),
  })
  const actions = createActionIndex()
  const connected = new ExpiryQueue<LivingConnection>()
  const disconnected = new FairQueue<LivingConnection>(({ record }) => record.user_id)
  const ends = new OrderedIndex<number, LivingConnection>(({ state }) => state.endedAs, byNumber)
  const connectedOf = createTally()
  /** The connection that holds each client, or held it last. */
  const latest = new Map<string, LivingConnection>()
  const lastSeen = new Map<string, string>()

  const isLost = ({ record, touchedAt }: LivingConnection, time: number) =>
    record.status === 'connected' && touchedAt + heartbeatTimeoutMs <= time

  const lostAt = ({ last_seen_at }: Connection) => toTimestamp(Date.parse(last_seen_at) + heartbeatTimeoutMs)

  /** Ends an entry that was removed from the queue of connected ones. */
  function close(entry: LivingConnection, life: Ended, time: number, disconnected_at: string): void {
    Object.assign(entry.state, life, { endedAs: table.arrive() })
    ends.insert(entry)
    churn.ended(entry.record.client_type, life.reason, Date.parse(disconnected_at))
    actions.remove(entry.record)
    connectedOf.add(entry.record.user_id, -1)
    table.replace(
      entry,
      Object.freeze({ ...entry.record, status: 'disconnected', disconnected_at, ended_reason: life.reason }),
    )
    disconnected.push(entry, time)
    const { surplus } = disconnected
    if (disconnected.size <= maxDisconnected || !surplus) return
    disconnected.remove(surplus)
    remove(surplus)
  }

  function expire(entry: LivingConnection): void {
    const life: Ended = { end: 'disconnected', reason: LifecycleReason.enum.heartbeat_lost }
    close(entry, life, entry.touchedAt + heartbeatTimeoutMs, lostAt(entry.record))
  }

  function remove(entry: LivingConnection): void {
    const { user_id } = entry.record
    table.remove(entry)
    if (entry.state.endedAs > 0) ends.delete(entry.state.endedAs)
    const client = clientKey(entry.record)
    if (latest.get(client) === entry) latest.delete(client)
    if (!table.users.knowsUser(user_id)) lastSeen.delete(user_id)
  }

  /** Sweeps one entry if it is due; returns `undefined` if it was deleted. */
  function sweepOne(entry: LivingConnection | undefined, time: number): LivingConnection | undefined {
    if (!entry) return undefined
    if (isLost(entry, time)) {
      connected.remove(entry)
      expire(entry)
    }
    if (table.get(entry.id) !== entry) return undefined
    if (entry.record.status === 'connected' || entry.touchedAt + retentionMs > time) return entry
    disconnected.remove(entry)
    remove(entry)
    return undefined
  }

  function recordSight({ user_id, last_seen_at }: Connection): void {
    if ((lastSeen.get(user_id) ?? '') < last_seen_at) lastSeen.set(user_id, last_seen_at)
  }

  return {
    table,
    actions,

    /** Sweeps due entries. Returns false if there are more than one call should process. */
    sweep(time: number): boolean {
      const silent = connected.sweep(time - heartbeatTimeoutMs, expire, ({ record }) => record.actions.length)
      return disconnected.sweep(time - retentionMs, remove) && silent
    },

    /** Returns the record as of `time`, even if the entry was not swept. */
    view: (time: number) => (entry: LivingConnection) => {
      if (isLost(entry, time)) {
        const ended_reason = LifecycleReason.enum.heartbeat_lost
        return { ...entry.record, status: 'disconnected' as const, disconnected_at: lostAt(entry.record), ended_reason }
      }
      const gone = entry.record.status === 'disconnected' && entry.touchedAt + retentionMs <= time
      return gone ? undefined : entry.record
    },

    /** Returns the entry with that id as of now, and sweeps it. */
    find: (id: string, time: number) => sweepOne(table.get(id), time),

    /** Returns the entry that holds (user, client), or held it last. */
    latestOf: (client: Client, time: number): LivingConnection | undefined =>
      sweepOne(latest.get(clientKey(client)), time),

    /** Begins and ends before a place, the newest first. */
    eventsBefore: (place: number) => newestOf(table.before(place), ends.before(place)),

    connectedCount: () => connected.size,

    connectedOf: connectedOf.of,

    lastSeenOf: (userId: string) => lastSeen.get(userId) ?? null,

    /** @param now Time of the wall clock in epoch ms. */
    begin(record: Connection, descriptors: readonly ActionDescriptor[], time: number, now: number): void {
      const entry = table.add(record.connection_id, record, { end: 'disconnected', reason: null, endedAs: 0 })
      connected.push(entry, time)
      churn.opened(record.client_type, now)
      connectedOf.add(record.user_id, 1)
      latest.set(clientKey(record), entry)
      actions.add(record, descriptors)
      recordSight(record)
    },

    heartbeat(
      entry: LivingConnection,
      time: number,
      now: Pick<Connection, 'last_seen_at'> & Partial<Connection>,
    ): void {
      connected.touch(entry, time)
      table.replace(entry, Object.freeze({ ...entry.record, ...now }))
      recordSight(entry.record)
    },

    /** Ends a connected entry. */
    end(entry: LivingConnection, life: Ended, time: number, disconnected_at: string): void {
      connected.remove(entry)
      close(entry, life, time, disconnected_at)
    },
  }
}

/** One event of a connection, by its place in the order in which connections began and ended. */
export interface PlacedEvent {
  place: number
  entry: LivingConnection
}

const isEnd = ({ place, entry }: PlacedEvent) => place === entry.state.endedAs

/** Merges begins and ends, each the newest first. */
function* newestOf(
  begun: Iterable<LivingConnection>,
  ended: Iterable<LivingConnection>,
): Generator<PlacedEvent, void, void> {
  const begins = begun[Symbol.iterator]()
  let next = begins.next()
  for (const entry of ended) {
    for (; !next.done && next.value.sequence > entry.state.endedAs; next = begins.next())
      yield { place: next.value.sequence, entry: next.value }
    yield { place: entry.state.endedAs, entry }
  }
  for (; !next.done; next = begins.next()) yield { place: next.value.sequence, entry: next.value }
}

/** Events of some connections before a place, the newest first. */
export const eventsAmong = (entries: Iterable<LivingConnection>, before: number): PlacedEvent[] =>
  [...entries]
    .flatMap((entry) => [
      { place: entry.sequence, entry },
      ...(entry.state.endedAs > 0 ? [{ place: entry.state.endedAs, entry }] : []),
    ])
    .filter(({ place }) => place < before)
    .sort((a, b) => b.place - a.place)

/** An event as lists show it. */
export function toClientEvent(placed: PlacedEvent): ClientEvent {
  const { connection_id, user_id, client_id, instance_id, client_type, node_id, connected_at, disconnected_at } =
    placed.entry.record
  const client = { connection_id, user_id, client_id, instance_id, client_type, node_id }
  const { end, reason } = placed.entry.state
  return isEnd(placed)
    ? { ...client, event: end, at: disconnected_at ?? connected_at, reason }
    : { ...client, event: 'connected', at: connected_at, reason: null }
}

/** Returns the events of a connection in order: when it connected, and how it ended if it has. */
export function eventsOf({ id: connection_id, record, state }: LivingConnection): ConnectionEvent[] {
  const events: ConnectionEvent[] = [{ connection_id, event: 'connected', at: record.connected_at, reason: null }]
  if (record.disconnected_at !== null)
    events.push({ connection_id, event: state.end, at: record.disconnected_at, reason: state.reason })
  return events
}
