/**
 * What a command and a call cost from their beginning to their end: with a subscriber of every diagnostics channel against
 * without, with a trace against without, and this build against another one. Both of a pair take turns in one process. Build
 * first; run with `node bench/write-path.mjs [--against <dist of another checkout>] [--redis]`. With `--redis` the facilities
 * are over a Redis that the bench starts, and the CPU of the store is added.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { cpuMs, startRedis } from './records.mjs'
import { check, report } from './report.mjs'

const { values } = parseArgs({
  options: { against: { type: 'string' }, redis: { type: 'boolean', default: false } },
})
const PLACE = values.redis ? 'Redis' : 'memory'
/** What this build may cost more than another one. */
const GOAL = 1.05
const ROUNDS = values.redis ? 30 : 50
const TIMES = values.redis ? 200 : 1_000
const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const CHANNELS = ['dispatch', 'deliver', 'acknowledge', 'settle', 'call'].map(
  (what) => `tracing:relayscope:${what}:asyncEnd`,
)
const CLIENTS = 50

const redis = values.redis ? await startRedis() : undefined
let deployments = 0

/** The facilities of a build, with clients that acknowledge and end each command. */
async function open(dist) {
  const load = (path) =>
    import(dist === undefined ? `relayscope/${path}` : pathToFileURL(resolve(dist, path, 'index.js')).href)
  // The clients send no heartbeats.
  const options = { connections: { heartbeatTimeoutMs: 86_400_000 } }
  const at = redis && { client: redis.client, deploymentId: `bench-${++deployments}` }
  const facilities = at
    ? (await load('redis')).createRedisFacilities({ ...at, ...options })
    : (await load('memory')).createMemoryFacilities(options)
  const { connections, dispatcher, rpc } = facilities
  const client = (n) => ({ user_id: `user-${n % 10}`, client_id: `client-${n % CLIENTS}` })
  const ended = new Map()
  for (let n = 0; n < CLIENTS; n++) {
    const instance = { ...client(n), instance_id: 'i' }
    await connections.connect({ ...instance, client_type: 'web' })
    await dispatcher.attach(instance, async ({ user_id, client_id, command_id }) => {
      const key = { user_id, client_id, command_id }
      await dispatcher.acknowledge({ ...key, instance_id: 'i' })
      ended.get(command_id)(await dispatcher.settle({ ...key, state: 'resulted' }))
      ended.delete(command_id)
    })
  }
  let commands = 0
  async function command() {
    const command_id = `c-${++commands}`
    const end = new Promise((resolve) => void ended.set(command_id, resolve))
    await dispatcher.dispatch({ ...client(commands), command_id, action: 'work', payload: { page: 7 } })
    if (!(await end)) throw new Error(`the end of ${command_id} did not count`)
  }
  async function call(trace) {
    const { correlation_id, result } = await rpc.open({
      ...client(0),
      action: 'work',
      timeout_ms: 60_000,
      ...(trace && { trace }),
    })
    await rpc.settle(correlation_id, { ok: true, result: null })
    await result
  }
  return { command, call, close: () => facilities.close() }
}

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]

/** CPU ms that `work` takes `TIMES` times, of this process and of the store. */
async function costOf(work) {
  const stored = (await redis?.cpuMs()) ?? 0
  const from = process.cpuUsage()
  for (let i = 0; i < TIMES; i++) await work()
  return cpuMs(from) + ((await redis?.cpuMs()) ?? 0) - stored
}

/** How much more `changed` costs than `plain`: the median over rounds, in which they take turns. */
async function compare(what, goal, changed, plain, around = (run) => run()) {
  const ratios = []
  for (let round = 0; round < ROUNDS; round++) {
    const costs = new Map()
    for (const work of round % 2 ? [changed, plain] : [plain, changed])
      costs.set(work, work === changed ? await around(() => costOf(changed)) : await costOf(plain))
    if (round >= ROUNDS / 5) ratios.push(costs.get(changed) / costs.get(plain))
  }
  report([{ what: `${what}, in ${PLACE}`, goal, found: median(ratios), unit: '×', better: 'lower' }])
}

if (values.against !== undefined) {
  const [own, other] = [await open(), await open(values.against)]
  await compare('a command, against the other build', GOAL, own.command, other.command)
  await compare('a call, against the other build', GOAL, own.call, other.call)
  await own.close()
  await other.close()
}

const { command, call, close } = await open()
await compare('a call with a trace, against one without', 1.2, () => call(TRACE), call)

// Last, because a channel that had a subscriber is slower than one that never had.
let received = 0
const receive = () => void received++
async function subscribed(run) {
  for (const name of CHANNELS) subscribe(name, receive)
  const result = await run()
  for (const name of CHANNELS) unsubscribe(name, receive)
  return result
}
await subscribed(async () => {
  await command()
  await call()
})
check('a subscriber receives every step of a command and a call', received, 5, 5)
const again = () => command()
await compare('a command with subscribers, against one without', 1.5, again, command, subscribed)
await close()
await redis?.close()
process.exit(0)
