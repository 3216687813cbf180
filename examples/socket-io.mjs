/** An existing Socket.IO server with the Socket.IO integration. `node examples/socket-io.mjs` */
import { createServer } from 'node:http'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { Server } from 'socket.io'

const { connections } = createMemoryFacilities()
const diagnostics = createDiagnosticsRouter({
  ...memoryComposition({ connections }), // only what the integration feeds
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const server = createServer(toNodeHandler(diagnostics))
const io = new Server(server)
io.on('connection', (socket) => socket.join('all'))

/** Look up the user of your cookie or token here. This example trusts `auth` of the handshake. */
function whoIs({ handshake: { auth } }) {
  return { user_id: auth.user, client_id: auth.client, instance_id: auth.instance, client_type: 'web' }
}

// #region plug
import { followSocketIo } from 'relayscope/socket.io'

followSocketIo(io, {
  connections,
  identify: (socket) => whoIs(socket), // your own authentication
})
// #endregion

server.listen(Number(process.env.PORT ?? 8080), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${server.address().port}${diagnostics.prefix}/connections`)
})
