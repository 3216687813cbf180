/** Each answer about queues of BullMQ over 100,000 jobs against the same over 1,000, and against BullMQ's own getters. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { Queue, Worker } from 'bullmq'
import { createBullmqInspectors } from 'relayscope/bullmq'
import { check, report } from '../report.mjs'

const SIZES = { small: 1_000, large: 100_000 }
const ROUNDS = 30
const CALLS = 20
const PAGE = 100
/** The cost of a page, a record and a count must not grow with the size of the list. */
const GOAL = 2
const ASK = { signal: new AbortController().signal }

async function startRedis() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  const server = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    {
      stdio: 'ignore',
    },
  )
  process.on('exit', () => server.kill('SIGKILL'))
  return { connection: { host: '127.0.0.1', port }, stop: () => server.kill('SIGKILL') }
}

/** A tenth has been done, a tenth is delayed, a tenth has a priority, the others wait. */
async function fill(name, count, connection) {
  const queue = new Queue(name, { connection })
  await queue.waitUntilReady()
  const data = { user: 'ada', text: 'x'.repeat(500) }
  const add = async (many, opts = {}) => {
    for (let i = 0; i < many; i += 1_000)
      await queue.addBulk(Array.from({ length: Math.min(1_000, many - i) }, () => ({ name: 'work', data, opts })))
  }
  await add(count / 10)
  const worker = new Worker(name, async () => {}, { connection, concurrency: 100 })
  while ((await queue.getJobCountByTypes('wait', 'active')) > 0) await new Promise((resolve) => setTimeout(resolve, 50))
  await worker.close()
  await add(count / 10, { delay: 3_600_000 })
  await add(count / 10, { priority: 3 })
  await add((count * 7) / 10)
  return queue
}

/** The questions to one queue of `count` jobs. */
function questionsTo(queue, count) {
  const { delivery } = createBullmqInspectors({ queues: [queue] })
  const identified = createBullmqInspectors({
    queues: [queue],
    identify: ({ data }) => ({ user_id: data.user }),
  }).delivery
  const page = (inspector, filter, cursor) => () => inspector.listCommands(filter, { limit: PAGE, cursor }, ASK)
  const waiting = (place) => `4/${place}/0/${queue.name}`
  const key = (id) => ({ user_id: queue.name, client_id: queue.name, command_id: `${queue.name}:${id}` })
  return {
    summary: () => delivery.summary(ASK),
    tenants: () => delivery.listTenants({ limit: PAGE, cursor: null }, ASK),
    nodes: () => delivery.listNodes({ limit: PAGE, cursor: null }, ASK),
    'commands, the first page': page(delivery, {}, null),
    'commands, a page in the middle': page(delivery, {}, waiting(Math.floor(count * 0.35))),
    'commands, the oldest of those waiting': page(delivery, { state: 'waiting' }, waiting(count * 0.7 - PAGE)),
    'commands that have ended': page(delivery, { state: 'resulted' }, null),
    'commands with whose they are': page(identified, {}, null),
    'status of one that has ended': () => delivery.status(key(1), ASK),
    'status of one that waits': () => delivery.status(key(Math.floor(count * 0.9)), ASK),
    'BullMQ: getJobs of a page': () => queue.getJobs(['wait'], 0, PAGE - 1),
    'BullMQ: getJobCounts': () => queue.getJobCounts(),
  }
}

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]

export async function run() {
  const { connection, stop } = await startRedis()
  const questions = {}
  const queues = []
  for (const [name, count] of Object.entries(SIZES)) {
    const queue = await fill(name, count, connection)
    queues.push(queue)
    questions[name] = questionsTo(queue, count)
    const { items } = await questions[name]['commands, the first page']()
    check(`a page of ${count} jobs has each job once`, new Set(items.map((item) => item.command_id)).size, PAGE, PAGE)
    const { waiting, delayed, prioritized } = await queue.getJobCounts()
    const ended = await questions[name]['status of one that has ended']()
    check(`of ${count} jobs all but the done ones wait`, waiting + delayed + prioritized, (count * 9) / 10, count)
    check('a job that was done has ended', ended.terminal !== null, true)
  }
  console.log(`answers about ${SIZES.large} jobs against ${SIZES.small}, median of ${ROUNDS} interleaved rounds`)
  for (const what of Object.keys(questions.small)) {
    const times = { small: [], large: [] }
    for (let round = 0; round < ROUNDS; round++)
      for (const size of Object.keys(SIZES)) {
        const from = performance.now()
        for (let i = 0; i < CALLS; i++) await questions[size][what]()
        times[size].push((performance.now() - from) / CALLS)
      }
    const [small, large] = [median(times.small), median(times.large)]
    const found = large / small
    console.log(`  ${what.padEnd(38)} ${small.toFixed(3)} ms  ${large.toFixed(3)} ms  ${found.toFixed(2)}`)
    if (!what.startsWith('BullMQ'))
      report([
        {
          what: `${what}, of ${SIZES.large} jobs against ${SIZES.small}`,
          goal: GOAL,
          found,
          unit: '×',
          better: 'lower',
        },
      ])
  }
  await Promise.all(queues.map((queue) => queue.close()))
  stop()
}
