// Whole dispatch, `fetch(Request) -> Response` and its body read, of a small answer and of a page of 50 connections:
// the router against the fastest hand-written handler that does the same visible work, and against hono. Express has
// no such call: bench/adapters.mjs holds it to whole HTTP exchanges.
// Run: npm run build && node bench/dispatch.mjs. Quote the ratios; absolute times are this machine's.
import { Hono } from 'hono'
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { report } from './report.mjs'

const KEY = 'a-key-for-this-benchmark'
const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}
const ROUNDS = 9
const CALLS = 4_000
/** Against the limit: what is small is answered almost as fast; a page besides passes its schema, for which none is set. */
const GOALS = { '/capabilities': 1.25, '/connections?limit=50': null }

const facilities = createMemoryFacilities()
for (let i = 0; i < 200; i++)
  await facilities.connections.connect({
    user_id: `user-${i % 20}`,
    client_id: `client-${i}`,
    instance_id: `instance-${i}`,
    client_type: 'browser',
    actions: ['open_tab', 'close_tab'],
    metadata: { version: '1.2.3' },
  })
const composition = memoryComposition(facilities)
const router = createDiagnosticsRouter({ ...composition, auth: apiKeyAuth(KEY), prefix: '/ops/diagnostics' })
const small = await (await router(request('/capabilities'))).json()
const { signal } = new AbortController()
const page = (limit) => composition.inspectors.registry.listConnections({}, { limit, cursor: null }, { signal })

function request(path) {
  return new Request(`http://localhost/ops/diagnostics${path}`, { headers: { 'x-admin-key': KEY } })
}

/** Routes, authenticates, reads `limit`, and answers; nothing is validated on its way out. */
async function limit(req) {
  const url = new URL(req.url)
  if (req.headers.get('x-admin-key') !== KEY) return new Response(null, { status: 403 })
  if (url.pathname === '/ops/diagnostics/capabilities') return json(small)
  return json(await page(Number(url.searchParams.get('limit') ?? 100)))
}

const encoder = new TextEncoder()

function json(value) {
  const text = JSON.stringify(value)
  return new Response(text, { headers: { ...HEADERS, 'content-length': String(encoder.encode(text).byteLength) } })
}

const hono = new Hono()
hono.use('*', async (c, next) => (c.req.header('x-admin-key') === KEY ? next() : c.body(null, 403)))
hono.get('/ops/diagnostics/capabilities', (c) => c.json(small, 200, HEADERS))
hono.get('/ops/diagnostics/connections', async (c) => c.json(await page(Number(c.req.query('limit'))), 200, HEADERS))

const median = (list) => list.sort((a, b) => a - b)[list.length >> 1]

async function time(handler, path) {
  const start = process.hrtime.bigint()
  for (let i = 0; i < CALLS; i++) await (await handler(request(path))).text()
  return Number(process.hrtime.bigint() - start) / CALLS / 1_000
}

const peers = { limit, relayscope: router, hono: (req) => hono.fetch(req) }
for (const path of Object.keys(GOALS)) {
  const times = Object.fromEntries(Object.keys(peers).map((name) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, handler] of Object.entries(peers)) {
      const us = await time(handler, path)
      if (round > 0) times[name].push(us)
    }
  console.log(`\nGET ${path}: dispatch and read the body, median of ${ROUNDS} interleaved rounds of ${CALLS}`)
  const base = median([...times.limit])
  for (const [name, list] of Object.entries(times)) {
    const us = median(list)
    console.log(`  ${name.padEnd(12)} ${us.toFixed(1).padStart(7)} us  ${(us / base).toFixed(2)}x the limit`)
  }
  const found = median(times.relayscope) / base
  report([{ what: `GET ${path}, against a handler by hand`, goal: GOALS[path], found, unit: '×', better: 'lower' }])
}
