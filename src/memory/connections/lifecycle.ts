/**
 * The lifecycle of connections (connected, timed out, ended, deleted), for the connection registry. Every `time` is one
 * of the steady clock; records have timestamps of the wall clock.
 */

import {
  type ActionDescriptor,
  type ClientEvent,
  CONNECTION_FAMILY,
  type Connection,
  type ConnectionCounts,
  type ConnectionEvent,
  LifecycleReason,
} from '../../contract/connections.js'
import { clientKey, toTimestamp } from '../../contract/ids.js'
import { createTally } from '../../fair-share/holders.js'
import { countedBy } from '../table/dimensions.js'
import { ExpiryQueue } from '../table/expiry-queue.js'
import { FairQueue } from '../table/fair-queue.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createTable, type Entry } from '../table/table.js'
import { createActionIndex } from './action-index.js'
import type { Churn } from './churn.js'

/** How a connection ended. */
interface Lifecycle {
  end: 'superseded' | 'disconnected'
  reason: string | null
  /** Place of its end in the order in which connections began and ended; 0 while it is connected. */
  endedAs: number
}

type Ended = Omit<Lifecycle, 'endedAs'>

export type LivingConnection = Entry<Connection, Lifecycle>

interface ConnectionLifecycleOptions {
  heartbeatTimeoutMs: number
  retentionMs: number
  maxDisconnected: number
}

type Client = Pick<Connection, 'user_id' | 'client_id'>

export type ConnectionLifecycle = ReturnType<typeof createConnectionLifecycle>

/** Creates the set of connections, connected or retained after their end, with all their counts and indexes. */
export function createConnectionLifecycle(
  { heartbeatTimeoutMs, retentionMs, maxDisconnected }: ConnectionLifecycleOptions,
  churn: Churn,
) {
  const table = createTable<Connection, Lifecycle, ConnectionCounts>({
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
  const { connection_id, user_id, client_id, instance_id, client_type, node_id, ...record } = placed.entry.record
  const client = { connection_id, user_id, client_id, instance_id, client_type, node_id }
  const { end, reason } = placed.entry.state
  return isEnd(placed)
    ? { ...client, event: end, at: record.disconnected_at ?? record.connected_at, reason }
    : { ...client, event: 'connected', at: record.connected_at, reason: null }
}

/** Returns the events of a connection in order: when it connected, and how it ended if it has. */
export function eventsOf({ id: connection_id, record, state }: LivingConnection): ConnectionEvent[] {
  const events: ConnectionEvent[] = [{ connection_id, event: 'connected', at: record.connected_at, reason: null }]
  if (record.disconnected_at !== null)
    events.push({ connection_id, event: state.end, at: record.disconnected_at, reason: state.reason })
  return events
}
