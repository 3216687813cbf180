/** Observed calls: CPU of a message with and without, in one process and by turns; memory; and commands at the store. */
import { EventEmitter, once } from 'node:events'
import { createServer, get } from 'node:http'
import { Client } from '@modelcontextprotocol/client'
import { InMemoryTransport, McpServer } from '@modelcontextprotocol/server'
import { followEventStream, followMcp } from 'relayscope/follow'
import { createMemoryFacilities } from 'relayscope/memory'
import { createRedisRpcCorrelator } from 'relayscope/redis'
import { followSocketIo } from 'relayscope/socket.io'
import { followWebSockets, jsonRpc } from 'relayscope/ws'
import { Server } from 'socket.io'
import { io as connect } from 'socket.io-client'
import { WebSocket, WebSocketServer } from 'ws'
import { startRedis } from '../records.mjs'
import { check, report } from '../report.mjs'

const ROUNDS = 15
const AT_ONCE = 50
const GOALS = {
  acknowledged: 1.15,
  plain: 1.03,
  jsonRpc: 1.15,
  mcp: 1.15,
  event: 1.03,
  bytes: 250,
  flat: 1_000_000,
  commands: 100,
}
const ASK = { signal: new AbortController().signal }
const OPEN = 10_000
const OPEN_PER_SOCKET = 200
const MESSAGES = 1_000_000
const identify = () => ({ user_id: 'ada', client_id: 'laptop', instance_id: 'run-1', client_type: 'web' })
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]
/** A follower of connections alone, or of calls too. */
const facilitiesOf = (hasCalls) => {
  const { connections, rpc } = createMemoryFacilities()
  return { connections, ...(hasCalls && { calls: rpc }), identify }
}

async function socketIo(hasCalls) {
  const http = createServer()
  const io = new Server(http)
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  followSocketIo(io, facilitiesOf(hasCalls))
  const met = once(io, 'connection')
  const client = connect(`http://127.0.0.1:${http.address().port}`, { forceNew: true, transports: ['websocket'] })
  let got = 0
  client.on('sync', (_at, done) => done('ok'))
  client.on('plain', () => got++)
  const [socket] = await met
  await pause(100)
  return {
    acknowledged: (at) => socket.emitWithAck('sync', at),
    async plain(at) {
      socket.emit('plain', at)
      const wanted = got + AT_ONCE
      if (at % AT_ONCE === 0) while (got < wanted) await pause(0)
    },
  }
}

async function overWs(hasCalls) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  followWebSockets(server, { ...facilitiesOf(hasCalls), ...(hasCalls && { protocol: jsonRpc }) })
  const met = once(server, 'connection')
  const client = new WebSocket(`ws://127.0.0.1:${server.address().port}`)
  const [socket] = await met
  const waiting = new Map()
  client.on('message', (data) => {
    const { id } = JSON.parse(String(data))
    client.send(JSON.stringify({ jsonrpc: '2.0', id, result: 'ok' }))
  })
  socket.on('message', (data) => {
    const { id, result } = JSON.parse(String(data))
    waiting.get(id)(result)
    waiting.delete(id)
  })
  let last = 0
  return (at) => {
    const id = ++last
    const answer = new Promise((resolve) => waiting.set(id, resolve))
    socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'sync', params: { at } }))
    return answer
  }
}

async function overMcp(isFollowed) {
  const server = new McpServer({ name: 'bench', version: '1' })
  server.registerTool('now', {}, () => ({ content: [{ type: 'text', text: 'noon' }] }))
  const [here, there] = InMemoryTransport.createLinkedPair()
  if (isFollowed) followMcp(here, facilitiesOf(true))
  await server.connect(here)
  const client = new Client({ name: 'bench', version: '1' }, { versionNegotiation: { mode: 'legacy' } })
  await client.connect(there)
  return () => client.callTool({ name: 'now' })
}

async function eventStream(isFollowed) {
  const http = createServer()
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address()
  get({ port, host: '127.0.0.1' }, (answer) => answer.resume())
  const [, response] = await once(http, 'request')
  if (isFollowed) followEventStream(response, facilitiesOf(false))
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  return (at) => new Promise((resolve) => response.write(`data: ${at}\n\n`, resolve))
}

/** CPU of one message, in µs. */
async function cpuOf(send, messages) {
  const before = process.cpuUsage()
  for (let i = 0; i < messages; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, (_, j) => send(i + j)))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / messages
}

/** The median ratio of the CPU with and without, by turns. */
async function ratioOf(what, without, withCalls, messages) {
  const ratios = []
  for (const send of [without, withCalls]) await cpuOf(send, messages)
  for (let round = 0; round < ROUNDS; round++) {
    const bare = await cpuOf(without, messages)
    ratios.push((await cpuOf(withCalls, messages)) / bare)
  }
  const found = median(ratios)
  console.log(`${what}: ${found.toFixed(2)} (${ratios[0].toFixed(2)} to ${ratios.at(-1).toFixed(2)})`)
  return found
}

/** A server of sockets without a wire. */
const quietServer = (count) => ({
  clients: Array.from({ length: count }, () => Object.assign(new EventEmitter(), { ping() {}, send() {} })),
  on() {},
  off() {},
})

const request = (id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'sync' })
const reply = (id) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: null }))

async function gc() {
  const { setFlagsFromString } = await import('node:v8')
  const { runInNewContext } = await import('node:vm')
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}

/** Sends `count` requests to each socket, and their replies after that. */
async function exchange(sockets, count) {
  for (let id = 0; id < count; id++) {
    for (const socket of sockets) socket.send(request(id))
    for (const socket of sockets) socket.emit('message', reply(id), false)
    if (id % 100 === 99) await pause(0)
  }
}

/** Bytes of an open call, before and after a million messages, and by how much these have grown the heap. */
async function memory() {
  const collect = await gc()
  const heap = async () => {
    await pause(10)
    collect()
    return process.memoryUsage().heapUsed
  }
  const server = quietServer(OPEN / OPEN_PER_SOCKET)
  const follower = followWebSockets(server, { ...facilitiesOf(true), protocol: jsonRpc })
  async function bytesOfOpen() {
    const before = await heap()
    for (let id = 0; id < OPEN_PER_SOCKET; id++) for (const socket of server.clients) socket.send(request(id))
    const bytes = ((await heap()) - before) / OPEN
    for (let id = 0; id < OPEN_PER_SOCKET; id++)
      for (const socket of server.clients) socket.emit('message', reply(id), false)
    await pause(2_000)
    return bytes
  }
  await exchange(server.clients, 500)
  const bytes = await bytesOfOpen()
  const first = await heap()
  await exchange(server.clients, MESSAGES / 2 / server.clients.length)
  await pause(2_000)
  const grown = (await heap()) - first
  const later = await bytesOfOpen()
  await follower.close()
  return { bytes, later, grown: Math.max(0, grown) }
}

/** Commands of the store for 10,000 messages that are answered at once. */
async function storeCommands() {
  const redis = await startRedis()
  const calls = createRedisRpcCorrelator({ client: redis.client, deploymentId: 'bench' })
  const { connections } = createMemoryFacilities()
  const server = quietServer(50)
  const follower = followWebSockets(server, { connections, calls, protocol: jsonRpc, identify })
  await exchange(server.clients, 10)
  await pause(6_000)
  const before = await redis.commands()
  await exchange(server.clients, 100)
  await pause(6_000)
  const commands = (await redis.commands()) - before
  const { observed } = await calls.inspector.summary(ASK)
  check('all calls are counted', observed.actions[0].succeeded, 5_500, 5_500)
  await follower.close()
  await calls.close()
  await redis.close()
  return commands
}

export async function run() {
  const commands = await storeCommands()
  const { bytes, later, grown } = await memory()
  const [bare, withCalls] = [await socketIo(false), await socketIo(true)]
  const acknowledged = await ratioOf('acknowledged emit', bare.acknowledged, withCalls.acknowledged, 5_000)
  const plain = await ratioOf('plain emit', bare.plain, withCalls.plain, 10_000)
  const ofJsonRpc = await ratioOf('JSON-RPC call', await overWs(false), await overWs(true), 5_000)
  const mcp = await ratioOf('MCP tool call', await overMcp(false), await overMcp(true), 2_000)
  const event = await ratioOf('event of a stream', await eventStream(false), await eventStream(true), 10_000)
  const row = (what, found, goal, unit) => ({ what: `observed calls: ${what}`, found, goal, unit, better: 'lower' })
  report([
    row('CPU of an acknowledged emit of Socket.IO', acknowledged, GOALS.acknowledged, '×'),
    row('CPU of a plain emit of Socket.IO', plain, GOALS.plain, '×'),
    row('CPU of a JSON-RPC call over ws', ofJsonRpc, GOALS.jsonRpc, '×'),
    row('CPU of a tool call of MCP', mcp, GOALS.mcp, '×'),
    row('CPU of an event of a stream', event, GOALS.event, '×'),
    row('heap of an open call', bytes, GOALS.bytes, 'B'),
    row('heap of an open call after a million messages', later, GOALS.bytes, 'B'),
    row('growth of the heap over a million messages', grown, GOALS.flat, 'B'),
    row('commands of the store for 10,000 messages', commands, GOALS.commands, 'commands'),
  ])
}
