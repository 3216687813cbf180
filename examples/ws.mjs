/** A WebSocket server with the ws integration, the diagnostics and the dashboard on one port. `node examples/ws.mjs` */

// #region server
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { WebSocketServer } from 'ws'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what the integration feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }), // SERVICE_ADMIN_KEY, or this machine only
  prefix: '/ops/diagnostics',
})
const dashboard = createDashboard({ api: '/ops/diagnostics', prefix: '/ops/dashboard' })
const mount = toNodeHandler(diagnostics)
const mountPage = toNodeHandler(dashboard)
const server = createServer((req, res) => mount(req, res, () => mountPage(req, res, () => res.end('your own pages'))))
const sockets = new WebSocketServer({ server })
// A malformed frame is an 'error' of its socket, and without a listener it ends the process.
sockets.on('connection', (socket) => socket.on('error', () => {}))
server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1')
// #endregion

sockets.on('connection', (socket) => socket.send('hello'))

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

server.on('listening', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/connections`)
})
