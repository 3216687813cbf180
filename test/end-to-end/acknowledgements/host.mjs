/**
 * A host that asks each of its clients again and again, and what follows it: `node host.mjs socket.io|json-rpc|mcp`. With
 * `REDIS_PORT` the facilities are those of the deployment `hosts` there.
 */
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { Redis } from 'ioredis'
import { createDiagnosticsRouter, noopAuth } from 'relayscope'
import { followMcpSessions } from 'relayscope/follow'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { toNodeHandler } from 'relayscope/node'
import { createRedisFacilities } from 'relayscope/redis'
import { followSocketIo } from 'relayscope/socket.io'
import { followWebSockets, jsonRpc } from 'relayscope/ws'
import { Server } from 'socket.io'
import { WebSocketServer } from 'ws'

const [, , kind] = process.argv
const { REDIS_PORT } = process.env
// A machine that is busy may answer no ping for long.
const bounds = { connections: { heartbeatTimeoutMs: 3_600_000 } }
const { connections, rpc } = REDIS_PORT
  ? createRedisFacilities({ client: new Redis(Number(REDIS_PORT)), deploymentId: 'hosts', nodeId: kind, ...bounds })
  : createMemoryFacilities(bounds)
const router = createDiagnosticsRouter({
  ...memoryComposition(createMemoryFacilities()),
  ...(!REDIS_PORT && memoryComposition({ connections, rpc })),
  auth: noopAuth(),
  prefix: '/ops/diagnostics',
})
const identityOf = (client_id) => ({ user_id: 'ada', client_id, instance_id: 'run-1', client_type: 'console' })

/** Sends the next request once the one before is answered. */
async function askAgain(ask, isOpen) {
  while (isOpen()) {
    await ask().catch(() => {})
    await sleep(200)
  }
}

const HOSTS = {
  'socket.io'(server) {
    const io = new Server(server, { destroyUpgrade: false, pingTimeout: 3_600_000 })
    io.on('connection', (socket) => {
      void askAgain(
        () => socket.emitWithAck('sync'),
        () => socket.connected,
      )
    })
    followSocketIo(io, { connections, calls: rpc, identify: ({ handshake }) => identityOf(handshake.auth.name) })
  },

  'json-rpc'(server) {
    const sockets = new WebSocketServer({ server })
    sockets.on('connection', (socket) => {
      let id = 0
      const sync = () => {
        socket.send(JSON.stringify({ jsonrpc: '2.0', id: ++id, method: 'sync' }))
        return new Promise((resolve) => socket.once('message', resolve))
      }
      void askAgain(sync, () => socket.readyState === 1)
    })
    const identify = (_socket, request) => identityOf(request.url.slice(1))
    followWebSockets(sockets, { connections, calls: rpc, protocol: jsonRpc, identify })
  },

  mcp() {
    const sessions = new Map()
    const identify = (_transport, request) => identityOf(request.headers.get('x-client'))
    const follower = followMcpSessions({ connections, calls: rpc, identify })
    return async (request) => {
      const known = sessions.get(request.headers.get('mcp-session-id'))
      if (known) {
        const response = await known.transport.handleRequest(request)
        // From here the client listens.
        if (request.method === 'GET') void askAgain(known.ask, () => true)
        return response
      }
      const tools = new McpServer({ name: 'tools', version: '1' })
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized(id) {
          sessions.set(id, { transport, ask: () => tools.server.listRoots({}, { timeout: 3_600_000 }) })
        },
      })
      follower.add(transport, request)
      await tools.connect(transport)
      return transport.handleRequest(request)
    }
  },
}

const mount = toNodeHandler(router)
const server = createServer()
const handler = HOSTS[kind](server)
const own = handler && toNodeHandler(handler)
if (kind === 'socket.io') {
  const [engine] = server.listeners('request')
  server.removeAllListeners('request')
  server.on('request', (request, response) => {
    if (request.url.startsWith('/socket.io/')) engine(request, response)
    else mount(request, response)
  })
} else server.on('request', (request, response) => mount(request, response, own && (() => own(request, response))))
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}${router.prefix}`))
