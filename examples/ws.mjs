/** An existing WebSocket server with the ws integration. `node examples/ws.mjs` */
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { WebSocketServer } from 'ws'

const server = createServer()
const sockets = new WebSocketServer({ server })
sockets.on('connection', (socket) => socket.send('hello'))
const { connections } = createMemoryFacilities()

/** Look up the user of your cookie or token here. This example trusts the path `/user/client/instance`. */
function whoIs(request) {
  const [, user_id, client_id, instance_id] = request.url.split('/')
  return { user_id, client_id, instance_id, client_type: 'web' }
}

// #region plug
import { followWebSockets } from 'relayscope/ws'

followWebSockets(sockets, {
  connections,
  identify: (_socket, request) => (request ? whoIs(request) : null), // your own authentication
})
// #endregion

const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what the integration feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
server.on('request', toNodeHandler(diagnostics))
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/connections`)
})
