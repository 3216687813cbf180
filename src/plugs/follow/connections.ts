/** Follows the connections of a peer into a connection registry: who is there, as whom, and when each gave a sign of life. */
import type { Ending } from '../../async/ending.js'
import { guardHook } from '../../async/hook.js'
import { createAlarm, createTicker, sleep } from '../../async/timer.js'
import type { Connection } from '../../contract/connections.js'
import type { JsonObject } from '../../contract/json.js'
import { Refusal } from '../../refusal.js'
import { type FollowedConnections, type Member, UNKNOWN } from './client-writer.js'
import { createClients } from './clients.js'
import { checkIdentity, type Identity, type PlugErrorPlace } from './options.js'

export interface ConnectionFollowerParts<P> {
  connections: FollowedConnections
  heartbeatMs: number
  maxFollowed: number
  /** What the peer itself says of a connection, beside what it was identified with. */
  metadataOf(peer: P): JsonObject
  /** Asks a connection for a sign of life. */
  probe(peer: P): void
  /** Takes listeners away: the connection is not followed, or no more. */
  release(peer: P): void
  /** Guarded. */
  report(error: unknown, place: PlugErrorPlace): void
  /** Guarded. The registry has the connection now, for the first time or again. */
  connected(peer: P, connection: Connection): void
  /** Guarded. A newer instance holds the client of a connection that is still there. */
  superseded(peer: P): void
  now(): number
}

type Identify = () => Identity | null | PromiseLike<Identity | null>

export interface ConnectionFollower<P> {
  /** Follows a connection from now on, as whom `identify` says. */
  follow(peer: P, identify: Identify): void
  /** A sign of life. */
  seen(peer: P): void
  /** It says something else of itself: written with a sign of life, once for all that changes within a second. */
  changed(peer: P): void
  /** The connection is no more; `reason` is the peer's own word. */
  leave(peer: P, reason: string): void
  /** Writes what waits, within 5 s, and follows nobody any more. */
  close(): Promise<Ending>
}

/** A connection of which nobody knows yet whose it is. */
const toMember = <P>(peer: P, arrival: number, seenAt: number): Member<P> => ({
  peer,
  arrival,
  identity: undefined,
  client: undefined,
  seenAt,
  isSuperseded: false,
  reason: UNKNOWN,
  leftAt: 0,
})

/** Those asked for a sign of life in one turn of the event loop: each may be a write to a socket. */
const PROBES = 500

/** Who has just come joins several rooms one after the other. */
const CHANGE_MS = 1_000

export function createConnectionFollower<P>(parts: ConnectionFollowerParts<P>): ConnectionFollower<P> {
  const { heartbeatMs, maxFollowed, release, report, now } = parts
  const members = new Map<P, Member<P>>()
  const failed = (error: unknown) => report(error, { step: 'write' })
  const probe = guardHook(parts.probe, failed)
  const clients = createClients<P>({ ...parts, failed, refuse: drop, returned: () => void probeSilent(0) })
  const ticker = createTicker(tick, Math.ceil(heartbeatMs / 2))
  const changed = new Set<P>()
  const telling = createAlarm(tellChanges)
  let arrivals = 0

  async function learn(member: Member<P>, identify: Identify): Promise<void> {
    try {
      const identity = checkIdentity(await identify())
      // It may have gone by now: then nobody has seen whose it was.
      if (members.get(member.peer) !== member) return
      if (identity === null) drop(member)
      else clients.join(member, identity)
    } catch (error) {
      drop(member)
      report(error, { step: 'identify' })
    }
  }

  /** Follows `member` no more. */
  function drop(member: Member<P>, reason?: string): void {
    if (members.get(member.peer) !== member) return
    members.delete(member.peer)
    release(member.peer)
    clients.leave(member, reason)
  }

  function tellChanges(): void {
    for (const peer of changed) {
      const member = members.get(peer)
      if (member) clients.changed(member)
    }
    changed.clear()
  }

  /** Asks all who were silent for `ms` by now; after `close()` there is nobody left to ask. */
  async function probeSilent(ms: number): Promise<void> {
    const since = now() - ms
    let asked = 0
    for (const { peer, seenAt } of members.values()) {
      if (seenAt > since) continue
      probe(peer)
      if (++asked % PROBES === 0) await sleep(0)
    }
  }

  /** Who has been silent is asked for a sign of life, and who could not be written has another turn. */
  function tick(): Promise<void> {
    clients.retry()
    return probeSilent(heartbeatMs)
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
      const member = toMember(peer, ++arrivals, now())
      members.set(peer, member)
      void learn(member, identify)
    },
    seen(peer) {
      const member = members.get(peer)
      if (!member) return
      member.seenAt = now()
      clients.seen(member)
    },
    changed(peer) {
      if (!members.has(peer)) return
      changed.add(peer)
      telling.advance(CHANGE_MS)
    },
    leave(peer, reason) {
      const member = members.get(peer)
      if (member) drop(member, reason)
    },
    close() {
      ticker.stop()
      telling.clear()
      tellChanges()
      for (const peer of members.keys()) release(peer)
      members.clear()
      return clients.end()
    },
  }
}
