/** The wire of the host: which request of a client goes where. Every route but `connect` needs a session's token. */
import { json, readBody, toAnswer, WireError } from './http.mjs'
import { openMailbox } from './mailbox.mjs'
import { createReports } from './reports.mjs'

/** Context for reading a command that has no other caller. */
const ASK = { signal: new AbortController().signal }

/** What a client says of its failure, in the words that a caller gets to hear. */
const failureOf = ({ code = 'handler_error', message = null } = {}) => ({
  code: String(code),
  message: message === null ? null : String(message),
})

export function createWire({ facilities, sessions, connector, signal }) {
  const { connections, dispatcher, ingest, rpc } = facilities
  const reports = createReports(facilities)

  const routes = {
    'GET /relay/mailbox': ({ session, request }) =>
      openMailbox({ dispatcher, session, signal: AbortSignal.any([signal, request.signal]) }),

    'POST /relay/heartbeat': async ({ session }) => json({ alive: await connections.heartbeat(session.connection_id) }),

    async 'POST /relay/disconnect'({ session }) {
      session.closeMailbox?.()
      await reports.closeAll(session)
      sessions.forget(session)
      return json({ disconnected: await connections.disconnect(session.connection_id, 'client_left') })
    },

    async 'POST /relay/messages'({ session, body }) {
      const { message_id, stream, kind, payload } = body
      const { user_id, client_id, instance_id } = session
      return json(await ingest({ message_id, stream, kind, payload, user_id, client_id, instance_id }), 202)
    },

    async 'POST /relay/commands/:id/ack'({ session, id, body: { state, reason } }) {
      const { user_id, client_id, instance_id } = session
      const key = { user_id, client_id, command_id: id }
      return json({ counted: await dispatcher.acknowledge({ ...key, instance_id, state, reason }) })
    },

    async 'POST /relay/commands/:id/result'({ session, id, body }) {
      const { user_id, client_id, instance_id } = session
      const outcome =
        body.ok === true ? { ok: true, result: body.result } : { ok: false, error: failureOf(body.error ?? {}) }
      // A pending call with this id is a command whose result is awaited.
      if (await rpc.inspector.getPending(id, ASK))
        return json({
          counted: await connector.reply({ user_id, client_id, instance_id, correlation_id: id, outcome }),
        })
      const end = outcome.ok ? { state: 'resulted' } : { state: 'failed', reason: 'handler_error' }
      return json({ counted: await dispatcher.settle({ user_id, client_id, command_id: id, instance_id, ...end }) })
    },

    'PUT /relay/contexts/:id': ({ session, id, body }) => reports.context(session, id, body),
    'DELETE /relay/contexts/:id': ({ session, id }) => reports.closeContext(session, id),
    'PUT /relay/windows/:id': ({ session, id, body }) => reports.window(session, id, body),
    'DELETE /relay/windows/:id': ({ session, id }) => reports.closeWindow(session, id),
  }

  async function answer(request, pathname) {
    const connecting = request.method === 'POST' && pathname === '/relay/connect'
    if (connecting) return json(await sessions.connect(request, await readBody(request)), 201)
    const [, relay, noun, given, verb] = pathname.split('/').map(decodeURIComponent)
    const pattern = `/${[relay, noun, given && ':id', verb].filter(Boolean).join('/')}`
    const route = routes[`${request.method} ${pattern}`]
    if (!route) throw new WireError(404, 'no_such_route')
    const session = await sessions.authenticate(request)
    const body = request.method === 'POST' || request.method === 'PUT' ? await readBody(request) : undefined
    return route({ session, request, id: given, body })
  }

  return (request, pathname) => answer(request, pathname).catch(toAnswer)
}
