/**
 * Store instructions per command, which are the same however busy the machine is: admitted, and from there to its
 * recorded end, compared with BullMQ's `add` and a job's whole life, 25 at once and one alone (docs/scaling.md).
 * Each is the difference of two runs under callgrind, so that the server's start is not counted. Build first; needs
 * redis-server and valgrind. Run with `node bench/store-instructions.mjs [commands]`.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { createRedisCommandDispatcher } from 'relayscope/redis'
import { limit } from './delivery-limit.mjs'
import { check, report } from './report.mjs'

const COMMANDS = Number(process.argv[2] ?? 1_000)
/** Commands of the shorter run: scripts are known by then, and lists have some length. */
const BEFORE = 250
const TOGETHER = 25
const PAYLOAD = { page: 7, filter: 'open', note: 'a payload of ordinary size' }
/** Nothing is to be over because the store is slow. */
const PATIENT = { commandTimeoutMs: 60_000, ackTimeoutMs: 600_000, deadlineMs: 6_000_000 }

/** What a server does by its clock would count for more the slower the machine is. */
const CALM = ['--hz', '1', '--dynamic-hz', 'no', '--activerehashing', 'no']

const folder = mkdtempSync(join(tmpdir(), 'relayscope-instructions-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

async function freePort() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  return port
}

let servers = 0

/** Instructions of a server from its start to its end, in which `work` is given a connection. */
async function instructionsOf(work) {
  const port = await freePort()
  const out = join(folder, String(++servers))
  const given = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...CALM]
  const valgrind = ['--tool=callgrind', `--callgrind-out-file=${out}`, 'redis-server', ...given]
  const server = spawn('valgrind', valgrind, { stdio: 'ignore' })
  const stop = () => server.kill('SIGKILL')
  process.once('exit', stop)
  const connection = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: null }).on('error', () => {})
  // Under valgrind it takes a while to listen; what `work` connects would report each refused try.
  await new Promise((resolve) => connection.once('ready', resolve))
  await work(connection)
  connection.disconnect()
  const ended = once(server, 'exit')
  server.kill('SIGTERM')
  await ended
  process.off('exit', stop)
  return Number(/^(?:summary|totals): (\d+)/m.exec(readFileSync(out, 'utf8'))?.[1])
}

const client = (n) => ({ user_id: `user-${(n % TOGETHER) % 10}`, client_id: `client-${n % TOGETHER}` })

/** `life` is `none`, or how the client says that it has a command: `apart`, or `joined` with its result. */
const relayscope = (life) => async (connection, count, together) => {
  const dispatcher = createRedisCommandDispatcher({ client: connection, deploymentId: 'counted', ...PATIENT })
  let arrived = []
  let all = () => {}
  if (life !== 'none')
    for (let n = 0; n < TOGETHER; n++)
      await dispatcher.attach({ ...client(n), instance_id: 'i1' }, ({ user_id, client_id, command_id }) => {
        arrived.push({ user_id, client_id, command_id, instance_id: 'i1' })
        if (arrived.length === together) all()
      })
  for (let n = 0; n < count; n += together) {
    const ids = Array.from({ length: together }, (_, i) => n + i)
    const delivered = new Promise((resolve) => {
      all = resolve
    })
    const dispatch = (id) =>
      dispatcher.dispatch({ ...client(id), command_id: `c${id}`, action: 'work', payload: PAYLOAD })
    await Promise.all(ids.map(dispatch))
    if (life === 'none') continue
    await delivered
    const commands = arrived
    arrived = []
    const wanted = ids.map((id) => `c${id}`).sort()
    check('each command reaches its client once', commands.map(({ command_id }) => command_id).sort(), wanted, together)
    if (life === 'apart') await Promise.all(commands.map((command) => dispatcher.acknowledge(command)))
    const end = (command) => dispatcher.settle({ ...command, state: 'resulted', acknowledge: life === 'joined' })
    await Promise.all(commands.map(end))
  }
  await dispatcher.close()
}

const bullmq = (life) => async (connection, count, together) => {
  const queue = new Queue('counted', { connection })
  const worker = life ? new Worker('counted', async () => {}, { connection, concurrency: TOGETHER }) : undefined
  await queue.waitUntilReady()
  await worker?.waitUntilReady()
  let left = 0
  let done = () => {}
  worker?.on('completed', () => --left === 0 && done())
  for (let n = 0; n < count; n += together) {
    left = together
    const completed = new Promise((resolve) => {
      done = resolve
    })
    const ids = Array.from({ length: together }, (_, i) => n + i)
    await Promise.all(ids.map((id) => queue.add('work', PAYLOAD, { jobId: `c${id}` })))
    if (worker) await completed
  }
  await worker?.close()
  await queue.close()
}

/** The same evidence by the fewest calls of the store. */
const byHand = (life) => async (connection, count, together) => {
  let left = 0
  let done = () => {}
  const heard = { onStart() {}, onEnd: () => --left === 0 && done() }
  const given = { connection, prefix: 'by-hand:', clientOf: client, payload: PAYLOAD }
  const { add } = await limit(given, life ? heard : {})
  for (let n = 0; n < count; n += together) {
    left = together
    const ended = new Promise((resolve) => {
      done = resolve
    })
    await Promise.all(Array.from({ length: together }, (_, i) => add(n + i)))
    if (life) await ended
  }
}

const KINDS = {
  'admitted: BullMQ': bullmq(false),
  'admitted: as it is': relayscope('none'),
  'admitted: by the fewest calls': byHand(false),
  'to its end: BullMQ': bullmq(true),
  'to its end, acknowledged by its result': relayscope('joined'),
  'to its end, acknowledged apart': relayscope('apart'),
  'to its end: by the fewest calls': byHand(true),
}

/** Against BullMQ; the fewest calls by hand are what is possible. */
const GOALS = {
  '1, admitted: as it is': 2.3,
  '1, to its end, acknowledged by its result': 1.2,
  '1, to its end, acknowledged apart': 1.5,
  [`${TOGETHER}, admitted: as it is`]: 0.65,
  [`${TOGETHER}, to its end, acknowledged by its result`]: 0.65,
  [`${TOGETHER}, to its end, acknowledged apart`]: 0.8,
}

for (const together of [1, TOGETHER]) {
  let theirs
  for (const [what, kind] of Object.entries(KINDS)) {
    const few = await instructionsOf((connection) => kind(connection, BEFORE, together))
    const many = await instructionsOf((connection) => kind(connection, BEFORE + COMMANDS, together))
    const each = (many - few) / COMMANDS
    if (what.endsWith('BullMQ')) theirs = each
    console.log(`  ${together} at once, ${what}: ${Math.round(each / 1_000)},000 instructions of the store`)
    if (what.endsWith('BullMQ')) continue
    const ratio = `instructions of the store, ${together} at once, ${what}, against BullMQ`
    report([
      { what: ratio, goal: GOALS[`${together}, ${what}`] ?? null, found: each / theirs, unit: '×', better: 'lower' },
    ])
  }
}
process.exit(0)
