/** Brings a registry to what is there of one client: the connection that arrived last holds it, and those before are superseded. */
import type { Connection, ConnectionRegistry } from '../../contract/connections.js'
import type { JsonObject } from '../../contract/json.js'
import { Refusal, wasNotRun } from '../../refusal.js'
import type { Identity } from './options.js'

/** What a plug writes to. */
export type FollowedConnections = Pick<ConnectionRegistry, 'connect' | 'heartbeat' | 'disconnect' | 'currentInstance'>

/** One connection of the peer. */
export interface Member<P> {
  readonly peer: P
  /** Its turn: of two of one client the later one holds it, whoever was identified first. */
  readonly arrival: number
  identity: Identity | undefined
  client: Client<P> | undefined
  seenAt: number
  isSuperseded: boolean
  /** Why it went, and when. */
  reason: string
  leftAt: number
}

/** One client of one user, and what the registry was told of it. */
export interface Client<P> {
  readonly key: string
  /** Those that are there, in the order of their arrival. */
  readonly members: Member<P>[]
  written: { readonly id: string; readonly member: Member<P> } | undefined
  beatAt: number
  isDue: boolean
  /** It says something else of itself than the registry was told. */
  isChanged: boolean
  ousted: Ousted<P> | undefined
  /** Those whose connect was not answered: the registry may have one of them all the same. */
  readonly unsure: Set<Member<P>>
}

/** Who had a client when the registry was found to know that connection no more. */
interface Ousted<P> {
  readonly member: Member<P>
  /** Another connection was found to hold the client. */
  wasHeld: boolean
  /** Since when nobody was, after that. */
  vacantAt: number | undefined
}

export interface ClientWriterParts<P> {
  connections: FollowedConnections
  heartbeatMs: number
  metadataOf(peer: P): JsonObject
  now(): number
  /** The registry will never have this one. */
  refuse(member: Member<P>): void
  failed(error: unknown): void
  connected(peer: P, connection: Connection): void
  superseded(peer: P): void
  /** When the store was last found to be down. */
  failedAt(): number
}

/** What is told of who went while the store was away: when it is told is not when they went. */
export const UNKNOWN = 'unknown'

/** Who is silent is asked after one `heartbeatMs`, at a look that comes every half of it: by two he has been written. */
const SILENCES = 2

/** Of one client that comes and goes while replies are lost: those before end by their lease. */
const UNSURE_MAX = 8

/** What no other try can change: the identity is wrong. */
const isFinal = (error: unknown) =>
  error instanceof Refusal && (error.code === 'invalid_input' || error.code === 'payload_too_large')
const isFull = (error: unknown) => error instanceof Refusal && error.code === 'capacity_exceeded'

function addUnsure<P>({ unsure }: Client<P>, member: Member<P>): void {
  unsure.add(member)
  const [first] = unsure
  if (unsure.size > UNSURE_MAX && first) unsure.delete(first)
}

/**
 * Whom the registry has of those whose connect was not answered: what the connection is called, by which it can be ended, is
 * learned by connecting it once more. Whoever else holds the client by now is left alone.
 */
async function ghostOf<P>({ unsure }: Client<P>, connections: FollowedConnections): Promise<Member<P> | undefined> {
  const [any] = unsure
  const holder = await connections.currentInstance(any?.identity as Identity)
  return [...unsure].find(({ identity }) => identity?.instance_id === holder)
}

/** @returns what brings the registry to what is there of a client, and rejects where the store is not. */
export function createClientWriter<P>(parts: ClientWriterParts<P>): (client: Client<P>) => Promise<void> {
  const { connections, heartbeatMs, metadataOf, now, refuse, failed, connected, superseded, failedAt } = parts

  async function connect(client: Client<P>, member: Member<P>): Promise<void> {
    const identity = member.identity as Identity
    if (client.ousted?.member === member && (await isHeldElsewhere(client, client.ousted, identity))) return
    client.ousted = undefined
    try {
      client.isChanged = false
      const connection = await connections.connect({ ...identity, metadata: saidOf(member) })
      client.written = { id: connection.connection_id, member }
      client.unsure.clear()
      member.isSuperseded = false
      wasSeen(client)
      if (client.members.includes(member)) connected(member.peer, connection)
    } catch (error) {
      if (!isFinal(error) && !isFull(error)) {
        if (!wasNotRun(error)) addUnsure(client, member)
        throw error
      }
      if (isFinal(error)) refuse(member)
      failed(error)
    }
  }

  const saidOf = ({ identity, peer }: Member<P>) => ({ ...identity?.metadata, ...metadataOf(peer) })

  async function beat(client: Client<P>, id: string, member: Member<P>): Promise<void> {
    const says = client.isChanged ? saidOf(member) : undefined
    client.isChanged = false
    try {
      const isThere = await connections.heartbeat(id, says)
      if (isThere) wasSeen(client)
      if (isThere) return
    } catch (error) {
      // What has changed meanwhile is still to be said.
      client.isChanged ||= says !== undefined && !isFinal(error)
      if (!isFinal(error)) throw error
      client.isDue = client.isChanged
      failed(error)
      return
    }
    // Silent for too long, forgotten by its store, or somebody else's.
    client.written = undefined
    client.ousted = { member, wasHeld: false, vacantAt: undefined }
    await connect(client, member)
  }

  /**
   * Whether another connection holds the client, one that did not come through this plug. A store that has lost its data says of
   * nobody that he does: that one is first given the time in which it must have written a sign of life.
   */
  async function isHeldElsewhere(client: Client<P>, ousted: Ousted<P>, identity: Identity): Promise<boolean> {
    const holder = await connections.currentInstance(identity)
    if (holder === null) {
      if (!ousted.wasHeld) return false
      ousted.vacantAt ??= now()
      return now() - ousted.vacantAt < SILENCES * heartbeatMs
    }
    Object.assign(ousted, { wasHeld: true, vacantAt: undefined })
    if (holder !== identity.instance_id) for (const member of client.members) supersede(member)
    return true
  }

  function wasSeen(client: Client<P>): void {
    client.beatAt = now()
    client.isDue = client.isChanged
  }

  /** Whoever is there beside the one that the registry has, as another instance, is told that it counts no more. */
  function tellSuperseded({ written, members }: Client<P>): void {
    const holder = written?.member.identity?.instance_id
    for (const member of members) if (written && member.identity?.instance_id !== holder) supersede(member)
  }

  function supersede(member: Member<P>): void {
    if (member.isSuperseded) return
    member.isSuperseded = true
    superseded(member.peer)
  }

  return async (client) => {
    const { members } = client
    if (members.length === 0 && !client.written && client.unsure.size > 0) {
      const ghost = await ghostOf(client, connections)
      if (ghost) await connect(client, ghost)
      client.unsure.clear()
    }
    const { written } = client
    if (written && !members.includes(written.member)) {
      const { reason, leftAt } = written.member
      await connections.disconnect(written.id, leftAt <= failedAt() ? UNKNOWN : reason)
      client.written = undefined
    }
    const newest = members.at(-1)
    if (newest && client.written?.member !== newest) await connect(client, newest)
    else if (newest && client.written && client.isDue) await beat(client, client.written.id, newest)
    tellSuperseded(client)
  }
}
