/**
 * What it costs to be there: 10,000 connected clients of ws with a follower against without, and nodes over Redis that have
 * nothing to do. Both hosts ping each of their clients once a round, as the README of ws does, and are processes of their own;
 * so are the clients.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createMemoryFacilities } from 'relayscope/memory'
import { createRedisFacilities } from 'relayscope/redis'
import { followWebSockets } from 'relayscope/ws'
import { WebSocket, WebSocketServer } from 'ws'
import { startRedis } from '../records.mjs'
import { check, report } from '../report.mjs'

const CLIENTS = 9_000
const ROUNDS = 15
const NODES = 10
const AT_REST_MS = 20_000
const STORED_CLIENTS = 1_000
const HEARTBEAT_MS = 2_000
/** Seconds between two heartbeats of a client, by default. */
const DEFAULT_HEARTBEAT_S = 30
const GOALS = { cpu: 1.03, bytes: 1_500, perClient: 0.25, idle: 5 }
const FILE = fileURLToPath(import.meta.url)

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
let named = 0
const identify = () => ({
  user_id: `user-${named % 100}`,
  client_id: `client-${named++}`,
  instance_id: 'i',
  client_type: 'web',
})

async function connectClients(port, count) {
  for (let i = 0; i < count; i += 100)
    await Promise.all(
      Array.from({ length: 100 }, () =>
        once(new WebSocket(`ws://127.0.0.1:${port}`, { perMessageDeflate: false }), 'open'),
      ),
    )
}

function heap() {
  gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** A host that answers `round` with the CPU of one ping and pong of each client, and `end` with the bytes of each. */
async function host(isFollowed) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  if (isFollowed) {
    const options = { maxConnections: 20_000, maxConnectionsPerUser: 20_000 }
    const { connections } = createMemoryFacilities({ connections: options })
    followWebSockets(server, { connections, identify, ping: false })
  }
  let heard = 0
  server.on('connection', (socket) => {
    socket.isAlive = true
    socket.on('error', console.error)
    socket.on('pong', function () {
      this.isAlive = true
      heard++
    })
  })
  const empty = heap()
  process.on('message', async (what) => {
    if (what === 'end') return process.send((heap() - empty) / CLIENTS)
    const before = process.cpuUsage()
    heard = 0
    for (const socket of server.clients) {
      if (!socket.isAlive) socket.terminate()
      socket.isAlive = false
      socket.ping()
    }
    while (heard < server.clients.size) await pause(5)
    const { user, system } = process.cpuUsage(before)
    process.send({ cpu: user + system, clients: server.clients.size })
  })
  process.send(server.address().port)
}

const roles = {
  bare: () => host(false),
  followed: () => host(true),
  async clients(port) {
    await connectClients(port, CLIENTS)
    process.send('connected')
  },
}

async function startRole(...args) {
  const child = fork(FILE, args.map(String), { execArgv: ['--expose-gc'] })
  const [said] = await once(child, 'message')
  return { child, said }
}

async function ask(child, what) {
  child.send(what)
  return (await once(child, 'message'))[0]
}

async function followed() {
  const hosts = await Promise.all([startRole('bare'), startRole('followed')])
  const clients = []
  for (const { said } of hosts) clients.push(await startRole('clients', said))
  const ratios = []
  for (let round = -2; round < ROUNDS; round++) {
    const costs = []
    for (const { child } of round % 2 ? hosts : hosts.toReversed()) costs.push(await ask(child, 'round'))
    for (const { clients: alive } of costs) check('every client answers', alive, CLIENTS, CLIENTS)
    const [bare, own] = round % 2 ? costs : costs.toReversed()
    if (round >= 0) ratios.push(own.cpu / bare.cpu)
  }
  const [bareBytes, ownBytes] = [await ask(hosts[0].child, 'end'), await ask(hosts[1].child, 'end')]
  for (const { child } of [...clients, ...hosts]) child.kill()
  return { cpu: median(ratios), bytes: ownBytes - bareBytes }
}

/** Counts what `client` is asked from now on. */
function counted(client) {
  const counter = { commands: 0 }
  const send = client.sendCommand
  client.sendCommand = function (...given) {
    counter.commands++
    return send.apply(this, given)
  }
  return counter
}

async function overRedis() {
  const redis = await startRedis()
  const counter = counted(redis.client)
  const at = { client: redis.client, deploymentId: 'bench' }
  const nodes = Array.from({ length: NODES }, (_, i) => createRedisFacilities({ ...at, nodeId: `node-${i}` }))
  await pause(5_000)
  const before = counter.commands
  await pause(AT_REST_MS)
  const idle = (counter.commands - before) / NODES / (AT_REST_MS / 1_000)

  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const [{ connections }] = nodes
  const follower = followWebSockets(server, { connections, identify, heartbeatMs: HEARTBEAT_MS })
  await connectClients(server.address().port, STORED_CLIENTS)
  await pause(2 * HEARTBEAT_MS)
  const since = { at: performance.now(), commands: counter.commands }
  await pause(5 * HEARTBEAT_MS)
  const seconds = (performance.now() - since.at) / 1_000
  const beats = (counter.commands - since.commands) / seconds - idle * NODES
  for (const socket of server.clients) socket.terminate()
  await follower.close()
  await Promise.all(nodes.map((node) => node.close()))
  await redis.close()
  return { idle, perBeat: (beats * HEARTBEAT_MS) / 1_000 / STORED_CLIENTS }
}

export async function run() {
  const { cpu, bytes } = await followed()
  const { idle, perBeat } = await overRedis()
  const row = (what, found, goal, unit) => ({ what, found, goal, unit, better: 'lower' })
  report([
    row(
      `${CLIENTS} clients of ws with followWebSockets: CPU of a ping and its pong, against without`,
      cpu,
      GOALS.cpu,
      '×',
    ),
    row('the same: memory of a client', bytes, GOALS.bytes, 'B'),
    row(
      'the same over Redis: commands per client and second',
      perBeat / DEFAULT_HEARTBEAT_S,
      GOALS.perClient,
      'commands',
    ),
    row(`an idle node of ${NODES} over Redis: commands per second`, idle, GOALS.idle, 'commands'),
  ])
}

if (process.argv[1] === FILE) await roles[process.argv[2]](Number(process.argv[3]))
