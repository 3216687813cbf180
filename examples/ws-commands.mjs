/** A WebSocket server whose sockets take commands: the ws integration and the dispatcher. `node examples/ws-commands.mjs` */
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { WebSocketServer } from 'ws'

const facilities = createMemoryFacilities()
const { connections, dispatcher } = facilities
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, dispatcher }), // only what you feed
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const mount = toNodeHandler(diagnostics)
const server = createServer((req, res) => mount(req, res, () => work(req, res)))
const sockets = new WebSocketServer({ server })
// A malformed frame is an 'error' of its socket, and without a listener it ends the process.
sockets.on('connection', (socket) => socket.on('error', () => {}))

/** Look up the user of your cookie or token here. This example trusts the path `/user/client/instance`. */
function whoIs(request) {
  const [, user_id, client_id, instance_id] = request.url.split('/')
  return instance_id ? { user_id, client_id, instance_id, client_type: 'web' } : null
}

// #region commands
import { promisify } from 'node:util'
import { followWebSockets } from 'relayscope/ws'

const logError = (error) => console.error(error) // in Redis every call can reject; Node ends on an unhandled rejection

const follower = followWebSockets(sockets, {
  connections,
  identify: (_socket, request) => (request ? whoIs(request) : null), // your own authentication
  onSuperseded: (socket) => socket.close(1008, 'superseded'),
  async onConnected(socket, connection) {
    const send = promisify(socket.send.bind(socket))
    const sendMessage = (type, body) => send(JSON.stringify({ type, ...body }))
    function deliver(command, { signal }) {
      const { command_id } = command
      signal.addEventListener('abort', () => sendMessage('cancel', { command_id }).catch(() => {}), { once: true })
      return sendMessage('command', command)
    }
    try {
      const waiter = await dispatcher.attach(connection, deliver) // replaces an earlier waiter of this client
      if (socket.readyState !== socket.OPEN) return await waiter.detach() // it closed while attaching
      socket.once('close', () => waiter.detach().catch(logError))
    } catch (error) {
      logError(error)
      socket.close(1011) // without a waiter it gets no commands: let it reconnect
    }
  },
})

sockets.on('connection', (socket, request) => {
  socket.on('error', () => {}) // 'close' follows every error
  const client = whoIs(request)
  if (!client) return socket.close(1008, 'unauthenticated')
  const handlers = {
    ack: ({ command_id }) => dispatcher.acknowledge({ ...client, command_id }),
    result: ({ command_id, ok }) => dispatcher.settle({ ...client, command_id, state: ok ? 'resulted' : 'failed' }),
  }
  async function receive(data) {
    const { type, ...body } = JSON.parse(data)
    if (Object.hasOwn(handlers, type)) await handlers[type](body)
  }
  socket.on('message', (data) => receive(data).catch(logError))
})
// #endregion

// #region ending
process.once('SIGTERM', async () => {
  server.close() // accept no new connections
  const ended = [...sockets.clients].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
  for (const socket of sockets.clients) socket.close(1001) // shown as `going_away`
  const timeout = setTimeout(() => {
    for (const socket of sockets.clients) socket.terminate() // sockets that do not answer
  }, 2_000)
  await Promise.all(ended)
  clearTimeout(timeout)
  await follower.close() // write their disconnects
  await facilities.close() // stop the loops and release the store
  process.exit()
})
// #endregion

/** `POST /sync/ada/laptop` sends a command to that client. */
function work(req, res) {
  const [, action, user_id, client_id] = req.url.split('/')
  const command = { user_id, client_id, action, command_id: crypto.randomUUID(), deadline_ms: 60_000 }
  dispatcher.dispatch(command).then(
    (evidence) => res.writeHead(202).end(JSON.stringify(evidence)),
    ({ code = 'internal' }) => res.writeHead(422).end(JSON.stringify({ code })),
  )
}

server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/delivery/commands`)
})
