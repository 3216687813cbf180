/** A Socket.IO server of 1,000 clients that send 10,000 messages a second: with the plug against without, and what a socket costs. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createMemoryFacilities } from 'relayscope/memory'
import { followSocketIo } from 'relayscope/socket.io'
import { Server } from 'socket.io'
import { check, report } from '../report.mjs'

const CLIENTS = 1_000
const MESSAGES_PER_SECOND = 10_000
/** Windows of each kind, in turn; the cheapest of each is the one that the rest of the machine has disturbed least. */
const ROUNDS = 10
const WINDOW_MS = 1_500
/** Before the first: what has just begun is being compiled. */
const WARM_UP_MS = 4_000
const GOALS = { cpu: 1.02, bytes: 1_000 }
const ASK = { signal: new AbortController().signal }
const FILE = fileURLToPath(import.meta.url)

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]

/** The clients run in their own process, so that their cost is not counted for the server. */
async function runClients(port) {
  const { io } = await import('socket.io-client')
  const sockets = Array.from({ length: CLIENTS }, () =>
    io(`http://127.0.0.1:${port}`, { transports: ['websocket'], forceNew: true }),
  )
  const everyMs = 10
  let due = 0
  let at = 0
  let last = performance.now()
  setInterval(() => {
    const now = performance.now()
    due += ((now - last) * MESSAGES_PER_SECOND) / 1_000
    last = now
    for (; due >= 1; due--) sockets[at++ % CLIENTS].emit('say', 'hello, room')
  }, everyMs)
}

const gc = async () => {
  const { setFlagsFromString } = await import('node:v8')
  const { runInNewContext } = await import('node:vm')
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc')
}

/** A registry that keeps nothing: what is measured over it is the plug's alone. */
const nowhere = () => {
  let ids = 0
  return {
    connect: async () => ({ connection_id: `${++ids}` }),
    heartbeat: async () => true,
    disconnect: async () => true,
    currentInstance: async () => null,
  }
}

export async function run() {
  const http = createServer()
  // Pongs come in every window, as they do from so many clients.
  const io = new Server(http, { pingInterval: 25_000 })
  let messages = 0
  io.on('connection', (socket) => socket.on('say', () => messages++))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const clients = fork(FILE, ['clients', String(http.address().port)])
  process.on('exit', () => clients.kill('SIGKILL'))
  while (io.engine.clientsCount < CLIENTS) await pause(50)
  await pause(1_000)

  const follow = (connections) => {
    const identify = ({ id }) => ({ user_id: `u-${id}`, client_id: 'c', instance_id: id, client_type: 'web' })
    return followSocketIo(io, { connections, identify })
  }
  /** CPU of the server a message, in µs. */
  async function measure() {
    const [cpu, before] = [process.cpuUsage(), messages]
    await pause(WINDOW_MS)
    const { user, system } = process.cpuUsage(cpu)
    return { perMessage: (user + system) / (messages - before), rate: ((messages - before) * 1_000) / WINDOW_MS }
  }
  const { connections } = createMemoryFacilities()
  await pause(WARM_UP_MS)
  const [without, withPlug] = [[], []]
  for (let round = 0; round < ROUNDS; round++) {
    const bare = await measure()
    const follower = follow(connections)
    await pause(500)
    const followed = await measure()
    const { total } = await connections.inspector.countConnections({ status: 'connected' }, ASK)
    check('the plug has every socket', total, CLIENTS, CLIENTS)
    await follower.close()
    without.push(bare.perMessage)
    withPlug.push(followed.perMessage)
    if (round === ROUNDS - 1) console.log(`${Math.round(followed.rate)} messages/s, ${io.engine.clientsCount} clients`)
  }
  const [bare, followed] = [Math.min(...without), Math.min(...withPlug)]
  console.log(`CPU a message: ${bare.toFixed(1)} µs without, ${followed.toFixed(1)} µs with the plug`)

  clients.kill('SIGSTOP')
  await pause(500)
  const collect = await gc()
  const heap = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const sizes = []
  for (let round = 0; round < 5; round++) {
    const before = heap()
    const follower = follow(nowhere())
    await pause(500)
    sizes.push((heap() - before) / CLIENTS)
    await follower.close()
    await pause(100)
  }
  const load = `Socket.IO, ${CLIENTS} clients, ${MESSAGES_PER_SECOND} messages/s`
  report([
    { what: `${load}: CPU with the plug`, found: followed / bare, goal: GOALS.cpu, unit: '×', better: 'lower' },
    { what: `${load}: heap of the plug a socket`, found: median(sizes), goal: GOALS.bytes, unit: 'B', better: 'lower' },
  ])
  clients.kill('SIGKILL')
  await io.close()
}

if (process.argv[2] === 'clients') await runClients(process.argv[3])
