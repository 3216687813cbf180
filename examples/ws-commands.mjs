/** A WebSocket server whose sockets take commands: the plug, and the dispatcher beside it. `node examples/ws-commands.mjs` */
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { WebSocketServer } from 'ws'

const facilities = createMemoryFacilities()
const { connections, dispatcher } = facilities
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, dispatcher }), // only what is fed below
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const mount = toNodeHandler(diagnostics)
const server = createServer((req, res) => mount(req, res, () => work(req, res)))
const sockets = new WebSocketServer({ server })

/** Whom your cookie or token belongs to; this example believes everybody who comes to `/user/client/instance`. */
function whoIs(request) {
  const [, user_id, client_id, instance_id] = request.url.split('/')
  return instance_id ? { user_id, client_id, instance_id, client_type: 'web' } : null
}

// #region commands
import { promisify } from 'node:util'
import { followWebSockets } from 'relayscope/ws'

const complain = (error) => console.error(error) // over Redis every call can reject, and Node ends for one that nobody catches

const follower = followWebSockets(sockets, {
  connections,
  identify: (_socket, request) => (request ? whoIs(request) : null), // by your own authentication
  onSuperseded: (socket) => socket.close(1008, 'superseded'),
  async onConnected(socket, connection) {
    const send = promisify(socket.send.bind(socket))
    const tell = (type, body) => send(JSON.stringify({ type, ...body }))
    function deliver(command, { signal }) {
      const { command_id } = command
      signal.addEventListener('abort', () => tell('cancel', { command_id }).catch(() => {}), { once: true })
      return tell('command', command)
    }
    try {
      const waiter = await dispatcher.attach(connection, deliver) // in place of the waiter before, if there was one
      if (socket.readyState !== socket.OPEN) return await waiter.detach() // it has closed meanwhile
      socket.once('close', () => waiter.detach().catch(complain))
    } catch (error) {
      complain(error)
      socket.close(1011) // connected, it would get no commands: it is to come back
    }
  },
})

sockets.on('connection', (socket, request) => {
  socket.on('error', () => {}) // 'close' follows
  const client = whoIs(request)
  if (!client) return socket.close(1008, 'nobody')
  const said = {
    ack: ({ command_id }) => dispatcher.acknowledge({ ...client, command_id }),
    result: ({ command_id, ok }) => dispatcher.settle({ ...client, command_id, state: ok ? 'resulted' : 'failed' }),
  }
  async function hear(data) {
    const { type, ...body } = JSON.parse(data)
    if (Object.hasOwn(said, type)) await said[type](body)
  }
  socket.on('message', (data) => hear(data).catch(complain))
})
// #endregion

// #region ending
process.once('SIGTERM', async () => {
  server.close() // nobody new comes
  const ended = [...sockets.clients].map((socket) => new Promise((resolve) => socket.once('close', resolve)))
  for (const socket of sockets.clients) socket.close(1001) // shown as `going_away`
  const impatient = setTimeout(() => {
    for (const socket of sockets.clients) socket.terminate() // who does not answer
  }, 2_000)
  await Promise.all(ended)
  clearTimeout(impatient)
  await follower.close() // their ends are written
  await facilities.close() // and the node leaves
  process.exit()
})
// #endregion

/** `POST /sync/ada/laptop` gives that client something to do. */
function work(req, res) {
  const [, action, user_id, client_id] = req.url.split('/')
  const command = { user_id, client_id, action, command_id: crypto.randomUUID(), deadlineMs: 60_000 }
  dispatcher.dispatch(command).then(
    (evidence) => res.writeHead(202).end(JSON.stringify(evidence)),
    ({ code = 'internal' }) => res.writeHead(422).end(JSON.stringify({ code })),
  )
}

server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/delivery/commands`)
})
