/**
 * What the operators' questions cost over 1 k, 100 k and 1 M records in memory, each route as a whole request against the
 * same at the smallest size; and what a watch of 500 rows costs while nothing changes, and while 1 % changes a second, for
 * one watcher and for thirty-two, the most of one principal. Build first; run with
 * `node --expose-gc --max-old-space-size=8000 bench/questions.mjs [sizes…]`.
 */
import { createDiagnosticsRouter, noopAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'

const SIZES = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [1_000, 100_000, 1_000_000]
const ROUTES = [
  '/delivery/commands?limit=50',
  '/delivery/commands?state=waiting&limit=50',
  '/delivery/commands?overdue=true&limit=50',
  '/delivery/tenants?scope_id=user-1',
  '/rpc/summary',
  '/rpc/pending?limit=50',
  '/connections/churn',
  '/connections?node_id=node-1&limit=50',
  '/connections?ended_reason=client_left&limit=50',
  '/sites?limit=50',
  '/sessions?limit=50',
  '/subscriptions',
  '/sources',
]
const WATCH_SECONDS = 5

/** CPU ms since `from`: on a busy machine waiting must not count. */
function cpuMs(from) {
  const { user, system } = process.cpuUsage(from)
  return (user + system) / 1_000
}

async function createHost(size) {
  const most = { maxConnections: size, maxConnectionsPerUser: size, maxDisconnected: size, nodeId: 'node-1' }
  const facilities = createMemoryFacilities({
    connections: most,
    rpc: { maxPending: size, maxPendingPerUser: size },
    dispatcher: { maxTracked: size, maxTrackedPerUser: size, capacity: size },
    sites: { maxSites: size, maxSitesPerUser: size },
    sessions: { maxSessions: size, maxSessionsPerUser: size },
  })
  const { connections, rpc, dispatcher, sites, sessions } = facilities
  for (let i = 0; i < size; i++) {
    const user_id = `user-${i % Math.max(1, size / 10)}`
    const client = { user_id, client_id: `client-${i}` }
    const { connection_id } = await connections.connect({ ...client, instance_id: 'i', client_type: 'web' })
    if (i % 100 === 0) await connections.disconnect(connection_id, 'client_left')
    const { result } = await rpc.open({ ...client, action: 'a', timeoutMs: 86_400_000 })
    result.catch(() => {})
    await dispatcher.dispatch({ ...client, command_id: 'k', action: 'a', deadlineMs: 86_400_000 })
    if (i >= 20_000) continue
    await sites.put({ site_id: `site-${i}`, owner: user_id, mode: 'observe' })
    await sessions.open({ site_id: `site-${i}`, owner: user_id })
  }
  const router = createDiagnosticsRouter({ ...memoryComposition(facilities), auth: noopAuth(), onError: null })
  return { facilities, router }
}

const request = (path) => new Request(`http://localhost${path}`)

/** CPU µs of one request in its least disturbed round. */
async function timeOf(router, path) {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 12; round++) {
    const from = process.cpuUsage()
    for (let i = 0; i < 100; i++) {
      const { status, body } = await router.reply(request(path))
      if (status !== 200) throw new Error(`${path}: ${status} ${body}`)
    }
    if (round >= 4) best = Math.min(best, cpuMs(from) * 10)
  }
  return best
}

/** CPU ms a second that watchers of one view of 500 rows cost, while `act` is called once a second. */
async function watchCost(router, watchers, act) {
  const bodies = await Promise.all(
    Array.from({ length: watchers }, async () => {
      const { body } = await router.reply(request(`/watch?view=${encodeURIComponent('/connections?limit=500')}`))
      return body
    }),
  )
  const readers = bodies.map(async (body) => {
    for (let chunk = await body.next(); !chunk.done; chunk = await body.next());
  })
  await new Promise((resolve) => setTimeout(resolve, 1_500))
  const from = process.cpuUsage()
  let own = 0
  for (let second = 0; second < WATCH_SECONDS; second++) {
    const before = process.cpuUsage()
    await act()
    own += cpuMs(before)
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  const cost = (cpuMs(from) - own) / WATCH_SECONDS
  for (const body of bodies) await body.return()
  await Promise.all(readers)
  return cost
}

const base = new Map()
for (const size of SIZES) {
  globalThis.gc?.()
  const { facilities, router } = await createHost(size)
  console.log(`${size} connections, calls and commands`)
  for (const path of ROUTES) {
    const us = await timeOf(router, path)
    if (!base.has(path)) base.set(path, us)
    console.log(`  ${path.padEnd(48)} ${us.toFixed(1).padStart(8)} µs   ${(us / base.get(path)).toFixed(2)} × smallest`)
  }
  if (size === SIZES[0]) {
    const idle = await watchCost(router, 0, () => {})
    const { items } = JSON.parse((await router.reply(request('/connections?limit=500'))).body)
    const change = async () => {
      for (const { connection_id } of items.slice(10, 15)) await facilities.connections.heartbeat(connection_id)
    }
    for (const watchers of [1, 32]) {
      const nothing = (await watchCost(router, watchers, () => {})) - idle
      const some = (await watchCost(router, watchers, change)) - idle
      console.log(
        `  watch of 500 rows, ${String(watchers).padStart(2)} watchers: ${nothing.toFixed(2)} ms CPU/s while nothing changes, ${some.toFixed(2)} ms/s while 1 % does`,
      )
    }
  }
  await facilities.close()
}
