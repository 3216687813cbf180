/**
 * The deployment of `docs/scaling.md`, a million connections and 10,000 commands per second on 40 nodes and 32 shards, in real
 * time: all of its nodes and shards, with a thirty-second of its connections and load, in one process and one store. What
 * nodes and shards cost by themselves is measured whole, and the load is scaled up. Each node has a client of its own, so
 * that a run of the store carries as few commands as it would there. Build first; needs redis-server. `node --expose-gc bench/deployment.mjs [seconds]`
 */
import { Redis } from 'ioredis'
import { createRedisCommandDispatcher, createRedisConnectionRegistry } from 'relayscope/redis'
import { cpuMs, startRedis } from './records.mjs'
import { check, report } from './report.mjs'

const SHARDS = 32
const NODES = 40
/** The measured part of the load. */
const PART = 32
const CLIENTS = 1_000_000 / PART
const COMMANDS_S = 10_000 / PART
const HEARTBEATS_S = CLIENTS / 30
const RECONNECTS_S = CLIENTS / 100 / 60
const SECONDS = Number(process.argv[2] ?? 15)
const WARM_SECONDS = 3
const TICK_MS = 10
const IN_FLIGHT = 100
const redis = await startRedis()
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const heap = () => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

async function each(count, act) {
  let next = 0
  const lane = async () => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
}

const nodes = Array.from({ length: NODES }, (_, n) => {
  const client = new Redis(redis.url)
  const given = {
    client,
    deploymentId: 'deployment',
    nodeId: `node-${n}`,
    shards: SHARDS,
    onError: null,
    commandTimeoutMs: 60_000,
  }
  const registry = createRedisConnectionRegistry({ ...given, maxConnections: 2 * CLIENTS, heartbeatTimeoutMs: 600_000 })
  const bounds = { maxTracked: CLIENTS, capacity: CLIENTS, deadlineMs: 30_000 }
  return { client, registry, dispatcher: createRedisCommandDispatcher({ ...given, ...bounds }) }
})
const clients = Array.from({ length: CLIENTS }, (_, i) => ({
  user_id: `user-${i}`,
  client_id: `client-${i}`,
  instance_id: 'i',
  node: nodes[i % NODES],
  connection_id: '',
}))

async function connect(client) {
  const { user_id, client_id, instance_id, node } = client
  const input = { user_id, client_id, instance_id, client_type: 'web', actions: ['tabs.list', 'tabs.open'] }
  client.connection_id = (await node.registry.connect(input)).connection_id
}

const underWay = new Set()
let [sent, ended, repeated] = [0, 0, 0]

function attach({ user_id, client_id, instance_id, node }) {
  return node.dispatcher.attach({ user_id, client_id, instance_id }, async ({ command_id }) => {
    const state = 'resulted'
    await node.dispatcher.settle({ user_id, client_id, command_id, state, instance_id, acknowledge: true })
    if (underWay.delete(command_id)) ended++
    else repeated++
  })
}

/** Any node admits, as any of them may be asked. */
async function dispatch() {
  const { user_id, client_id } = clients[(sent * 7_919) % CLIENTS]
  const { dispatcher } = nodes[(sent * 31) % NODES]
  const command_id = `command-${sent++}`
  const payload = { page: 7, filter: 'open', note: 'a payload of ordinary size' }
  underWay.add(command_id)
  await dispatcher.dispatch({ user_id, client_id, command_id, action: 'work', payload })
}

let [beaten, lost, reconnected] = [0, 0, 0]
async function beat() {
  const { node, connection_id } = clients[beaten++ % CLIENTS]
  if (!(await node.registry.heartbeat(connection_id))) lost++
}
/** Half a round away from the heartbeats, which must not come to a connection that ends meanwhile. */
function reconnect() {
  reconnected++
  return connect(clients[(beaten + (CLIENTS >> 1)) % CLIENTS])
}

const failures = []
/** Does `acts`, each so often per second, for some seconds, until all have ended: CPU ms of the store and of all nodes. */
async function load(acts, seconds) {
  const underWay = []
  const due = acts.map(() => 0)
  const [store, from, start] = [await redis.cpuMs(), process.cpuUsage(), performance.now()]
  for (let now = start; now - start < seconds * 1_000; now = performance.now()) {
    for (const [i, [perSecond, act]] of acts.entries())
      for (; due[i] < ((now - start) / 1_000) * perSecond; due[i]++)
        underWay.push(act().catch((error) => failures.push(error.message)))
    await sleep(TICK_MS)
  }
  await Promise.all(underWay)
  while (ended < sent && performance.now() - start < 4_000 * seconds) await sleep(TICK_MS)
  const took = (performance.now() - start) / 1_000
  return { seconds, took, store: (await redis.cpuMs()) - store, nodes: cpuMs(from) }
}

await each(CLIENTS, (i) => connect(clients[i]))
const before = heap()
await each(CLIENTS, (i) => attach(clients[i]))
const waiterBytes = (heap() - before) / CLIENTS
const beats = [HEARTBEATS_S, beat]
const all = [beats, [COMMANDS_S, dispatch], [RECONNECTS_S, reconnect]]
await load(all, WARM_SECONDS)
// The deadlines of the commands before are still pending, for which nodes look as often as under load.
const rest = await load([], SECONDS / 3)
const beating = await load([beats], SECONDS / 3)
const whole = await load(all, SECONDS)
check('no call failed', failures.slice(0, 3), [], sent + beaten + reconnected)
check('every command reaches its client and ends once', { ended, repeated }, { ended: sent, repeated: 0 }, sent)
check('every heartbeat finds its connection', lost, 0, beaten)
const atRest = (key) => rest[key] / rest.took / 1_000
/** Cores of the whole deployment: what it costs without a load, and what the measured part of the load adds. */
const coresOf = (key, of) => atRest(key) + ((of[key] / 1_000 - atRest(key) * of.took) / of.seconds) * PART
const lower = (what, goal, found, unit) => ({ what, goal, found, unit, better: 'lower' })
report([
  lower(`${NODES} nodes and ${SHARDS} shards without a load: CPU of the store`, 0.25, atRest('store'), 'cores'),
  lower('with the heartbeats of a million connections', 5.5, coresOf('store', beating), 'cores'),
  lower('with 10,000 commands/s and reconnections too', 11.5, coresOf('store', whole), 'cores'),
  lower('the same: CPU of each node, its client of the store included', 0.25, coresOf('nodes', whole) / NODES, 'cores'),
  lower('a client that waits, in a node over a store', 1_200, waiterBytes, 'bytes'),
])
for (const { client } of nodes) client.disconnect()
process.exit(0)
