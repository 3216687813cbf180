/** Servers whose own acknowledgements are observed: Socket.IO, and JSON-RPC over ws. `node examples/acknowledgements.mjs` */
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { Server } from 'socket.io'
import { WebSocketServer } from 'ws'

/** Look up the user of your cookie or token here. This example trusts what the client sends. */
function whoIs({ user, client, instance }) {
  return { user_id: user, client_id: client, instance_id: instance, client_type: 'web' }
}

// #region mount
const { connections, rpc } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections, rpc }),
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }), // SERVICE_ADMIN_KEY, or this machine only
  prefix: '/ops/diagnostics',
})
const server = createServer(toNodeHandler(diagnostics))
// #endregion

// #region socket-io-before
const io = new Server(server, { destroyUpgrade: false })
io.on('connection', (socket) => {
  socket.emit('sync', { since: 1 }, (reply) => console.log('synced', reply))
})

// #endregion

// #region socket-io-after
import { followSocketIo } from 'relayscope/socket.io'

followSocketIo(io, { connections, calls: rpc, identify: (socket) => whoIs(socket.handshake.auth) })
// #endregion

// #region json-rpc-before
const sockets = new WebSocketServer({ noServer: true })
sockets.on('connection', (socket) => {
  socket.on('error', () => {})
  socket.send(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sync', params: { since: 1 } }))
})

// #endregion

// #region json-rpc-after
import { followWebSockets, jsonRpc } from 'relayscope/ws'

const paramsOf = (request) => Object.fromEntries(new URL(request.url, 'ws://host').searchParams)
followWebSockets(sockets, {
  connections,
  calls: rpc,
  protocol: jsonRpc,
  identify: (_socket, request) => (request ? whoIs(paramsOf(request)) : null), // your own authentication
})
// #endregion

// #region own-before
const devices = new WebSocketServer({ noServer: true })
devices.on('connection', (socket) => {
  socket.on('error', () => {})
  socket.send(JSON.stringify({ type: 'command', id: 'c-1', name: 'reboot' }))
})
// #endregion

// #region own-after
const protocol = {
  /** Says what a message is. */
  read(text) {
    const { type, id, name, ok } = JSON.parse(text)
    if (type === 'command') return { kind: 'request', id, action: name }
    return type === 'done' ? { kind: 'reply', id, ok } : undefined
  },
}
followWebSockets(devices, {
  connections,
  calls: rpc,
  protocol,
  identify: (_socket, request) => (request ? whoIs(paramsOf(request)) : null), // your own authentication
})
// #endregion

server.on('upgrade', (request, socket, head) => {
  socket.on('error', () => {})
  const own = request.url.startsWith('/rpc') ? sockets : request.url.startsWith('/devices') ? devices : null
  if (own) own.handleUpgrade(request, socket, head, (upgraded) => own.emit('connection', upgraded, request))
  else if (!request.url.startsWith('/socket.io/')) socket.destroy()
})
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/rpc/pending`)
})
