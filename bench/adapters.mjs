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
const CAPABILITIES = '/ops/diagnostics/capabilities'
const SOCKETS = 16
const WARMUP = 3_000
const REQUESTS = 4_000
const ROUNDS = 5
const BY_HAND = 'node:http doing the same by itself'
/**
 * Of the list route against the same by hand, alone and in Express; µs added to a request that is not ours; a whole small
 * request, of the same by hand; `GET /capabilities`, of bare node:http. Of bare node:http no handler that returns a
 * `Response` comes to 0.9: one that is made and read costs as much as the whole bare request.
 */
const GOALS = { list: 1, express: 1, passing: 1.25, whole: 0.85, capabilities: 0.42 }
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

/** A route's own bytes and headers: what a host that did no work at all would send. */
async function fixedAnswer(path = LIST) {
  const router = await diagnostics()
  const response = await router(
    new Request(`http://localhost${path}`, { headers: { 'x-admin-key': 'a-key-of-the-bench' } }),
  )
  if (response.status !== 200) throw new Error(`${path} answers ${response.status}`)
  return { headers: Object.fromEntries(response.headers), body: Buffer.from(await response.arrayBuffer()) }
}

const answerSmall = () => new Response(SMALL, { headers: SMALL_HEADERS })

const requestByHand = ({ headers, method, url }, signal) =>
  new Request(`http://${headers.host}${url}`, { method, headers, signal })

async function sendByHand(res, { status, headers, body }) {
  const { value } = await body.getReader().read()
  res.writeHead(status, Object.fromEntries(headers)).end(value)
}

const variants = {
  async 'node:http, small'() {
    return createServer((_, res) => res.writeHead(200, SMALL_HEADERS).end(SMALL))
  },
  /** The least with a `Response` of the platform: no adapter whose handlers return one can cost less. */
  async 'a Response by hand, small'() {
    return createServer((_, res) => sendByHand(res, answerSmall()))
  },
  async 'a Request and a Response by hand, small'() {
    return createServer((req, res) => sendByHand(res, answerSmall(requestByHand(req))))
  },
  /** The same whose signal aborts when the client disconnects, as `toNodeHandler` promises. */
  async 'a Request with its signal and a Response by hand, small'() {
    return createServer((req, res) => {
      const left = new AbortController()
      res.on('close', () => {
        if (!res.writableFinished) left.abort()
      })
      return sendByHand(res, answerSmall(requestByHand(req, left.signal)))
    })
  },
  async 'toNodeHandler, small'() {
    const { toNodeHandler } = await import('relayscope/node')
    return createServer(toNodeHandler(answerSmall))
  },
  async 'srvx, small'() {
    const { toNodeHandler } = await import(pathToFileURL(requirePeers().resolve('srvx/node')).href)
    return createServer(toNodeHandler(answerSmall))
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
  async 'node:http, fixed capabilities'() {
    const { headers, body } = await fixedAnswer(CAPABILITIES)
    return createServer((_, res) => res.writeHead(200, headers).end(body))
  },
  async 'toNodeHandler, capabilities'() {
    const { toNodeHandler } = await import('relayscope/node')
    return createServer(toNodeHandler(await diagnostics()))
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

const pathOf = (name) => (name.endsWith('capabilities') ? CAPABILITIES : LIST)

/** Sends `count` requests over `SOCKETS` kept-alive connections, one at a time on each. */
function load(port, count, path) {
  const text = `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAccept: */*\r\nX-Admin-Key: a-key-of-the-bench\r\n\r\n`
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
    const response = await fetch(`http://127.0.0.1:${port}${pathOf(name)}`, {
      headers: { 'x-admin-key': 'a-key-of-the-bench' },
    })
    if (name.endsWith('small'))
      check('every server sends the right answer', await response.json(), { ok: true }, 1, name)
    else if (name.endsWith('capabilities'))
      check('every server sends the right answer', (await response.json()).registry, true, 1, name)
    else check('every server sends the whole page', await response.json(), wanted, 50, name)
    await load(port, WARMUP, pathOf(name))
    running.push({ name, child, port, rounds: [] })
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const { name, child, port, rounds } of running) {
      const before = await usage(child)
      await load(port, REQUESTS, pathOf(name))
      rounds.push(((await usage(child)) - before) / REQUESTS)
    }
  const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]
  const cost = Object.fromEntries(running.map(({ name, rounds }) => [name, median(rounds)]))
  for (const { child } of running) child.disconnect()
  const base = cost['node:http, fixed Buffer']
  for (const [name, micros] of Object.entries(cost))
    console.log(`${name.padEnd(36)} ${micros.toFixed(1).padStart(6)} µs CPU   ${(micros / base).toFixed(2)}×`)
  const expressCost = cost['Express, fixed Buffer']
  const passingCost = cost['Express passing our middleware by'] - expressCost
  console.log(`\nadded to an Express request that is not ours: ${passingCost.toFixed(1)} µs`)
  console.log(
    `added to Express by the whole list route:     ${(cost['Express, list route'] - expressCost).toFixed(1)} µs`,
  )
  const roundsOf = (name) => running.find((one) => one.name === name).rounds
  /** Requests per second of CPU, of those of a peer, round by round. */
  const against = (peer, name) => median(roundsOf(peer).map((micros, round) => micros / roundsOf(name)[round]))
  const lower = (what, goal, found, unit) => ({ what, goal, found, unit, better: 'lower' })
  const higher = (what, goal, found) => ({ what, goal, found, unit: '×', better: 'higher' })
  const bare = (what, name) => higher(what, null, against('node:http, small', `${name}, small`))
  const { list, express, passing } = GOALS
  report([
    higher(
      'requests per CPU second, GET /capabilities, of bare node:http with the same bytes',
      GOALS.capabilities,
      against('node:http, fixed capabilities', 'toNodeHandler, capabilities'),
    ),
    higher(
      'requests per CPU second, a small fetch-style answer, of the same by hand',
      GOALS.whole,
      against('a Request with its signal and a Response by hand, small', 'toNodeHandler, small'),
    ),
    bare('the same, of bare node:http', 'toNodeHandler'),
    bare('by hand, of bare node:http', 'a Request with its signal and a Response by hand'),
    bare('by hand without a signal, of bare node:http', 'a Request and a Response by hand'),
    bare('by hand without a Request, of bare node:http', 'a Response by hand'),
    bare('through srvx, which makes a Request when it is read, of bare node:http', 'srvx'),
    lower(
      'CPU of the list route, against the same by hand on node:http',
      list,
      cost['toNodeHandler, list route'] / cost[BY_HAND],
      '×',
    ),
    lower('the same in Express', express, cost['Express, list route'] / cost['Express doing the same by itself'], '×'),
    lower(
      'an Express request that is not ours, against the same without us',
      passing,
      cost['Express passing our middleware by'] / expressCost,
      '×',
    ),
  ])
}

await (process.argv[2] === undefined ? main() : serve(process.argv[2]))
