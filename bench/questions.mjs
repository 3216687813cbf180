/**
 * What the operators' questions cost over 100 k and 1 M records in memory, each route as a whole request, compared with
 * the same over 1 k records, and what a watch costs (`bench/watch.mjs`). Build first; run with `node --expose-gc
 * --max-old-space-size=8000 bench/questions.mjs [--redis] [sizes…]`. With `--redis` the records are in a Redis that the
 * bench starts, and the CPU of the observer and of the store are reported separately.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createClient } from 'redis'
import { createDiagnosticsRouter } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createRedisFacilities, redisComposition } from 'relayscope/redis'
import { check, report } from './report.mjs'
import { measureWatches, namedAuth } from './watch.mjs'

const IN_REDIS = process.argv[2] === '--redis'
const GIVEN = process.argv.slice(IN_REDIS ? 3 : 2).map(Number)
const SIZES = GIVEN.length > 0 ? GIVEN : [1_000, 100_000, ...(IN_REDIS ? [] : [1_000_000])]
/** Records that are written at once. */
const TOGETHER = IN_REDIS ? 50 : 1
const ROUNDS = IN_REDIS ? 6 : 12
const REQUESTS = IN_REDIS ? 20 : 100
/**
 * Pending calls: their caller checks for each reply once a second, so more calls in a store would measure that node's
 * load.
 */
const CALLS_MAX = IN_REDIS ? 2_000 : Number.POSITIVE_INFINITY
const ROUTES = [
  '/delivery/commands?limit=50',
  '/delivery/commands?state=waiting&limit=50',
  '/delivery/commands?overdue=true&limit=50',
  '/delivery/commands?order=oldest&limit=50',
  '/delivery/why?user_id=user-7&client_id=client-7&command_id=k',
  '/delivery/summary',
  '/delivery/churn',
  '/delivery/mailboxes?limit=50',
  '/delivery/tenants?scope_id=user-1',
  '/rpc/summary',
  '/rpc/pending?limit=50',
  '/rpc/ended?limit=50',
  '/connections/churn',
  '/connections/events?limit=50',
  '/connections?limit=50',
  '/connections?node_id=node-1&limit=50',
  '/connections?ended_reason=client_left&limit=50',
  '/sites?limit=50',
  '/sessions?limit=50',
  '/subscriptions',
  '/sources',
]
/** Answers over many records, each reported by itself. Client 1 is the same one in every size. */
const AGGREGATES = [
  '/search?q=user-1',
  '/findings?limit=50',
  '/findings/summary',
  '/delivery/why?user_id=user-1&client_id=client-1&command_id=k',
]
/** An aggregate reads thousands of records: fewer requests make a round. */
const AGGREGATE_REQUESTS = 2

/** CPU ms since `from`: on a busy machine waiting must not count. */
function cpuMs(from) {
  const { user, system } = process.cpuUsage(from)
  return (user + system) / 1_000
}

/** A Redis of its own, empty, with a client. */
async function startRedis() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  const given = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', given, { stdio: 'ignore' })
  process.on('exit', () => server.kill('SIGKILL'))
  // Tries again until the server is up.
  const client = createClient({ url: `redis://127.0.0.1:${port}` }).on('error', () => {})
  await client.connect()
  return {
    client,
    /** CPU ms that the store has taken. */
    async cpuMs() {
      const info = await client.sendCommand(['INFO', 'cpu'])
      const of = (name) => Number(new RegExp(`^${name}:(.*)`, 'm').exec(info)[1])
      return (of('used_cpu_user') + of('used_cpu_sys')) * 1_000
    },
    async close() {
      client.destroy()
      server.kill('SIGKILL')
      await once(server, 'exit')
    },
  }
}

async function createHost(size) {
  const most = {
    maxConnections: size,
    maxConnectionsPerUser: size,
    maxDisconnected: size,
    heartbeatTimeoutMs: 86_400_000,
  }
  const options = {
    connections: IN_REDIS ? most : { ...most, nodeId: 'node-1' },
    rpc: { maxPending: size, maxPendingPerUser: size },
    dispatcher: { maxTracked: size, maxTrackedPerUser: size, capacity: size },
    sites: { maxSites: size, maxSitesPerUser: size },
    sessions: { maxSessions: size, maxSessionsPerUser: size },
  }
  const redis = IN_REDIS ? await startRedis() : undefined
  const at = redis && { client: redis.client, deploymentId: 'bench' }
  const facilities = at
    ? createRedisFacilities({ ...at, nodeId: 'node-1', commandTimeoutMs: 60_000, ...options })
    : createMemoryFacilities(options)
  const { connections, rpc, dispatcher, sites, sessions } = facilities
  async function add(i) {
    const user_id = `user-${i % Math.max(1, size / 10)}`
    const client = { user_id, client_id: `client-${i}` }
    const { connection_id } = await connections.connect({ ...client, instance_id: 'i', client_type: 'web' })
    if (i % 10 === 0) await connections.disconnect(connection_id, 'client_left')
    if (i < CALLS_MAX) {
      const { result } = await rpc.open({ ...client, action: 'a', timeout_ms: 86_400_000 })
      result.catch(() => {})
    }
    await dispatcher.dispatch({ ...client, command_id: 'k', action: 'a', deadline_ms: 86_400_000 })
    if (i >= 20_000) return
    await sites.put({ site_id: `site-${i}`, owner: user_id, mode: 'observe' })
    await sessions.open({ site_id: `site-${i}`, owner: user_id })
  }
  for (let i = 0; i < size; i += TOGETHER)
    await Promise.all(Array.from({ length: Math.min(TOGETHER, size - i) }, (_, n) => add(i + n)))
  const composition = at ? redisComposition(at) : memoryComposition(facilities)
  const router = createDiagnosticsRouter({ ...composition, auth: namedAuth, onError: null })
  async function close() {
    await facilities.close()
    await redis?.close()
  }
  return { facilities, router, redis, close }
}

const request = (path) => new Request(`http://localhost${path}`)

/** CPU µs of a request, in a round of some: of this process, and of the store. */
async function roundOf({ router, redis }, path, requests) {
  const stored = (await redis?.cpuMs()) ?? 0
  const from = process.cpuUsage()
  for (let i = 0; i < requests; i++) {
    const { status, body } = await router.reply(request(path))
    if (status !== 200) throw new Error(`${path}: ${status} ${body}`)
  }
  const own = (cpuMs(from) * 1_000) / requests
  const store = ((((await redis?.cpuMs()) ?? 0) - stored) * 1_000) / requests
  return { all: own + store, own, store }
}

/** The least disturbed round of each of `hosts`, which take turns: what disturbs one disturbs the other. */
async function bestOf(hosts, path, requests = REQUESTS) {
  const best = hosts.map(() => ({ all: Number.POSITIVE_INFINITY }))
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, host] of hosts.entries()) {
      const found = await roundOf(host, path, requests)
      if (round >= ROUNDS / 4 && found.all < best[i].all) best[i] = found
    }
  return best
}

/** The router counts what was added. */
async function checkCounts(host, size) {
  const { body } = await host.router.reply(request('/connections/count?status=disconnected'))
  check(`of ${size} connections a tenth is disconnected`, JSON.parse(body).total, size / 10, size)
}

async function saidBy({ router }, path) {
  const { items, has_more } = JSON.parse((await router.reply(request(path))).body)
  return items ? `${items.length} items${has_more ? ', and more' : ''}` : ''
}

/** The largest growth of any route from the smallest size to this one. */
const GOAL = 1.5
const [least = 0, ...greater] = SIZES
const small = await createHost(least)
await checkCounts(small, least)
if (!IN_REDIS) {
  const { items } = JSON.parse((await small.router.reply(request('/connections?limit=500'))).body)
  const ids = items.slice(10, 15).map(({ connection_id }) => connection_id)
  await measureWatches(small.router, small.facilities, ids)
}
for (const size of greater) {
  const large = await createHost(size)
  await checkCounts(large, size)
  globalThis.gc?.()
  console.log(`${size} connections, calls and commands, compared with ${least} in the same process, alternating`)
  let worst = { path: '', ratio: 0 }
  for (const path of ROUTES) {
    const [before, { all, own, store }] = await bestOf([small, large], path)
    const ratio = all / before.all
    if (ratio > worst.ratio) worst = { path, ratio }
    const parts = IN_REDIS ? ` (${own.toFixed(0)} + ${store.toFixed(0)} of the store)` : ''
    console.log(
      `  ${path.padEnd(48)} ${all.toFixed(1).padStart(8)} µs   ${ratio.toFixed(2)} ×   ${await saidBy(large, path)}${parts}`,
    )
  }
  for (const path of AGGREGATES) {
    const [before, { all }] = await bestOf([small, large], path, AGGREGATE_REQUESTS)
    console.log(`  ${path.padEnd(72)} ${all.toFixed(1).padStart(8)} µs   ${(all / before.all).toFixed(2)} ×`)
    const [route] = path.split('?')
    const growth = `growth of ${route} from ${least} to ${size}`
    report([{ what: growth, goal: null, found: all / before.all, unit: '×', better: 'lower' }])
  }
  const what = `greatest growth from ${least} to ${size}, ${worst.path}`
  report([{ what, goal: GOAL, found: worst.ratio, unit: '×', better: 'lower' }])
  await large.close()
}
await small.close()
