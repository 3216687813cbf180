/** A WebSocket server with calls in both directions, and nothing else: its own messages are observed, no commands are fed. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { followWebSockets, jsonRpc } from 'relayscope/ws'
import { WebSocket, WebSocketServer } from 'ws'
import { every } from './every.mjs'

/** How long each client takes for an answer, in ms; `null` for one that never answers `sync`. */
const CLIENTS = [
  { user_id: 'ada', client_id: 'laptop', takes: null },
  { user_id: 'ada', client_id: 'phone', takes: 40 },
  { user_id: 'grace', client_id: 'desk', takes: 15 },
  { user_id: 'linus', client_id: 'desk', takes: 2_500 },
]
const ACTIONS = ['ping', 'list_files', 'sync']

/** One client: it answers calls of the server, and calls the server itself. */
function connectClient(port, { user_id, client_id, takes }, signal) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/${user_id}/${client_id}/${crypto.randomUUID()}`)
  socket.on('error', () => {})
  socket.on('message', (data) => {
    const { id, method } = JSON.parse(data)
    if (method === undefined || (takes === null && method === 'sync')) return
    const reply = method === 'list_files' && takes === 15 ? { error: { code: 1, message: 'no' } } : { result: 'done' }
    setTimeout(() => socket.send(JSON.stringify({ jsonrpc: '2.0', id, ...reply }), () => {}), takes ?? 30).unref()
  })
  let id = 0
  every(3_000, signal, () => socket.send(JSON.stringify({ jsonrpc: '2.0', id: id++, method: 'save' }), () => {}))
  return socket
}

export async function open({ signal }) {
  const facilities = createMemoryFacilities()
  const { connections, rpc } = facilities
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  const follower = followWebSockets(sockets, {
    connections,
    calls: rpc,
    protocol: jsonRpc,
    identify(_socket, request) {
      const [, user_id, client_id, instance_id] = request.url.split('/')
      return { user_id, client_id, instance_id, client_type: 'web' }
    },
  })
  let id = 0
  sockets.on('connection', (socket) => {
    socket.on('error', () => {})
    socket.on('message', (data) => {
      const message = JSON.parse(data)
      if (message.method) socket.send(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: 'saved' }))
    })
    every(1_000, signal, () =>
      socket.send(JSON.stringify({ jsonrpc: '2.0', id: `server-${id++}`, method: ACTIONS[id % ACTIONS.length] })),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address()
  const clients = CLIENTS.map((client) => connectClient(port, client, signal))
  // The phone loses its connection from time to time, with what it was called for.
  every(20_000, signal, () => {
    const [phone] = clients.splice(1, 1, connectClient(port, { ...CLIENTS[1], takes: 4_000 }, signal))
    phone.terminate()
  })
  return {
    about: 'a WebSocket server whose calls are observed; the laptop of ada answers no sync',
    composition: memoryComposition({ connections, rpc }),
    async close() {
      for (const socket of [...clients, ...sockets.clients]) socket.terminate()
      sockets.close()
      server.close()
      await follower.close()
      await facilities.close()
    },
  }
}
