/** Feeds a relay's facilities from a WebSocket server: what its sockets do is what the diagnostics show. */

// #region feed
import { promisify } from 'node:util'

/**
 * Registers every socket of `server`. `userOf(request)` returns the user that you authenticated, never an id from the client.
 * @returns a function that closes all sockets and resolves when their disconnects are written.
 */
export function feed(server, { connections, contexts, dispatcher }, { userOf, heartbeatMs = 30_000 }) {
  async function follow(socket, request) {
    socket.pause() // keep messages until the handlers are attached
    socket.on('error', () => {}) // 'close' follows every error
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const query = new URL(request.url, 'ws://relay').searchParams
    const client = {
      user_id: userOf(request),
      client_id: query.get('client_id'),
      instance_id: query.get('instance_id'), // new for every page load; it supersedes the older instance
    }
    const { connection_id } = await connections.connect({ ...client, client_type: 'browser' })
    const send = promisify(socket.send.bind(socket))
    const sendMessage = (type, body) => send(JSON.stringify({ type, ...body }))
    // Resolves once the socket accepted the command. It is retried after a rejection, or without an acknowledgement in 5 s.
    const waiter = await dispatcher.attach(client, (command, { signal }) => {
      const { command_id } = command
      // Cancelled or expired: the client must stop.
      signal.addEventListener('abort', () => sendMessage('cancel', { command_id }).catch(() => {}), { once: true })
      return sendMessage('command', command)
    })

    const reported = new Set()
    const handlers = {
      async report({ context_id, status }) {
        await contexts.report({ ...client, context_id, client_type: 'browser', status })
        reported.add(context_id)
      },
      ack: ({ command_id }) => dispatcher.acknowledge({ ...client, command_id }),
      result: ({ command_id, ok }) => dispatcher.settle({ ...client, command_id, state: ok ? 'resulted' : 'failed' }),
    }
    async function receive(data) {
      const { type, ...body } = JSON.parse(data)
      if (Object.hasOwn(handlers, type)) await handlers[type](body)
    }
    // False: the connection expired or was superseded. The client must connect again.
    const beat = async () => (await connections.heartbeat(connection_id)) || socket.close(1008, 'superseded')
    const refuse = ({ code = 'bad_message' }) => socket.send(JSON.stringify({ type: 'refused', code }), () => {})
    socket.on('message', (data) => receive(data).catch(refuse))
    socket.on('pong', () => beat().catch(refuse))
    const pinging = setInterval(() => socket.ping(), heartbeatMs)
    socket.resume()

    await closed
    clearInterval(pinging)
    await waiter.detach()
    await connections.disconnect(connection_id, 'socket_closed')
    for (const context_id of reported) await contexts.close(context_id)
  }

  const open = new Set()
  server.on('connection', (socket, request) => {
    const followed = follow(socket, request).catch((error) => {
      socket.resume()
      socket.close(1011, error.code)
    })
    open.add(followed)
    followed.then(() => open.delete(followed))
  })
  return async function closeAll() {
    for (const socket of server.clients) socket.close(1001, 'shutdown')
    await Promise.all(open)
  }
}
// #endregion
