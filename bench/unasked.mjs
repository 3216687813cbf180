/**
 * What the diagnostics cost a host when no operator asks: CPU of a process that keeps 1,000 connections with a heartbeat every
 * 30 s and 1,000 contexts, with the router, the dashboard and the metrics mounted; against the same process with the same
 * timers and an empty call instead of each report. Build first; `node bench/unasked.mjs`. Needs no other program.
 *
 * Both are processes of their own and take turns, window by window; CPU is that of the process, so waiting does not count.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'
import { createDashboard } from 'relayscope/dashboard'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createMetrics } from 'relayscope/metrics'
import { toNodeHandler } from 'relayscope/node'
import { check, report } from './report.mjs'

const CLIENTS = 1_000
const HEARTBEAT_MS = 30_000
const WINDOW_MS = 3_000
const ROUNDS = 7
/** Per cent of one core. */
const GOAL = 1
const KEY = 'a-key-of-the-bench'

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

/** Calls `report` for one client after the other, each once in `HEARTBEAT_MS`. */
function beat(report) {
  let next = 0
  setInterval(() => report(next++ % CLIENTS), HEARTBEAT_MS / CLIENTS)
}

const hosts = {
  async without() {
    beat(async () => {})
    return createServer((_, res) => res.end('the host'))
  },
  async with() {
    const facilities = createMemoryFacilities()
    const ids = []
    for (let i = 0; i < CLIENTS; i++) {
      const client = { user_id: `user-${i % 100}`, client_id: `client-${i}`, client_type: 'web' }
      ids.push((await facilities.connections.connect({ ...client, instance_id: 'i' })).connection_id)
      await facilities.contexts.report({ ...client, context_id: `context-${i}`, status: 'active' })
    }
    beat((i) => facilities.connections.heartbeat(ids[i]))
    const composition = memoryComposition(facilities)
    const auth = apiKeyAuth(KEY)
    const router = createDiagnosticsRouter({ ...composition, auth, prefix: '/ops/diagnostics' })
    const mounted = [router, createDashboard({ api: '/ops/diagnostics' }), createMetrics({ ...composition, auth })]
    const listeners = mounted.map((each) => toNodeHandler(each))
    return createServer((req, res) => {
      const pass = (i) => (listeners[i] ? listeners[i](req, res, () => pass(i + 1)) : res.end('the host'))
      pass(0)
    })
  },
}

async function serve(name) {
  const server = await hosts[name]()
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
  process.on('message', () => process.send(process.cpuUsage()))
  process.on('disconnect', () => process.exit())
}

async function usage(child) {
  child.send('usage')
  const [{ user, system }] = await once(child, 'message')
  return user + system
}

async function main() {
  const running = []
  for (const name of Object.keys(hosts)) {
    const child = fork(fileURLToPath(import.meta.url), [name])
    const [port] = await once(child, 'message')
    const own = await (await fetch(`http://127.0.0.1:${port}/`)).text()
    check('both hosts serve their own routes', own, 'the host', 1, name)
    running.push({ name, child, port, windows: [] })
  }
  const [, { port, child }] = running
  // Compiled, and with nothing left of the start.
  await sleep(2 * WINDOW_MS)
  for (let round = 0; round < ROUNDS; round++) {
    const before = await Promise.all(running.map((one) => usage(one.child)))
    await sleep(WINDOW_MS)
    for (const [i, one] of running.entries()) one.windows.push((await usage(one.child)) - before[i])
  }
  const headers = { 'x-admin-key': KEY }
  const answer = await fetch(`http://127.0.0.1:${port}/ops/diagnostics/connections/count?status=connected`, { headers })
  check('after that every connection is connected', (await answer.json()).total, CLIENTS, CLIENTS)
  const [without, withAll] = running.map(({ windows }) => windows)
  // µs of CPU a window, as per cent of one core.
  const share = median(withAll.map((cpu, round) => (cpu - without[round]) / WINDOW_MS / 10))
  console.log(
    `CPU of one core: ${(median(without) / WINDOW_MS / 10).toFixed(2)} % without, ${(median(withAll) / WINDOW_MS / 10).toFixed(2)} % with`,
  )
  report([
    {
      what: `${CLIENTS} connections and contexts without requests: additional CPU, of one core`,
      goal: GOAL,
      found: share,
      unit: '%',
      better: 'lower',
    },
  ])
  for (const one of running) one.child.disconnect()
  if (child.exitCode === null) await once(child, 'exit')
}

await (process.argv[2] === undefined ? main() : serve(process.argv[2]))
