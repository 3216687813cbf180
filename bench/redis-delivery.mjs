/**
 * Commands through the dispatcher against jobs through BullMQ, on the same server, with the same client library and as
 * many in flight: admitted alone (`dispatch`, `add`), and from there to the recorded end (attempt, acknowledgement and
 * result here; active and completed there). Build first, and `npm ci --prefix bench/peers`; needs redis-server.
 * Run with `node bench/redis-delivery.mjs [commands]`. Quote the ratios; absolute times are this machine's.
 */
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { Redis } from 'ioredis'
import { createRedisCommandDispatcher } from 'relayscope/redis'

const { Queue, Worker } = createRequire(new URL('peers/package.json', import.meta.url))('bullmq')

const COMMANDS = Number(process.argv[2] ?? 20_000)
const CLIENTS = 50
const IN_FLIGHT = 200
const ROUNDS = 3
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
async function perSecond(work, done = Promise.resolve()) {
  const start = performance.now()
  let next = 0
  const lane = async () => {
    while (next < COMMANDS) await work(next++)
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  await done
  return COMMANDS / ((performance.now() - start) / 1_000)
}

/** Resolves when `count` has been called COMMANDS times. */
function countdown() {
  let left = COMMANDS
  let count
  const done = new Promise((resolve) => {
    count = () => --left === 0 && resolve()
  })
  return { count, done }
}

let runs = 0
const client = (n) => ({ user_id: `user-${n % 10}`, client_id: `client-${n % CLIENTS}` })
const PAYLOAD = { page: 7, filter: 'open', note: 'a payload of ordinary size' }

async function relayscope(isDelivered) {
  const deploymentId = `bench-${++runs}`
  const dispatcher = createRedisCommandDispatcher({
    client: connection,
    deploymentId,
    capacity: 1_000_000,
    deadlineMs: 600_000,
  })
  const { count, done } = countdown()
  if (isDelivered)
    for (let n = 0; n < CLIENTS; n++) {
      const instance_id = 'i1'
      await dispatcher.attach({ ...client(n), instance_id }, async ({ user_id, client_id, command_id }) => {
        const key = { user_id, client_id, command_id }
        await dispatcher.acknowledge({ ...key, instance_id })
        await dispatcher.settle({ ...key, state: 'resulted' })
        count()
      })
    }
  const dispatch = (n) => dispatcher.dispatch({ ...client(n), command_id: `c${n}`, action: 'work', payload: PAYLOAD })
  const rate = await perSecond(dispatch, isDelivered ? done : undefined)
  await dispatcher.close()
  await connection.flushall()
  return rate
}

async function bullmq(isDelivered) {
  const name = `bench-${++runs}`
  const queue = new Queue(name, { connection })
  const { count, done } = countdown()
  const worker = isDelivered ? new Worker(name, async () => {}, { connection, concurrency: CLIENTS }) : undefined
  worker?.on('completed', count)
  await queue.waitUntilReady()
  await worker?.waitUntilReady()
  const rate = await perSecond((n) => queue.add('work', PAYLOAD, { jobId: `c${n}` }), isDelivered ? done : undefined)
  await worker?.close()
  await queue.close()
  await connection.flushall()
  return rate
}

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]
for (const [what, isDelivered] of [
  ['admitted', false],
  ['admitted, delivered, acknowledged and ended', true],
]) {
  const rates = { bullmq: [], relayscope: [] }
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, run] of Object.entries({ bullmq, relayscope })) {
      const rate = await run(isDelivered)
      if (round > 0) rates[name].push(rate)
    }
  const [theirs, ours] = [median(rates.bullmq), median(rates.relayscope)]
  console.log(`\n${COMMANDS} ${what}, median of ${ROUNDS} interleaved rounds`)
  console.log(`  bullmq     ${Math.round(theirs)} per second   1.00`)
  console.log(`  relayscope ${Math.round(ours)} per second   ${(ours / theirs).toFixed(2)}`)
}
connection.disconnect()
process.exit(0)
