/**
 * Who a request is from. A ticket, handed out by the host, says which user may connect; a token, handed to a client
 * when it connects, says which instance speaks. Nothing in a body ever names a user.
 */
import { randomBytes } from 'node:crypto'
import { bearerOf, WireError } from './http.mjs'

// More tabs than a person opens; at the bound the oldest one's token ends.
const SESSIONS_MAX = 1_000
const TICKETS_MAX = 1_000

const secret = () => randomBytes(32).toString('base64url')

function remember(map, key, value, max) {
  map.set(key, value)
  if (map.size > max) map.delete(map.keys().next().value)
}

/** `clients`, `{ user_id, client_id, ticket }`, have a ticket from the start, which never ends. */
export function createSessions({ connections, heartbeatMs, clients }) {
  const own = new Map(clients.map(({ ticket, user_id, client_id }) => [ticket, { user_id, client_id }]))
  const tickets = new Map()
  const sessions = new Map()

  return {
    /** A ticket to connect as `user_id`. */
    ticket(user_id) {
      const ticket = secret()
      remember(tickets, ticket, { user_id }, TICKETS_MAX)
      return ticket
    },

    /** Connects a client with the ticket that it shows, and hands it its token. */
    async connect(request, { client_id, instance_id, client_type, actions, metadata }) {
      const ticket = own.get(bearerOf(request)) ?? tickets.get(bearerOf(request))
      if (!ticket) throw new WireError(401, 'unknown_ticket')
      if (ticket.client_id !== undefined && ticket.client_id !== client_id) throw new WireError(403, 'another_client')
      const { user_id } = ticket
      const connection = await connections.connect({ user_id, client_id, instance_id, client_type, actions, metadata })
      const { connection_id } = connection
      for (const older of sessions.values())
        if (older.user_id === user_id && older.client_id === client_id) older.closeMailbox?.()
      const token = secret()
      const identity = { user_id, client_id, instance_id, client_type, connection_id }
      remember(sessions, token, { ...identity, token, contexts: new Set(), windows: new Set() }, SESSIONS_MAX)
      return { token, user_id, client_id, instance_id, connection_id, heartbeat_ms: heartbeatMs }
    },

    /** The session of a request's token, as long as its instance holds the client. */
    async authenticate(request) {
      const session = sessions.get(bearerOf(request))
      if (!session) throw new WireError(401, 'unknown_token')
      const current = await connections.currentInstance(session)
      if (current === session.instance_id) return session
      sessions.delete(session.token)
      // After a lost heartbeat it may connect again; after a newer instance has replaced it, it must not.
      throw current === null ? new WireError(401, 'connection_lost') : new WireError(409, 'superseded')
    },

    forget: ({ token }) => sessions.delete(token),
  }
}
