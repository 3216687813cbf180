/** Which clients of a peer are there, or have left without the registry having heard of it: a bounded number of both. */
import type { Ending } from '../../async/ending.js'
import { type Client, type ClientWriterParts, createClientWriter, type Member } from './client-writer.js'
import type { Identity } from './options.js'
import { createWriter } from './writer.js'

export interface ClientsParts<P> extends Omit<ClientWriterParts<P>, 'failedAt'> {
  maxFollowed: number
  /** The store answers again. */
  returned(): void
}

export interface Clients<P> {
  /** `member` is one of the client that its identity names. */
  join(member: Member<P>, identity: Identity): void
  /** `member` has gone, and `reason` why; or nothing is to be said of it. */
  leave(member: Member<P>, reason?: string): void
  /** A sign of life is written, unless one was in the last half of its time. */
  seen(member: Member<P>): void
  /** It says something else of itself now. */
  changed(member: Member<P>): void
  /** Gives another turn to what could not be written. */
  retry(): void
  end(): Promise<Ending>
}

export function createClients<P>(parts: ClientsParts<P>): Clients<P> {
  const { heartbeatMs, maxFollowed, now } = parts
  const clients = new Map<string, Client<P>>()
  /** Those without a member, whose end the store has not been told; the first of them left first. */
  const left = new Set<Client<P>>()
  let failedAt = Number.NEGATIVE_INFINITY
  let returnedAt = Number.NEGATIVE_INFINITY
  const writeClient = createClientWriter<P>({ ...parts, failedAt: () => failedAt })
  const writer = createWriter<Client<P>>({
    async write(client) {
      await writeClient(client)
      if (client.members.length > 0 || client.written) return
      left.delete(client)
      clients.delete(client.key)
    },
    failed(error, isDown) {
      if (isDown) failedAt = now()
      parts.failed(error)
    },
    // The store may have lost what it was told: whoever is there is to give a sign of life, which is written at once.
    returned() {
      if (now() - returnedAt < heartbeatMs) return
      returnedAt = now()
      for (const client of clients.values()) client.beatAt = Number.NEGATIVE_INFINITY
      parts.returned()
    },
  })

  function forget(client: Client<P>): boolean {
    if (!writer.forget(client)) return false
    left.delete(client)
    return clients.delete(client.key)
  }

  return {
    join(member, identity) {
      const key = `${identity.user_id}\n${identity.client_id}`
      const known = clients.get(key)
      const client = known ?? {
        key,
        members: [],
        written: undefined,
        beatAt: 0,
        isDue: false,
        isChanged: false,
        ousted: undefined,
        unsure: new Set<Member<P>>(),
      }
      clients.set(key, client)
      left.delete(client)
      Object.assign(member, { identity, client })
      const at = client.members.findIndex(({ arrival }) => arrival > member.arrival)
      client.members.splice(at < 0 ? client.members.length : at, 0, member)
      writer.want(client)
    },
    leave(member, reason) {
      const { client } = member
      if (!client?.members.includes(member)) return
      client.members.splice(client.members.indexOf(member), 1)
      member.leftAt = now()
      if (reason !== undefined && !writer.isDown()) member.reason = reason
      const isUnwritten = !client.written && client.unsure.size === 0
      if (client.members.length === 0 && isUnwritten && forget(client)) return
      writer.want(client)
      if (client.members.length > 0) return
      left.add(client)
      const [first] = left
      // Its lease ends it in the store.
      if (left.size > maxFollowed && first) forget(first)
    },
    seen(member) {
      const { client } = member
      if (client?.written?.member !== member || now() - client.beatAt < heartbeatMs / 2) return
      client.isDue = true
      writer.want(client)
    },
    changed(member) {
      const { client } = member
      // Its connect may be under way, and have said already what it said of itself before.
      if (client?.members.at(-1) !== member) return
      client.isDue = true
      client.isChanged = true
      writer.want(client)
    },
    retry() {
      for (const client of clients.values()) if (!client.written) writer.want(client)
      writer.retryRested()
    },
    async end() {
      const ending = await writer.end()
      clients.clear()
      left.clear()
      return ending
    },
  }
}
