/**
 * What a flight recorder costs the process that has it, which keeps 1,000 connections with a heartbeat every 30 s and ends 50
 * commands a second; against the same process without a recorder. Build first; `node bench/flight-recorder.mjs`.
 *
 * Both are processes of their own and take turns, window by window; CPU is that of the process, so waiting does not count.
 * Over a Redis that the bench starts, with as many connections and commands and no load: what one reading asks of the store.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createFlightRecorder } from 'relayscope/incident'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createRedisFacilities, redisComposition } from 'relayscope/redis'
import { cpuMs, startRedis } from './records.mjs'
import { check, report } from './report.mjs'

const CLIENTS = 1_000
const HEARTBEAT_MS = 30_000
const COMMANDS_S = 50
/** More commands than a recorder follows. */
const BEFORE = 2_500
const EVERY_MS = 5_000
/** Three readings. */
const WINDOW_MS = 3 * EVERY_MS
const ROUNDS = 7
/** Per cent of one core. */
const GOAL = 1

const rowsIn = (parts) => Object.fromEntries(parts.map(({ route, rows }) => [route, rows?.length]))
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

const client = (i) => ({ user_id: `user-${i % 100}`, client_id: `client-${i}` })

/** Connects the clients, which end each command that they receive. */
async function connectClients({ connections, contexts, dispatcher }) {
  const ids = []
  for (let i = 0; i < CLIENTS; i++) {
    const one = client(i)
    ids.push((await connections.connect({ ...one, client_type: 'web', instance_id: 'i' })).connection_id)
    await contexts.report({ ...one, client_type: 'web', context_id: `context-${i}`, status: 'active' })
    await dispatcher.attach({ ...one, instance_id: 'i' }, ({ user_id, client_id, command_id }) =>
      dispatcher.settle({ user_id, client_id, command_id, instance_id: 'i', acknowledge: true, state: 'resulted' }),
    )
  }
  return ids
}

async function serve(isRecorded) {
  const facilities = createMemoryFacilities()
  const { connections, dispatcher } = facilities
  const ids = await connectClients(facilities)
  let sent = 0
  const dispatch = () =>
    dispatcher.dispatch({
      ...client((sent * 7) % CLIENTS),
      command_id: `command-${sent++}`,
      action: 'work',
      payload: {},
    })
  for (let i = 0; i < BEFORE; i++) await dispatch()
  let next = 0
  setInterval(() => connections.heartbeat(ids[next++ % CLIENTS]), HEARTBEAT_MS / CLIENTS)
  setInterval(dispatch, 1_000 / COMMANDS_S)
  const recorder = isRecorded ? createFlightRecorder(memoryComposition(facilities)) : null
  await recorder?.started
  process.send('ready')
  process.on('message', async (what) => {
    if (what === 'usage') return process.send({ ...process.cpuUsage(), sent })
    const { parts = [] } = (await recorder?.incidentAt(null)) ?? {}
    process.send(rowsIn(parts))
  })
  process.on('disconnect', () => process.exit())
}

async function ask(child, what) {
  child.send(what)
  return (await once(child, 'message'))[0]
}

/** What readings ask of a store: its commands and CPU ms, and CPU ms of this process, each per reading. */
async function readOverRedis() {
  const redis = await startRedis()
  const given = { client: redis.client, deploymentId: 'bench' }
  const facilities = createRedisFacilities({ ...given, connections: { heartbeatTimeoutMs: 86_400_000 } })
  await connectClients(facilities)
  for (let i = 0; i < BEFORE; i++)
    await facilities.dispatcher.dispatch({ ...client(i % CLIENTS), command_id: `c-${i}`, action: 'work', payload: {} })
  const measure = async () => {
    const [commands, store, from] = [await redis.commands(), await redis.cpuMs(), process.cpuUsage()]
    await sleep(WINDOW_MS)
    return {
      commands: (await redis.commands()) - commands,
      store: (await redis.cpuMs()) - store,
      process: cpuMs(from),
    }
  }
  await sleep(EVERY_MS)
  const idle = await measure()
  const recorder = createFlightRecorder(redisComposition(given))
  await recorder.started
  const recorded = await measure()
  const { parts } = await recorder.incidentAt(null)
  check('a recorder over Redis has every connection', rowsIn(parts)['/connections'], CLIENTS, CLIENTS)
  await Promise.all([recorder.close(), facilities.close()])
  await redis.close()
  const readings = WINDOW_MS / EVERY_MS
  return Object.fromEntries(Object.keys(idle).map((name) => [name, (recorded[name] - idle[name]) / readings]))
}

async function main() {
  const running = []
  for (const name of ['without', 'with']) {
    const child = fork(fileURLToPath(import.meta.url), [name])
    await once(child, 'message')
    running.push({ name, child, windows: [] })
  }
  // Compiled, and with nothing left of the start.
  await sleep(2 * WINDOW_MS)
  for (let round = 0; round < ROUNDS; round++) {
    const before = await Promise.all(running.map(({ child }) => ask(child, 'usage')))
    await sleep(WINDOW_MS)
    for (const [i, { child, windows }] of running.entries()) {
      const { user, system, sent } = await ask(child, 'usage')
      const commands = (sent - before[i].sent) / (WINDOW_MS / 1_000) / COMMANDS_S
      check('the host sends its commands', commands > 0.8 && commands < 1.2, true, sent - before[i].sent)
      windows.push(user + system - before[i].user - before[i].system)
    }
  }
  const [without, recorded] = running.map(({ windows }) => windows)
  const rows = await ask(running[1].child, 'rows')
  check('what is recorded has every connection', rows['/connections'], CLIENTS, CLIENTS)
  check('what is recorded has the newest commands', rows['/delivery/commands'] >= 2_000, true, 2_000)
  const share = (cpu) => cpu / WINDOW_MS / 10
  console.log(
    `CPU of one core: ${share(median(without)).toFixed(2)} % without, ${share(median(recorded)).toFixed(2)} % with`,
  )
  report([
    {
      what: `a flight recorder at ${CLIENTS} connections and ${COMMANDS_S} commands/s: additional CPU, of one core`,
      goal: GOAL,
      found: share(median(recorded.map((cpu, round) => cpu - without[round]))),
      unit: '%',
      better: 'lower',
    },
  ])
  for (const { child } of running) child.disconnect()
  const { commands, store, process: own } = await readOverRedis()
  const lower = (what, goal, found, unit) => ({ what, goal, found, unit, better: 'lower' })
  report([
    lower(`a reading of ${CLIENTS} connections over Redis: commands of the store`, 5_000, commands, 'commands'),
    lower('the same: CPU of the store', 100, store, 'ms'),
    lower('the same: CPU of the process', 400, own, 'ms'),
  ])
  process.exit(0)
}

await (process.argv[2] === undefined ? main() : serve(process.argv[2] === 'with'))
