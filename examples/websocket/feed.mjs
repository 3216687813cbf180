/** Feeds a relay's facilities from a WebSocket server: what its sockets do is what the diagnostics show. */

// #region feed
import { promisify } from 'node:util'

/**
 * Follows the sockets of `server`. `userOf(request)` is whom you have authenticated: never what a client says.
 * @returns what closes them all, and resolves when their ends are written.
 */
export function feed(server, { connections, contexts, dispatcher }, { userOf, heartbeatMs = 30_000 }) {
  async function follow(socket, request) {
    socket.pause() // what comes before we listen waits
    socket.on('error', () => {}) // 'close' follows
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const query = new URL(request.url, 'ws://relay').searchParams
    const client = {
      user_id: userOf(request),
      client_id: query.get('client_id'),
      instance_id: query.get('instance_id'), // one for each life of the program: a new one ends the old
    }
    const { connection_id } = await connections.connect({ ...client, client_type: 'browser' })
    const send = promisify(socket.send.bind(socket))
    const tell = (type, body) => send(JSON.stringify({ type, ...body }))
    // To resolve says that the socket took the command. To reject leads to another attempt, and so does 5 s of silence.
    const waiter = await dispatcher.attach(client, (command, { signal }) => {
      const { command_id } = command
      // Cancelled or expired: the client is to stop.
      signal.addEventListener('abort', () => tell('cancel', { command_id }).catch(() => {}), { once: true })
      return tell('command', command)
    })

    const reported = new Set()
    const said = {
      async report({ context_id, status }) {
        await contexts.report({ ...client, context_id, client_type: 'browser', status })
        reported.add(context_id)
      },
      ack: ({ command_id }) => dispatcher.acknowledge({ ...client, command_id }),
      result: ({ command_id, ok }) => dispatcher.settle({ ...client, command_id, state: ok ? 'resulted' : 'failed' }),
    }
    async function hear(data) {
      const { type, ...body } = JSON.parse(data)
      if (Object.hasOwn(said, type)) await said[type](body)
    }
    // False: silent for too long, or replaced by a newer instance. Only a new connection helps.
    const beat = async () => (await connections.heartbeat(connection_id)) || socket.close(1008, 'superseded')
    const refuse = ({ code = 'bad_message' }) => socket.send(JSON.stringify({ type: 'refused', code }), () => {})
    socket.on('message', (data) => hear(data).catch(refuse))
    socket.on('pong', () => beat().catch(refuse))
    const pinging = setInterval(() => socket.ping(), heartbeatMs)
    socket.resume()

    await closed
    clearInterval(pinging)
    await waiter.detach()
    await connections.disconnect(connection_id, 'socket_closed')
    for (const context_id of reported) await contexts.close(context_id)
  }

  const following = new Set()
  server.on('connection', (socket, request) => {
    const followed = follow(socket, request).catch((error) => {
      socket.resume()
      socket.close(1011, error.code)
    })
    following.add(followed)
    followed.then(() => following.delete(followed))
  })
  return async function leave() {
    for (const socket of server.clients) socket.close(1001, 'shutdown')
    await Promise.all(following)
  }
}
// #endregion
