/** Follows the connections of a peer into a connection registry: each client's newest one is connected, kept alive and disconnected. */
import type { CloseResult } from '../../internal/async/deadline.js'
import { guardHook } from '../../internal/async/hook.js'
import { createAlarm, createTicker, sleep } from '../../internal/async/timer.js'
import { FUNCTION, required, withMethods } from '../../internal/contract/checks.js'
import type { Connection, ConnectionRegistry } from '../../internal/contract/connections.js'
import type { JsonObject } from '../../internal/contract/json.js'
import { Refusal } from '../../internal/refusal.js'
import type { CallLink } from './call-records.js'
import type { ObservedCallTable } from './calls.js'
import {
  checkIdentity,
  createWriter,
  FOLLOW_OPTIONS,
  type FollowOptions,
  type Identity,
  type PlugErrorPlace,
} from './writer.js'

/** The registry that the follower writes to. */
export type FollowedConnections = Pick<ConnectionRegistry, 'connect' | 'heartbeat' | 'disconnect' | 'currentInstance'>

/** Options of every plug that follows connections. */
export interface FollowConnectionsOptions<P> extends FollowOptions {
  /** The connection registry, of either composition. */
  connections: FollowedConnections
  /**
   * Called with a peer (a socket, response or transport) and its connection once that is written, and again if the store
   * had lost it or a newer instance has disconnected: from then on this instance is the current one.
   */
  onConnected?: ((peer: P, connection: Connection) => void) | undefined
  /** Called with a peer that is still open when a newer instance of its client has taken over; a host may close it. */
  onSuperseded?: ((peer: P) => void) | undefined
}

export const CONNECTION_OPTIONS = {
  ...FOLLOW_OPTIONS,
  connections: required(withMethods('connect', 'heartbeat', 'disconnect', 'currentInstance')),
  identify: required(FUNCTION),
  onConnected: FUNCTION,
  onSuperseded: FUNCTION,
}

export interface ConnectionFollowerParts<P> {
  connections: FollowedConnections
  heartbeatMs: number
  maxFollowed: number
  /** Returns metadata of the peer itself, besides what identifies it. */
  metadataOf(peer: P): JsonObject
  /** Sends a heartbeat probe to a connection. */
  probe(peer: P): void
  /** Removes the listeners of a connection that is not followed, or no longer. */
  release(peer: P): void
  /** The calls of the connections, if they are followed. */
  calls?: ObservedCallTable | undefined
  /** Guarded. */
  report(error: unknown, place: PlugErrorPlace): void
  /** Guarded. The registry has the connection now, for the first time or again. */
  connected(peer: P, connection: Connection): void
  /** Guarded. A newer instance holds the client of a connection that is still there. */
  superseded(peer: P): void
  /** @default performance.now */
  now?: () => number
}

type Identify = () => Identity | null | PromiseLike<Identity | null>

export interface ConnectionFollower<P> {
  /** Follows a connection, which belongs to the client that `identify` returns. */
  follow(peer: P, identify: Identify): void
  /** Whether a connection is followed. */
  has(peer: P): boolean
  /** The calls of a connection that is followed. */
  linkOf(peer: P): CallLink | undefined
  /** Records a sign of life. */
  seen(peer: P): void
  /** The metadata has changed: it is written once for all changes within a second. */
  changed(peer: P): void
  /** The connection has closed, for the `reason` that the peer gives. */
  leave(peer: P, reason: string): void
  /** Writes queued changes, within 5 s, and stops following. */
  close(): Promise<CloseResult>
}

/** One connection of the peer. */
interface Member<P> {
  readonly peer: P
  /** The later of two connections of a client holds it, whichever was identified first. */
  readonly arrival: number
  readonly link: CallLink | undefined
  identity?: Identity
  client?: Client<P>
  seenAt: number
  isSuperseded: boolean
  /** Why it closed, and how many outages had occurred by then. */
  ended?: { readonly reason: string; readonly outages: number } | undefined
}

/** One client of one user, with its last written connection. */
interface Client<P> {
  readonly key: string
  /** Its open connections, in the order of their arrival. */
  readonly members: Member<P>[]
  current: { readonly id: string; readonly member: Member<P> } | undefined
  beatAt: number
  isDue: boolean
  isChanged: boolean
  /** Another node may hold it: it is not written until that connection ends or a new one arrives here. */
  isLost: boolean
}

/** The reason of a disconnect that is written late: when it is written is not when the connection closed. */
export const UNKNOWN = 'unknown'

/** Maximum number of probes in one turn of the event loop: each may write to a socket. */
const PROBES = 500

/** A client that has just connected often joins several rooms in a row. */
const CHANGE_MS = 1_000

const hasCode = (error: unknown, ...codes: string[]) => error instanceof Refusal && codes.includes(error.code)
/** The registry will never accept this input. */
const isFinal = (error: unknown) => hasCode(error, 'invalid_input', 'payload_too_large')

type WriteParts<P> = Omit<ConnectionFollowerParts<P>, 'maxFollowed' | 'probe' | 'release' | 'report' | 'now'> & {
  now(): number
  failed(error: unknown): void
  /** The registry refuses this member. */
  refuse(member: Member<P>): void
  outages(): number
}

/** @returns a function that brings the registry to the present state of a client, and rejects if the store is down. */
function createClientWrite<P>(parts: WriteParts<P>): (client: Client<P>) => Promise<void> {
  const { connections, now, failed } = parts
  const describe = ({ identity, peer }: Member<P>) => ({ ...identity?.metadata, ...parts.metadataOf(peer) })

  function supersede(client: Client<P>, holder: string | undefined): void {
    for (const member of client.members) {
      if (member.isSuperseded || member.identity?.instance_id === holder) continue
      member.isSuperseded = true
      parts.superseded(member.peer)
    }
  }

  async function connect(client: Client<P>, member: Member<P>): Promise<void> {
    const identity = member.identity as Identity
    const { user_id, client_id } = identity
    const holder = client.isLost ? await connections.currentInstance({ user_id, client_id }) : null
    if (holder !== null) return supersede(client, holder)
    client.isLost = false
    client.isDue = client.isChanged = false
    client.beatAt = now()
    const connection = await connections.connect({ ...identity, metadata: describe(member) })
    client.current = { id: connection.connection_id, member }
    member.isSuperseded = false
    if (client.members.includes(member)) parts.connected(member.peer, connection)
  }

  async function beat(client: Client<P>, id: string, member: Member<P>): Promise<void> {
    const metadata = client.isChanged ? describe(member) : undefined
    client.isDue = client.isChanged = false
    client.beatAt = now()
    try {
      if (await connections.heartbeat(id, metadata)) return
    } catch (error) {
      client.isDue ||= !isFinal(error)
      client.isChanged ||= metadata !== undefined && !isFinal(error)
      throw error
    }
    // Silent for too long, forgotten by its store, or held by another node.
    client.current = undefined
    client.isLost = true
    await connect(client, member)
  }

  return async (client) => {
    const { members, current } = client
    if (current && !members.includes(current.member)) {
      const { ended } = current.member
      current.member.ended = undefined
      await connections.disconnect(current.id, ended?.outages === parts.outages() ? ended.reason : UNKNOWN)
      client.current = undefined
    }
    const newest = members.at(-1)
    if (!newest) return
    try {
      if (client.current?.member !== newest) await connect(client, newest)
      else if (client.isDue) await beat(client, client.current.id, newest)
    } catch (error) {
      if (!isFinal(error) && !hasCode(error, 'capacity_exceeded')) throw error
      if (isFinal(error) && client.current?.member !== newest) parts.refuse(newest)
      failed(error)
    }
    if (client.current) supersede(client, client.current.member.identity?.instance_id)
  }
}

export function createConnectionFollower<P>(parts: ConnectionFollowerParts<P>): ConnectionFollower<P> {
  const { heartbeatMs, maxFollowed, calls, release, report, now = () => performance.now() } = parts
  const members = new Map<P, Member<P>>()
  const clients = new Map<string, Client<P>>()
  const changed = new Set<P>()
  const failed = (error: unknown) => report(error, { step: 'write' })
  const probe = guardHook(parts.probe, failed)
  const writeClient = createClientWrite<P>({ ...parts, now, failed, refuse: drop, outages: () => writer.outages() })
  const writer = createWriter<Client<P>>({
    async write(client) {
      await writeClient(client)
      const isDone = client.members.length === 0 && !client.current
      if (isDone && clients.get(client.key) === client) clients.delete(client.key)
    },
    failed,
  })
  const ticker = createTicker(tick, Math.ceil(heartbeatMs / 2))
  const changes = createAlarm(writeChanges)
  let arrivals = 0

  async function learn(member: Member<P>, identify: Identify): Promise<void> {
    try {
      const identity = checkIdentity(await identify())
      // It may have closed meanwhile.
      if (members.get(member.peer) !== member) return
      if (identity === null) drop(member)
      else join(member, identity)
    } catch (error) {
      drop(member)
      report(error, { step: 'identify' })
    }
  }

  function join(member: Member<P>, identity: Identity): void {
    const key = `${identity.user_id}\n${identity.client_id}`
    const made = { key, members: [], current: undefined, beatAt: 0, isDue: false, isChanged: false, isLost: false }
    const client: Client<P> = clients.get(key) ?? made
    clients.set(key, client)
    Object.assign(member, { identity, client })
    if (member.link) member.link.owner = identity
    client.members.push(member)
    client.members.sort((a, b) => a.arrival - b.arrival)
    if (client.members.at(-1) === member) client.isLost = false
    writer.want(client)
  }

  /** Stops following `member`. */
  function drop(member: Member<P>, reason?: string): void {
    if (members.get(member.peer) !== member) return
    members.delete(member.peer)
    release(member.peer)
    const { client, link } = member
    if (link) calls?.end(link, reason ?? null)
    if (!client) return
    client.members.splice(client.members.indexOf(member), 1)
    member.ended = { reason: reason ?? UNKNOWN, outages: writer.outages() }
    // A connection that cannot be disconnected ends by its lease; at most `maxFollowed` of those wait here.
    const isDone = client.members.length === 0 && (!client.current || clients.size > 2 * maxFollowed)
    if (isDone && writer.forget(client)) clients.delete(client.key)
    else writer.want(client)
  }

  function wantBeat(member: Member<P>, isChanged: boolean): void {
    const { client } = member
    if (client?.members.at(-1) !== member) return
    client.isDue = true
    client.isChanged ||= isChanged
    writer.want(client)
  }

  function writeChanges(): void {
    for (const peer of changed) {
      const member = members.get(peer)
      if (member) wantBeat(member, true)
    }
    changed.clear()
  }

  /** Probes the silent, and retries clients that the registry does not have. */
  async function tick(): Promise<void> {
    for (const client of clients.values()) if (!client.current) writer.want(client)
    const since = now() - heartbeatMs
    let probed = 0
    for (const { peer, seenAt } of members.values()) {
      if (seenAt > since) continue
      probe(peer)
      if (++probed % PROBES === 0) await sleep(0)
    }
  }

  ticker.start()
  return {
    follow(peer, identify) {
      if (members.has(peer)) return
      if (members.size >= maxFollowed) {
        release(peer)
        report(new Refusal('capacity_exceeded', `${maxFollowed} are followed`), { step: 'identify' })
        return
      }
      const link = calls?.link()
      const member: Member<P> = { peer, arrival: ++arrivals, link, seenAt: now(), isSuperseded: false }
      members.set(peer, member)
      void learn(member, identify)
    },
    has: (peer) => members.has(peer),
    linkOf: (peer) => members.get(peer)?.link,
    seen(peer) {
      const member = members.get(peer)
      if (!member) return
      member.seenAt = now()
      if (member.client?.current?.member !== member) return
      if (now() - member.client.beatAt >= heartbeatMs / 2) wantBeat(member, false)
    },
    changed(peer) {
      if (!members.has(peer)) return
      changed.add(peer)
      changes.advance(CHANGE_MS)
    },
    leave(peer, reason) {
      const member = members.get(peer)
      if (member) drop(member, reason)
    },
    async close() {
      ticker.stop()
      changes.clear()
      writeChanges()
      for (const peer of members.keys()) release(peer)
      members.clear()
      const endings = await Promise.all([writer.end(), calls?.close()])
      clients.clear()
      return { aborted: endings.reduce((sum, ending) => sum + (ending?.aborted ?? 0), 0) }
    },
  }
}
