// CPU of one scrape, over HTTP, of a relay with 10,000 connections (and a context of each), against a bare node:http that
// serves the same bytes as they stood; and the same at 100 connections, as what is read is to be kept and not counted. The
// scraper is a process of its own, which costs nothing here.
// Run: npm run build && node bench/metrics.mjs. Quote the ratios; absolute times are this machine's.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { Agent, createServer, get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { noopAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createMetrics } from 'relayscope/metrics'
import { toNodeHandler } from 'relayscope/node'
import { check, report } from './report.mjs'

const ROUNDS = 9
const SCRAPES = 300
/** A number that is kept costs the same however many it counts. */
const FLAT = 1.5
const ACCEPT = 'application/openmetrics-text;version=1.0.0'

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1]

async function listen(handler) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

async function metricsOf(connections) {
  const facilities = createMemoryFacilities()
  for (let i = 0; i < connections; i++) {
    const client = { user_id: `user-${i % 500}`, client_id: `client-${i}`, client_type: 'web' }
    await facilities.connections.connect({ ...client, instance_id: 'run' })
    await facilities.contexts.report({ ...client, context_id: `context-${i}`, status: 'active' })
  }
  return createMetrics({ ...memoryComposition(facilities), auth: noopAuth() })
}

/** CPU µs of one request here, while the scraper sends so many one after the other. */
async function costOf(scraper, server) {
  const from = process.cpuUsage()
  scraper.send(server.address().port)
  await once(scraper, 'message')
  const { user, system } = process.cpuUsage(from)
  return (user + system) / SCRAPES
}

/** The scraper: as many requests as it gets on its standard input, over one connection. */
function scrape() {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  process.on('message', async (port) => {
    for (let i = 0; i < SCRAPES; i++)
      await new Promise((resolve, reject) => {
        const asked = get({ host: '127.0.0.1', port, path: '/metrics', agent, headers: { accept: ACCEPT } })
        asked.on('error', reject).on('response', (response) => response.resume().on('end', resolve))
      })
    process.send('done')
  })
  process.on('disconnect', () => process.exit())
}

async function main() {
  const [few, many] = await Promise.all([100, 10_000].map(metricsOf))
  const bytes = Buffer.from(
    await (await many(new Request('http://localhost/metrics', { headers: { accept: ACCEPT } }))).text(),
  )
  const counted = [...bytes.toString().matchAll(/^relayscope_connections\{[^}]*status="connected"[^}]*\} (\d+)/gm)]
  check(
    'a scrape counts every connection',
    counted.reduce((sum, [, count]) => sum + Number(count), 0),
    10_000,
    10_000,
  )
  const servers = {
    'the same bytes, fixed': await listen((_, res) => {
      res.writeHead(200, { 'content-type': ACCEPT, 'content-length': bytes.length }).end(bytes)
    }),
    '100 connections': await listen(toNodeHandler(few)),
    '10,000 connections': await listen(toNodeHandler(many)),
  }
  const scraper = fork(fileURLToPath(import.meta.url), ['scrape'])
  const costs = Object.fromEntries(Object.keys(servers).map((name) => [name, []]))
  for (let round = 0; round <= ROUNDS; round++)
    for (const [name, server] of Object.entries(servers)) {
      const cost = await costOf(scraper, server)
      // Of the first round compilers have their part.
      if (round > 0) costs[name].push(cost)
    }
  console.log(
    `GET /metrics, ${bytes.length} bytes: CPU of the serving process, median of ${ROUNDS} interleaved rounds of ${SCRAPES}`,
  )
  const [fixed, small, large] = Object.values(costs).map(median)
  for (const [name, cost] of Object.entries({ fixed, '100 connections': small, '10,000 connections': large }))
    console.log(`  ${name.padEnd(20)} ${cost.toFixed(0).padStart(6)} us`)
  const about = (what, found, goal) => ({
    what: `a scrape at 10,000 connections, CPU: ${what}`,
    found,
    goal,
    unit: '×',
    better: 'lower',
  })
  report([
    about('against one at 100', large / small, FLAT),
    about('against the same bytes as they stand', large / fixed, null),
  ])
  scraper.kill()
  for (const server of Object.values(servers)) server.close()
}

if (process.argv[2] === 'scrape') scrape()
else {
  await main()
  process.exit()
}
