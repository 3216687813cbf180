/**
 * How cost grows: over decades of connections, commands, users, nodes, shards and viewers, each with its exponent (0: the same
 * however many there are; 1: twice as many cost twice), and how many bytes each thing takes in a node and in the store.
 * Build first; needs redis-server. `node --expose-gc bench/scaling.mjs [largest]`: `docs/scaling.md` is written from it.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { Redis } from 'ioredis'
import { createCooperativeSiteEventBus } from 'relayscope/cooperative-site'
import { createCommandDispatcher, createConnectionRegistry, createContextRegistry } from 'relayscope/memory'
import { createRedisCommandDispatcher, createRedisFacilities, redisComposition } from 'relayscope/redis'
import { check, report } from './report.mjs'

const LARGEST = Number(process.argv[2] ?? 100_000)
const ASK = { signal: new AbortController().signal }
const SAMPLE = 2_000
const IN_FLIGHT = 100
const IDLE_MS = 3_000
/** Three decades up to `most`. */
const decades = (most) => [1_000, 100, 10, 1].map((by) => most / by)
/** `measure` of each size in turn; of the first one twice, because the first run of all is that of a cold process. */
async function measured(sizes, measure) {
  await measure(sizes[0], false)
  const results = []
  for (const size of sizes) results.push(await measure(size, size === sizes.at(-1)))
  return results
}

const probe = createServer().listen(0, '127.0.0.1')
await once(probe, 'listening')
const { port } = probe.address()
probe.close()
const server = spawn('redis-server', ['--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'], {
  stdio: 'ignore',
})
process.on('exit', () => server.kill('SIGKILL'))
const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50 }).on('error', () => {})
await new Promise((resolve) => client.once('ready', resolve))

const numberIn = (text, name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)[1])
const storeCpu = async () => {
  const text = await client.info('cpu')
  return (numberIn(text, 'used_cpu_user') + numberIn(text, 'used_cpu_sys')) * 1e6
}
const storeBytes = async () => numberIn(await client.info('memory'), 'used_memory')
/** The heap once what was dropped before is collected: some of it only a turn of the loop after the first collection. */
const heap = async () => {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

/** CPU µs of one call in the node and in the store. */
async function costOf(calls, call) {
  const store = await storeCpu()
  const from = process.cpuUsage()
  let next = 0
  const lane = async () => {
    while (next < calls) await call(next++)
  }
  await Promise.all(Array.from({ length: Math.min(IN_FLIGHT, calls) }, lane))
  const { user, system } = process.cpuUsage(from)
  return { node: (user + system) / calls, store: ((await storeCpu()) - store) / calls }
}

/** The slope of a line through the logarithms. */
function exponentOf(points) {
  const logs = points.map(([x, y]) => [Math.log(x), Math.log(Math.max(y, 1e-9))])
  const mean = (i) => logs.reduce((sum, point) => sum + point[i], 0) / logs.length
  const [x, y] = [mean(0), mean(1)]
  const over = logs.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  return over / logs.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
}

const column = (rows, i) => rows.map((row) => row[i])

const findings = []
/** @param goal The exponent: 0 costs the same at every size, 1 grows with it. */
function tell(what, sizes, costs, unit, goal = 0.15) {
  const exponent = exponentOf(sizes.map((size, i) => [size, costs[i]]))
  const each = sizes.map((size, i) => `${size}: ${costs[i].toFixed(1)}`).join('   ')
  console.log(`${what} (${unit})\n  ${each}   exponent ${exponent.toFixed(2)}`)
  findings.push({ what: `exponent of ${what}`, goal, found: exponent, unit: '', better: 'lower' })
}
function tellBytes(what, bytes, goal) {
  console.log(`${what}: ${Math.round(bytes)} bytes`)
  findings.push({ what, goal, found: bytes, unit: 'bytes', better: 'lower' })
}

let deployments = 0
const deployment = () => `scale-${++deployments}`
const connecting = (i, users) => ({
  user_id: `user-${i % users}`,
  client_id: `client-${i}`,
  instance_id: 'instance',
  client_type: 'web',
  actions: ['tabs.list', 'tabs.open'],
})

/** Memory of one process: connections. */
async function ofMemory() {
  const sizes = decades(LARGEST)
  const costs = await measured(sizes, async (size, isLast) => {
    const before = await heap()
    const registry = createConnectionRegistry({ maxConnections: 2 * size + SAMPLE })
    for (let i = 0; i < size; i++) await registry.connect(connecting(i, Math.max(100, size / 4)))
    if (isLast) tellBytes('a connection in a node', ((await heap()) - before) / size, 1_100)
    const more = (i) => registry.connect(connecting(size + i, Math.max(100, size / 4)))
    const registering = (await costOf(SAMPLE, more)).node
    check(
      'the registry has every connection',
      (await registry.inspector.countConnections({}, ASK)).total,
      size + SAMPLE,
      size,
    )
    const page = { limit: 50, cursor: String(Math.floor(size / 2)) }
    return [registering, (await costOf(SAMPLE, async () => registry.inspector.listConnections({}, page, ASK))).node]
  })
  tell('registering in memory, by connections', sizes, column(costs, 0), 'node µs')
  tell('a page of 50 in memory, by connections', sizes, column(costs, 1), 'node µs')
}

const context = (i) => ({ context_id: `ctx-${i}`, user_id: `user-${i % 100}`, client_id: 'c', client_type: 'web' })

/** Memory of one process: contexts, and commands that wait and have ended. */
async function ofOtherRecords() {
  const contexts = createContextRegistry()
  const most = { maxTracked: LARGEST, maxTrackedPerUser: LARGEST, capacity: LARGEST, maxRetained: LARGEST }
  const dispatcher = createCommandDispatcher({ deadlineMs: 3_600_000, ...most })
  const count = LARGEST / 10
  const bytesOf = async (what, act, goal) => {
    const before = await heap()
    for (let i = 0; i < count; i++) await act(i)
    const bytes = ((await heap()) - before) / count
    if (what) tellBytes(what, bytes, goal)
  }
  // What came before is let go with the first of these, which says nothing then.
  const earlier = createContextRegistry()
  await bytesOf(null, (i) => earlier.report({ ...context(i), status: 'idle' }))
  await bytesOf('a context in a node', (i) => contexts.report({ ...context(i), status: 'idle' }), 1_000)
  await bytesOf('a command that waits, in a node', (i) => dispatcher.dispatch(command(i, 100)), 1_400)
  const settle = (i) => dispatcher.settle({ ...idsOf(command(i, 100)), state: 'resulted' })
  await bytesOf('a command that has ended takes so much more, in a node', settle, 0)
  const { by_state } = await dispatcher.inspector.summary(ASK)
  check('every command has ended', by_state.resulted, count, count)
  await dispatcher.close()
}

/** A store: connections, pages of them, and contexts. */
async function ofTables() {
  const sizes = decades(LARGEST / 10)
  const costs = await measured(sizes, async (size, isLast) => {
    const options = { client, deploymentId: deployment() }
    const facilities = createRedisFacilities({ ...options, connections: { maxConnections: 10 * LARGEST } })
    const { registry } = redisComposition(options).inspectors
    const bytes = await storeBytes()
    await costOf(size, (i) => facilities.connections.connect(connecting(i, Math.max(100, size / 4))))
    if (isLast) tellBytes('a connection in the store', ((await storeBytes()) - bytes) / size, 2_100)
    const more = (i) => facilities.connections.connect(connecting(size + i, Math.max(100, size / 4)))
    const registering = (await costOf(SAMPLE, more)).store
    const ids = []
    for (let i = 0; i < SAMPLE; i++)
      ids.push((await facilities.connections.connect(connecting(2 * size + SAMPLE + i, 100))).connection_id)
    const beating = (await costOf(SAMPLE, (i) => facilities.connections.heartbeat(ids[i]))).store
    const page = { limit: 50, cursor: `0.${Math.floor(size / 2)}` }
    const paging = (await costOf(SAMPLE, () => registry.listConnections({}, page, ASK))).store
    if (isLast) {
      const before = await storeBytes()
      await costOf(SAMPLE, (i) => facilities.contexts.report({ ...context(i), status: 'idle' }))
      tellBytes('a context in the store', ((await storeBytes()) - before) / SAMPLE, 850)
    }
    await facilities.close()
    await client.flushall()
    return [registering, paging, beating]
  })
  tell('registering over a store, by connections', sizes, column(costs, 0), 'store µs')
  tell('a page of 50 over a store, by connections', sizes, column(costs, 1), 'store µs')
  tell('a heartbeat over a store, by connections', sizes, column(costs, 2), 'store µs')
}

function dispatcherOf(deploymentId, more = {}) {
  const bounds = { capacity: 1e9, maxTracked: 1e9, maxTrackedPerUser: 1e9, maxRetained: 1e9 }
  return createRedisCommandDispatcher({ client, deploymentId, deadlineMs: 3_600_000, ...bounds, ...more })
}
const command = (i, users) => ({
  user_id: `user-${i % users}`,
  client_id: 'client',
  command_id: `command-${i}`,
  action: 'work',
  payload: { page: 7, filter: 'open', note: 'a payload of ordinary size' },
})

/** A store: commands that wait, and users that they are for. */
async function ofCommands() {
  const sizes = decades(LARGEST)
  const costs = await measured(sizes, async (size, isLast) => {
    const dispatcher = dispatcherOf(deployment())
    const bytes = await storeBytes()
    await costOf(size, (i) => dispatcher.dispatch(command(i, 100)))
    if (isLast) tellBytes('a command that waits, in the store', ((await storeBytes()) - bytes) / size, 460)
    const cost = (await costOf(SAMPLE, (i) => dispatcher.dispatch(command(size + i, 100)))).store
    if (isLast) {
      const before = await storeBytes()
      await costOf(size, (i) => dispatcher.settle({ ...idsOf(command(i, 100)), state: 'resulted' }))
      tellBytes('a command that has ended takes so much more', ((await storeBytes()) - before) / size, 0)
    }
    await dispatcher.close()
    await client.flushall()
    return cost
  })
  tell('an admission, by commands that wait', sizes, costs, 'store µs')
  const users = [1, 10, 100, 1_000]
  const byUsers = await measured(users, async (count) => {
    const dispatcher = dispatcherOf(deployment())
    const { store } = await costOf(4 * SAMPLE, (i) => dispatcher.dispatch(command(i, count)))
    await dispatcher.close()
    await client.flushall()
    return store
  })
  tell('an admission, by users', users, byUsers, 'store µs')
}
const idsOf = ({ user_id, client_id, command_id }) => ({ user_id, client_id, command_id })

/** What a deployment costs that does nothing: its nodes look after each shard. */
async function ofIdle() {
  async function idle(nodes, shards) {
    const deploymentId = deployment()
    const dispatchers = []
    for (let n = 0; n < nodes; n++) dispatchers.push(dispatcherOf(deploymentId, { nodeId: `node-${n}`, shards }))
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
    const from = await storeCpu()
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
    const cost = ((await storeCpu()) - from) / (IDLE_MS / 1_000)
    for (const dispatcher of dispatchers) await dispatcher.close()
    await client.flushall()
    return cost
  }
  const nodes = [1, 10, 100]
  tell(
    'a second of a store at rest, by nodes (one shard)',
    nodes,
    await measured(nodes, (n) => idle(n, 1)),
    'store µs',
    1,
  )
  const shards = [1, 8, 64]
  tell('the same, by shards (one node)', shards, await measured(shards, (n) => idle(1, n)), 'store µs', 1)
}

/** Viewers of one site in one node: what an event costs for each of them. */
async function ofViewers() {
  const sizes = [10, 100, 1_000, 10_000]
  const costs = await measured(sizes, async (size, isLast) => {
    const bus = createCooperativeSiteEventBus()
    let read = 0
    const before = await heap()
    const readers = Array.from({ length: size }, () => bus.subscribe('t'))
    const ended = readers.map(async (reader) => {
      for await (const _ of reader) read++
    })
    if (isLast) tellBytes('a viewer that waits, in the bus of a node', ((await heap()) - before) / size, 850)
    const events = Math.max(20, 100_000 / size)
    const from = process.cpuUsage()
    for (let n = 1; n <= events; n++) {
      await bus.publish('t', {
        event_id: `e${n}`,
        name: 'changed',
        site_id: 's',
        published_at: '2026-01-01T00:00:00.000Z',
        data: n,
      })
      while (read < n * size) await new Promise((resolve) => setImmediate(resolve))
    }
    const { user, system } = process.cpuUsage(from)
    for (const reader of readers) reader.close()
    await Promise.all(ended)
    check('every viewer receives every event once', read, events * size, events * size)
    await bus.close()
    return (user + system) / (events * size)
  })
  tell('an event for one viewer, by viewers', sizes, costs, 'node µs')
}

for (const part of [ofMemory, ofOtherRecords, ofTables, ofCommands, ofIdle, ofViewers]) await part()
report(findings)
client.disconnect()
process.exit(0)
