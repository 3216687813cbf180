/**
 * CPU per request through each adapter, against the bare host in the same run. `npm run build && node bench/adapters.mjs`
 *
 * Each server is a process of its own and tells its own `process.cpuUsage()`, so the clients cost nothing here. The
 * variants take turns, round after round, and the median round counts.
 */
import { fork } from 'node:child_process'
import { createHash, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { requirePeers } from './peers.mjs'
import { check, report } from './report.mjs'

const LIST = '/ops/diagnostics/connections?limit=50'
const SOCKETS = 16
const WARMUP = 3_000
const REQUESTS = 4_000
const ROUNDS = 5
const BY_HAND = 'node:http doing the same by itself'
/** Of the list route against the same by hand, alone and in Express; µs for who passes by; a whole small request, of bare node. */
const GOALS = { list: 1, express: 1, passing: 15, whole: 0.9 }
/** A fetch-style handler that answers a few bytes: what srvx and others publish figures of. */
const SMALL = Buffer.from('{"ok":true}')
const SMALL_HEADERS = { 'content-type': 'application/json', 'content-length': String(SMALL.length) }

const sha256 = (text) => createHash('sha256').update(text).digest()

const connection = (i) =>
  Object.freeze({
    connection_id: `connection-${i}`,
    user_id: `user-${i}`,
    client_id: `client-${i}`,
    instance_id: `instance-${i}`,
    client_type: 'browser',
    node_id: null,
    status: 'connected',
    connected_at: '2026-01-01T00:00:00.000Z',
    last_seen_at: '2026-01-01T00:00:00.000Z',
    disconnected_at: null,
    actions: Object.freeze([]),
    metadata: Object.freeze({}),
  })

async function diagnostics() {
  const { createDiagnosticsRouter, apiKeyAuth } = await import('relayscope')
  const items = Array.from({ length: 50 }, (_, i) => connection(i))
  // An inspector that costs nothing: the router and the adapter are measured.
  const registry = {
    listConnections: () => ({ items, next_cursor: null, has_more: false }),
    getConnection: () => null,
  }
  return createDiagnosticsRouter({
    inspectors: { registry },
    auth: apiKeyAuth('a-key-of-the-bench'),
    prefix: '/ops/diagnostics',
  })
}

/** The list route's own bytes and headers: what a host that did no work at all would send. */
async function fixedAnswer() {
  const router = await diagnostics()
  const response = await router(
    new Request(`http://localhost${LIST}`, { headers: { 'x-admin-key': 'a-key-of-the-bench' } }),
  )
  if (response.status !== 200) throw new Error(`the list route answers ${response.status}`)
  return { headers: Object.fromEntries(response.headers), body: Buffer.from(await response.arrayBuffer()) }
}

const variants = {
  async 'node:http, small'() {
    return createServer((_, res) => res.writeHead(200, SMALL_HEADERS).end(SMALL))
  },
  /** What the platform takes: one `Request` made and one `Response` made and read, without a signal. */
  async 'Request and Response by hand, small'() {
    const handler = () => new Response(SMALL, { headers: SMALL_HEADERS })
    return createServer(async (req, res) => {
      const request = new Request(`http://${req.headers.host}${req.url}`, { method: req.method, headers: req.headers })
      const { status, headers, body } = await handler(request)
      const { value } = await body.getReader().read()
      res.writeHead(status, Object.fromEntries(headers)).end(value)
    })
  },
  async 'toNodeHandler, small'() {
    const { toNodeHandler } = await import('relayscope/node')
    return createServer(toNodeHandler(() => new Response(SMALL, { headers: SMALL_HEADERS })))
  },
  async 'srvx, small'() {
    const { toNodeHandler } = await import(pathToFileURL(requirePeers().resolve('srvx/node')).href)
    return createServer(toNodeHandler(() => new Response(SMALL, { headers: SMALL_HEADERS })))
  },
  async 'node:http, fixed Buffer'() {
    const { headers, body } = await fixedAnswer()
    return createServer((_, res) => res.writeHead(200, headers).end(body))
  },
  async 'node:http, JSON.stringify'() {
    const { headers, body } = await fixedAnswer()
    const value = JSON.parse(body.toString())
    return createServer((_, res) => res.writeHead(200, headers).end(JSON.stringify(value)))
  },
  /** Reads the target, authenticates, cuts the page, makes its text and its tag; nothing is validated on its way out. */
  async [BY_HAND]() {
    const { headers, body } = await fixedAnswer()
    const value = JSON.parse(body.toString())
    const key = sha256('a-key-of-the-bench')
    return createServer((req, res) => {
      const { pathname, searchParams } = new URL(req.url, 'http://localhost')
      if (pathname !== '/ops/diagnostics/connections') return res.writeHead(404).end()
      if (!timingSafeEqual(sha256(req.headers['x-admin-key'] ?? ''), key)) return res.writeHead(403).end()
      const text = JSON.stringify({ ...value, items: value.items.slice(0, Number(searchParams.get('limit'))) })
      const etag = `W/"${createHash('sha1').update(text).digest('base64')}"`
      if (req.headers['if-none-match'] === etag) return res.writeHead(304, { etag }).end()
      res.writeHead(200, { ...headers, etag, 'content-length': Buffer.byteLength(text) }).end(text)
    })
  },
  async 'toNodeHandler, fixed Response'() {
    const { toNodeHandler } = await import('relayscope/node')
    const { headers, body } = await fixedAnswer()
    return createServer(toNodeHandler(() => new Response(body, { headers })))
  },
  async 'toNodeHandler, list route'() {
    const { toNodeHandler } = await import('relayscope/node')
    return createServer(toNodeHandler(await diagnostics()))
  },
  async 'Express, fixed Buffer'() {
    const { default: express } = await import('express')
    const { headers, body } = await fixedAnswer()
    return createServer(express().use((_, res) => res.writeHead(200, headers).end(body)))
  },
  async 'Express passing our middleware by'() {
    const { default: express } = await import('express')
    const { toExpressMiddleware } = await import('relayscope/express')
    const { headers, body } = await fixedAnswer()
    const app = express()
    app.use(toExpressMiddleware(Object.assign(() => new Response(), { owns: () => false })))
    return createServer(app.use((_, res) => res.writeHead(200, headers).end(body)))
  },
  async 'Express, list route'() {
    const { default: express } = await import('express')
    const { toExpressMiddleware } = await import('relayscope/express')
    return createServer(express().use(toExpressMiddleware(await diagnostics())))
  },
  /** Routes, authenticates and answers the same page; nothing is validated on its way out. */
  async 'Express doing the same by itself'() {
    const { default: express } = await import('express')
    const { body } = await fixedAnswer()
    const value = JSON.parse(body.toString())
    const app = express()
    app.use((req, res, next) => (req.get('x-admin-key') === 'a-key-of-the-bench' ? next() : res.sendStatus(403)))
    app.get('/ops/diagnostics/connections', (req, res) =>
      res.json({ ...value, items: value.items.slice(0, Number(req.query.limit)) }),
    )
    return createServer(app)
  },
  async 'Hono on toNodeHandler, list route'() {
    const { Hono } = await import('hono')
    const { toNodeHandler } = await import('relayscope/node')
    const { toHonoHandler } = await import('relayscope/hono')
    return createServer(toNodeHandler(new Hono().use(toHonoHandler(await diagnostics())).fetch))
  },
}

async function serve(name) {
  const server = await variants[name]()
  server.listen(0, '127.0.0.1', () => process.send(server.address().port))
  process.on('message', () => process.send(process.cpuUsage()))
  process.on('disconnect', () => process.exit())
}

/** Sends `count` requests over `SOCKETS` kept-alive connections, one at a time on each. */
function load(port, count) {
  const text = `GET ${LIST} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: */*\r\nX-Admin-Key: a-key-of-the-bench\r\n\r\n`
  let left = count
  const client = () =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1')
      let expected = 0
      let received = 0
      const next = () => (left-- > 0 ? socket.write(text) : socket.end())
      socket.on('connect', next)
      socket.on('error', reject)
      socket.on('close', resolve)
      socket.on('data', (chunk) => {
        if (received === 0) {
          const head = chunk.toString('latin1', 0, 1_024)
          if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(head))
          expected = head.indexOf('\r\n\r\n') + 4 + Number(/content-length: (\d+)/i.exec(head)[1])
        }
        received += chunk.length
        if (received < expected) return
        received = 0
        next()
      })
    })
  return Promise.all(Array.from({ length: SOCKETS }, client))
}

async function usage(child) {
  child.send('usage')
  const [{ user, system }] = await once(child, 'message')
  return user + system
}

async function main() {
  const running = []
  const wanted = JSON.parse((await fixedAnswer()).body.toString())
  for (const name of Object.keys(variants)) {
    const child = fork(fileURLToPath(import.meta.url), [name])
    const [port] = await once(child, 'message')
    const response = await fetch(`http://127.0.0.1:${port}${LIST}`, {
      headers: { 'x-admin-key': 'a-key-of-the-bench' },
    })
    if (name.endsWith('small'))
      check('every server sends the right answer', await response.json(), { ok: true }, 1, name)
    else check('every server sends the whole page', await response.json(), wanted, 50, name)
    await load(port, WARMUP)
    running.push({ name, child, port, rounds: [] })
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const { child, port, rounds } of running) {
      const before = await usage(child)
      await load(port, REQUESTS)
      rounds.push(((await usage(child)) - before) / REQUESTS)
    }
  const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
  const cost = Object.fromEntries(running.map(({ name, rounds }) => [name, median(rounds)]))
  for (const { child } of running) child.disconnect()
  const base = cost['node:http, fixed Buffer']
  for (const [name, micros] of Object.entries(cost))
    console.log(`${name.padEnd(36)} ${micros.toFixed(1).padStart(6)} µs CPU   ${(micros / base).toFixed(2)}×`)
  const express = cost['Express, fixed Buffer']
  console.log(
    `\nadded to an Express request that is not ours: ${(cost['Express passing our middleware by'] - express).toFixed(1)} µs`,
  )
  console.log(`added to Express by the whole list route:     ${(cost['Express, list route'] - express).toFixed(1)} µs`)
  const passing = cost['Express passing our middleware by'] - express
  const list = cost['toNodeHandler, list route']
  const roundsOf = (name) => running.find((one) => one.name === name).rounds
  /** Requests per second of CPU, of those of bare node, round by round. */
  const whole = (name) => median(roundsOf('node:http, small').map((bare, round) => bare / roundsOf(name)[round]))
  const lower = (what, goal, found, unit) => ({ what, goal, found, unit, better: 'lower' })
  const higher = (what, goal, found) => ({ what, goal, found, unit: '×', better: 'higher' })
  report([
    higher(
      'requests per CPU second, a small fetch-style answer, of bare node:http',
      GOALS.whole,
      whole('toNodeHandler, small'),
    ),
    higher('the same through srvx', null, whole('srvx, small')),
    higher(
      'the same by hand, with a Request and a Response made at once',
      null,
      whole('Request and Response by hand, small'),
    ),
    lower('CPU of the list route, against the same by hand on node:http', GOALS.list, list / cost[BY_HAND], '×'),
    lower(
      'the same in Express',
      GOALS.express,
      cost['Express, list route'] / cost['Express doing the same by itself'],
      '×',
    ),
    lower('added to an Express request that is not ours', GOALS.passing, passing, 'µs'),
  ])
}

await (process.argv[2] === undefined ? main() : serve(process.argv[2]))
