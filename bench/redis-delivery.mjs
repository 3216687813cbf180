/**
 * Commands through the dispatcher against jobs through BullMQ 6: same server, same client library, same number in flight.
 * Measured: admission alone (`dispatch`, `add`); the whole life up to the recorded end (attempt, acknowledgement and result
 * here, in one call or two; active and completed there); the same with the client at another node and with payloads of
 * 16 KiB; the fewest store calls that keep the same evidence; and the latency from `dispatch` to the client. Build first;
 * needs redis-server. `node bench/redis-delivery.mjs [commands]`. Quote the ratios; absolute times are this machine's.
 */
import { spawn } from 'node:child_process'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { createRedisCommandDispatcher } from 'relayscope/redis'
import { limit } from './delivery-limit.mjs'
import { check, report } from './report.mjs'

const COMMANDS = Number(process.argv[2] ?? 20_000)
const CLIENTS = 50
const IN_FLIGHT = 200
const ROUNDS = 5
/** Commands measured at half of the slower one's rate: some seconds of them. */
const LATENCIES = Math.min(COMMANDS, 5_000)
/** BullMQ keeps no acknowledgement, no capacity and no deadline, and has no lists by state, user and scope. */
const GOAL = 1.5
const GOALS = { admitted: 1.3, 'with 16 KiB, admitted, delivered and ended': 0.8 }
const PORT = 20_000 + (process.pid % 10_000)

const server = spawn(
  'redis-server',
  ['--port', String(PORT), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
  { stdio: 'ignore' },
)
process.on('exit', () => server.kill('SIGKILL'))
await new Promise((resolve) => setTimeout(resolve, 500))
const connection = new Redis(PORT, '127.0.0.1', { maxRetriesPerRequest: null })

/** Calls `work` with 0 … COMMANDS - 1, IN_FLIGHT at a time; commands per second. */
async function perSecond(work, done) {
  const start = performance.now()
  let next = 0
  const lane = async () => {
    while (next < COMMANDS) await work(next++)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  await done
  return COMMANDS / ((performance.now() - start) / 1_000)
}

let runs = 0
const user = (n) => `user-${n % 10}`
const clientName = (n) => `client-${n % CLIENTS}`
const client = (n) => ({ user_id: user(n), client_id: clientName(n) })
const PAYLOAD = { page: 7, filter: 'open', note: 'a payload of ordinary size' }
const LARGE_PAYLOAD = { page: 7, note: 'n'.repeat(16_384) }

/**
 * `add` admits command n. `onStart` is called when it reaches its client, `onEnd` when its end is recorded. `isJoined`: the
 * result is also the acknowledgement. `isRemote`: the clients are connected to another node.
 */
async function relayscope({ onStart, onEnd, isJoined, isRemote, payload = PAYLOAD } = {}) {
  const deploymentId = `bench-${++runs}`
  const node = (client) =>
    createRedisCommandDispatcher({ client, deploymentId, capacity: 1_000_000, deadlineMs: 600_000 })
  const entry = node(connection)
  const link = isRemote ? connection.duplicate() : null
  const dispatcher = link ? node(link) : entry
  if (onEnd)
    for (let n = 0; n < CLIENTS; n++) {
      const instance_id = 'i1'
      await dispatcher.attach({ ...client(n), instance_id }, async ({ user_id, client_id, command_id }) => {
        onStart(Number(command_id.slice(1)))
        // Written out: V8 copies what begins with a spread twice before it frees it, which a job of BullMQ does not need.
        if (!isJoined) await dispatcher.acknowledge({ user_id, client_id, command_id, instance_id })
        const state = 'resulted'
        await dispatcher.settle({ user_id, client_id, command_id, state, instance_id, acknowledge: isJoined })
        onEnd()
      })
    }
  return {
    add: (n) =>
      entry.dispatch({ user_id: user(n), client_id: clientName(n), command_id: `c${n}`, action: 'work', payload }),
    async close() {
      await entry.close()
      if (link) {
        await dispatcher.close()
        link.disconnect()
      }
      await connection.flushall()
    },
  }
}

async function bullmq({ onStart, onEnd, payload = PAYLOAD } = {}) {
  const name = `bench-${++runs}`
  const queue = new Queue(name, { connection })
  const work = async ({ id }) => onStart(Number(id.slice(1)))
  const worker = onEnd && new Worker(name, work, { connection, concurrency: CLIENTS })
  worker?.on('completed', onEnd)
  await queue.waitUntilReady()
  await worker?.waitUntilReady()
  return {
    add: (n) => queue.add('work', payload, { jobId: `c${n}` }),
    async close() {
      await worker?.close()
      await queue.close()
      await connection.flushall()
    },
  }
}

const none = () => {}

/** µs of the store a command since its counters were set to zero: in scripts, and in the commands that these call alone. */
async function storeTime() {
  const time = { scripts: 0, commands: 0 }
  const each = /cmdstat_(\S+?):calls=\d+,usec=(\d+)/g
  for (const [, name, us] of (await connection.info('commandstats')).matchAll(each))
    if (/^(eval|fcall)/.test(name)) time.scripts += us / COMMANDS
    else if (!/^(bz|config|info|flushall|xread)/.test(name)) time.commands += us / COMMANDS
  return time
}

/** Commands per second: admitted, or to their end; and the store's time for one. */
async function rateOf(kind, { isDelivered, isJoined, isRemote, payload }) {
  let left = COMMANDS
  let finish
  const done = new Promise((resolve) => {
    finish = resolve
  })
  const onEnd = () => --left === 0 && finish()
  const started = new Uint8Array(COMMANDS)
  const onStart = (n) => void started[n]++
  const under = await kind(isDelivered ? { onStart, onEnd, isJoined, isRemote, payload } : { payload })
  await connection.config('RESETSTAT')
  const rate = await perSecond(under.add, isDelivered ? done : undefined)
  const time = await storeTime()
  await under.close()
  // The one written by hand tells nothing of single commands.
  if (isDelivered && kind !== kept) {
    const [never, twice] = [started.indexOf(0), started.findIndex((times) => times > 1)]
    check(`${kind.name}: every command reaches its client once`, { never, twice }, { never: -1, twice: -1 }, COMMANDS)
    check(`${kind.name}: every command ends once`, left, 0, COMMANDS)
  }
  return { rate, time }
}

/**
 * ms from the call that admits to the client, sorted: one command in flight, or so many per second. Results are not kept:
 * what a thousand of them cost the garbage collector is not theirs.
 */
async function latenciesOf(kind, count, { rate, isRemote }) {
  const sentAt = []
  const took = []
  let arrived = none
  const onStart = (n) => {
    took.push(performance.now() - sentAt[n])
    arrived()
  }
  const under = await kind({ onStart, onEnd: none, isRemote })
  const send = (n) => {
    sentAt[n] = performance.now()
    return under.add(n)
  }
  if (rate === undefined)
    for (let n = 0; n < count; n++) {
      const arrival = new Promise((resolve) => {
        arrived = resolve
      })
      await Promise.all([send(n), arrival])
    }
  else {
    const start = performance.now()
    let [sent, admitted] = [0, 0]
    const sendOne = async () => {
      await send(sent++)
      admitted++
    }
    while (sent < count) {
      while (sent < count && sent / rate <= (performance.now() - start) / 1_000) void sendOne()
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    while (admitted < count || took.length < count) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await under.close()
  check(`${kind.name}: every command whose time is taken reaches its client once`, took.length, count, count)
  return took.sort((a, b) => a - b)
}

const KINDS = { bullmq, relayscope }
const kept = (does) => limit({ connection, prefix: `bench-${++runs}:`, clientOf: client, payload: PAYLOAD }, does)
const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]
/** Commands per second of ordinary ones, acknowledged separately: the rate of the slower one is the measure for latencies. */
const whole = {}
for (const [done, way] of [
  ['admitted', { isDelivered: false }],
  ['admitted, delivered and ended by a result that acknowledges', { isDelivered: true, isJoined: true }],
  ['admitted, delivered, acknowledged and ended', { isDelivered: true, isJoined: false }],
  ['admitted, delivered at another node and ended', { isDelivered: true, isJoined: true, isRemote: true }],
  ['with 16 KiB, admitted, delivered and ended', { isDelivered: true, isJoined: true, payload: LARGE_PAYLOAD }],
]) {
  const isPlain = !(way.isRemote || way.payload)
  const kinds = isPlain ? { ...KINDS, kept } : KINDS
  const rates = {}
  const times = {}
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, kind] of Object.entries(kinds)) {
      const { rate, time } = await rateOf(kind, way)
      if (round === 0) continue
      rates[name] = [...(rates[name] ?? []), rate]
      times[name] = [...(times[name] ?? []), time]
    }
  const rateBy = (name) => median([...rates[name]])
  if (isPlain) for (const name of Object.keys(kinds)) whole[name] = rateBy(name)
  // Of each round by itself: the machine is twice as fast in one second as in the next.
  const against = (name) => median(rates[name].map((rate, round) => rate / rates.bullmq[round]))
  console.log(`\n${COMMANDS} ${done}, median of ${ROUNDS} interleaved rounds`)
  for (const name of Object.keys(kinds))
    console.log(`  ${name.padEnd(10)} ${Math.round(rateBy(name))} per second   ${against(name).toFixed(2)}`)
  report([
    {
      what: `commands ${done}, against BullMQ`,
      goal: GOALS[done] ?? GOAL,
      found: against('relayscope'),
      unit: '×',
      better: 'higher',
    },
  ])
  const spent = {}
  for (const [name, each] of Object.entries(times)) {
    const scripts = median(each.map((time) => time.scripts))
    const commands = median(each.map((time) => time.commands))
    spent[name] = { scripts, commands }
    const own = `${commands.toFixed(1)} of them its commands`
    console.log(`  ${name.padEnd(10)} ${scripts.toFixed(1)} µs of the store, ${own}`)
  }
  if (!isPlain) continue
  const what = `the fewest calls by hand, ${done}`
  report([{ what, goal: null, found: against('kept'), unit: '×', better: 'higher' }])
}

const slower = Math.min(whole.bullmq, whole.relayscope)
for (const [what, count, way, quantile, goal] of [
  ['from dispatch to the client, one in flight, median', 300, {}, 0.5, 0.7],
  ['the same with the client at another node', 300, { isRemote: true }, 0.5, 1],
  ['from dispatch to the client at an equal rate, 99th percentile', LATENCIES, { rate: slower / 2 }, 0.99, 0.5],
]) {
  const found = { bullmq: [], relayscope: [] }
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, kind] of Object.entries(KINDS)) {
      const took = await latenciesOf(kind, count, way)
      if (round > 0) found[name].push(took[Math.floor(took.length * quantile)])
    }
  const [theirs, ours] = [median(found.bullmq), median(found.relayscope)]
  console.log(`\n${what}, median of ${ROUNDS} interleaved rounds`)
  console.log(`  bullmq     ${theirs.toFixed(2)} ms   1.00`)
  console.log(`  relayscope ${ours.toFixed(2)} ms   ${(ours / theirs).toFixed(2)}`)
  report([{ what: `${what}, against BullMQ`, goal, found: ours / theirs, unit: '×', better: 'lower' }])
}
connection.disconnect()
process.exit(0)
