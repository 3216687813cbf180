/**
 * How long a newcomer waits, and what it costs in memory, while 512 connections have sent 1,000 requests each and never
 * read: against a bare `node:http` server under the same burst. `npm run build && node bench/burst.mjs [sockets] [requests]`
 *
 * Server, attacker and newcomer are processes of their own. Quote the ratios: a bare server that answers the same is
 * the yardstick, and needs up to a minute and 3 GB for it. `startNodeServer` is what serves the observer and the live host.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, get } from 'node:http'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { check, report } from './report.mjs'

const PATH = '/ops/diagnostics/capabilities'
const PATIENCE_MS = 120_000
const NEWCOMERS = 5
/**
 * Memory limit of the server in MiB. The wait of a new connection has no goal: Node parses the burst before anything
 * can refuse it.
 */
const GOALS = { wait: null, memory: 500 }

async function diagnostics() {
  const { createDiagnosticsRouter, apiKeyAuth } = await import('relayscope')
  const { createFakeInspectors } = await import('relayscope/testing')
  const inspectors = createFakeInspectors({ connections: [] })
  return createDiagnosticsRouter({ inspectors, auth: apiKeyAuth('a-key-of-the-bench'), prefix: '/ops/diagnostics' })
}

/** Each refuses the attacker and the newcomer alike: neither has a key. */
const servers = {
  async 'bare node:http'() {
    const server = createServer((_, res) => res.writeHead(403, { 'content-type': 'application/json' }).end('{}'))
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    return server.address().port
  },
  async 'bare node:http, the same router'() {
    const { toNodeHandler } = await import('relayscope/node')
    const server = createServer(toNodeHandler(await diagnostics()))
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    return server.address().port
  },
  async startNodeServer() {
    const { startNodeServer } = await import('relayscope/node')
    return (await startNodeServer(await diagnostics())).port
  },
  async 'the control server'() {
    const { startCooperativeSiteControlServer } = await import('relayscope/control-server')
    const { createSiteRegistry } = await import('relayscope/cooperative-site')
    const parts = { sites: createSiteRegistry(), publisher: { publish: async () => ({}) } }
    return (await startCooperativeSiteControlServer({ token: 'a-token-of-the-bench', ...parts })).port
  },
}

async function serve(name) {
  const port = await servers[name]()
  process.on('message', () => process.send(process.resourceUsage().maxRSS))
  process.on('disconnect', () => process.exit())
  process.send(port)
}

async function attack(port, count, requests) {
  const burst = `GET ${PATH} HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`.repeat(requests)
  const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1'))
  for (const socket of sockets) {
    socket.on('error', () => {})
    socket.pause()
    socket.write(burst)
  }
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => {})))
  process.on('disconnect', () => process.exit())
  process.send('sent')
}

/** @returns milliseconds until the answer, or what became of it. */
function ask(port) {
  const start = performance.now()
  return new Promise((resolve) => {
    const request = get({ port, host: '127.0.0.1', path: PATH, agent: false, timeout: PATIENCE_MS }, (response) => {
      response.resume()
      response.on('end', () => resolve({ ms: performance.now() - start, status: response.statusCode }))
    })
    request.on('timeout', () => request.destroy(new Error('no answer')))
    request.on('error', () => resolve({ ms: Number.NaN, status: null }))
  })
}

async function measure(name, sockets, requests) {
  const file = fileURLToPath(import.meta.url)
  const server = fork(file, ['serve', name])
  const [port] = await once(server, 'message')
  const { status } = await ask(port)
  const attacker = fork(file, ['attack', port, sockets, requests])
  await once(attacker, 'message')
  const waits = []
  while (waits.length < NEWCOMERS) {
    const newcomer = await ask(port)
    check('a newcomer behind a burst gets the answer of one before it', newcomer.status, status, 1, name)
    waits.push(newcomer.ms)
  }
  server.send('memory')
  const [memory] = await once(server, 'message')
  for (const child of [attacker, server]) child.disconnect()
  await Promise.all([attacker, server].map((child) => child.exitCode ?? once(child, 'exit')))
  return { first: waits[0], worst: Math.max(...waits), memory: memory / 1_024 }
}

async function main(sockets = 512, requests = 1_000) {
  let bare
  for (const name of Object.keys(servers)) {
    const { first, worst, memory } = await measure(name, sockets, requests)
    bare ??= worst
    if (name === 'startNodeServer')
      report([
        {
          what: 'slowest newcomer behind a burst, against bare node:http',
          goal: GOALS.wait,
          found: worst / bare,
          unit: '×',
          better: 'lower',
        },
        { what: 'memory under it', goal: GOALS.memory, found: memory, unit: 'MiB', better: 'lower' },
      ])
    const figures = `first newcomer ${first.toFixed(0).padStart(6)} ms   slowest ${worst.toFixed(0).padStart(6)} ms`
    console.log(
      `${name.padEnd(32)} ${figures}   ${(worst / bare).toFixed(3)}×   ${memory.toFixed(0).padStart(5)} MiB at most`,
    )
  }
}

const [role, ...given] = process.argv.slice(2)
if (role === 'serve') await serve(given[0])
else if (role === 'attack') await attack(...given.map(Number))
else await main(...process.argv.slice(2).map(Number))
