// Whole dispatch, `fetch(Request) -> Response` and its body read, of a small answer and of a page of 50 connections:
// the router against the fastest hand-written handler that does the same visible work, and against hono. Express has
// no such call: bench/adapters.mjs holds it to whole HTTP exchanges.
// Run: npm run build && node bench/dispatch.mjs. Quote the ratios; absolute times are this machine's.
import { Hono } from 'hono'
import { apiKeyAuth, createDiagnosticsRouter } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { check, report } from './report.mjs'

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
const page = (limit) =>
  composition.inspectors.registry.listConnections({}, { limit, cursor: null, order: 'newest' }, { signal })

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

const median = (list) => list.toSorted((a, b) => a - b)[list.length >> 1]

function cpuUs(from) {
  const { user, system } = process.cpuUsage(from)
  return user + system
}

/** µs of CPU of one call: on a busy machine waiting must not count. */
async function costOf(handler, path) {
  const from = process.cpuUsage()
  for (let i = 0; i < CALLS; i++) await (await handler(request(path))).text()
  return cpuUs(from) / CALLS
}

const peers = { limit, relayscope: router, hono: (req) => hono.fetch(req) }
for (const path of Object.keys(GOALS)) {
  // The cursor of the router is a token of its own.
  const shownBy = async (handler) => {
    const body = await (await handler(request(path))).json()
    return body.items ?? body
  }
  for (const [name, handler] of Object.entries(peers))
    check('every handler gives the same answer', await shownBy(handler), await shownBy(limit), 1, `${name}, ${path}`)
  const times = Object.fromEntries(Object.keys(peers).map((name) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, handler] of Object.entries(peers)) {
      const us = await costOf(handler, path)
      if (round > 0) times[name].push(us)
    }
  console.log(`\nGET ${path}: dispatch and read the body, CPU, median of ${ROUNDS} interleaved rounds of ${CALLS}`)
  // Of each round by itself: the machine is twice as fast in one second as in the next.
  const against = (name) => median(times[name].map((us, round) => us / times.limit[round]))
  for (const [name, list] of Object.entries(times))
    console.log(
      `  ${name.padEnd(12)} ${median(list).toFixed(1).padStart(7)} us  ${against(name).toFixed(2)}x the limit`,
    )
  const found = against('relayscope')
  report([{ what: `GET ${path}, against a handler by hand`, goal: GOALS[path], found, unit: '×', better: 'lower' }])
}

/** What each optimisation saves of a whole request, against the same router over a registry that does without it. One that saves less than a tenth goes. */
const EXTRA_GOAL = 1.1

/** A router over the same registry with other answers. */
function routerOver(change) {
  const registry = { ...composition.inspectors.registry, ...change(composition.inspectors.registry) }
  const inspectors = { ...composition.inspectors, registry }
  return createDiagnosticsRouter({ ...composition, inspectors, auth: apiKeyAuth(KEY), prefix: '/ops/diagnostics' })
}

const PAGE = '/connections?limit=50'
const [one] = (await page(1)).items
const thawed = structuredClone(await page(50))
const kept = await page(50)
const extras = [
  ['tags by version, of a page that the caller has', PAGE, router, routerOver(() => ({ version: undefined }))],
  [
    'the signal that is made when an inspector looks at it, of a record',
    `/connections/${one.connection_id}`,
    routerOver(() => ({ getConnection: () => one })),
    routerOver(() => ({ getConnection: (_id, ask) => (ask.signal.aborted ? null : one) })),
  ],
  [
    'the text of records that cannot change, of a page',
    PAGE,
    routerOver(() => ({ listConnections: () => kept })),
    routerOver(() => ({ listConnections: () => thawed })),
  ],
]

for (const [what, path, paid, plain] of extras) {
  const tags = new Map()
  for (const handler of [paid, plain]) tags.set(handler, (await handler(request(path))).headers.get('etag'))
  const bodyOf = async (handler) => (await handler(request(path))).json()
  check(
    'routers with and without an optimisation give the same answer',
    await bodyOf(paid),
    await bodyOf(plain),
    1,
    what,
  )
  const asked = (handler) => {
    const asking = request(path)
    if (what.startsWith('tags')) asking.headers.set('if-none-match', tags.get(handler))
    return asking
  }
  const ratios = []
  for (let round = 0; round <= ROUNDS; round++) {
    const spent = []
    for (const handler of round % 2 ? [paid, plain] : [plain, paid]) {
      const from = process.cpuUsage()
      for (let i = 0; i < CALLS / 4; i++) await (await handler(asked(handler))).text()
      spent.push(cpuUs(from))
    }
    const [ofPaid, ofPlain] = round % 2 ? spent : spent.toReversed()
    if (round > 0) ratios.push(ofPlain / ofPaid)
  }
  report([{ what: `CPU without ${what}`, goal: EXTRA_GOAL, found: median(ratios), unit: '×', better: 'higher' }])
}
