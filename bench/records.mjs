/**
 * Hosts with many records for `questions` and `answers`, in memory or in a Redis of its own, and what their requests cost:
 * CPU of this process and of the store.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createClient } from 'redis'
import { createDiagnosticsRouter, noopAuth } from 'relayscope'
import { createMemoryFacilities, memoryComposition } from 'relayscope/memory'
import { createRedisFacilities, redisComposition } from 'relayscope/redis'

/**
 * Pending calls of a store: their caller checks for each reply once a second, so more of them would measure that node's
 * load.
 */
const STORED_CALLS = 2_000

/** CPU ms since `from`: on a busy machine waiting must not count. */
export function cpuMs(from) {
  const { user, system } = process.cpuUsage(from)
  return (user + system) / 1_000
}

/** A Redis of its own, empty, with a client. */
export async function startRedis() {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address()
  probe.close()
  await once(probe, 'close')
  const given = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  const server = spawn('redis-server', given, { stdio: 'ignore' })
  process.on('exit', () => server.kill('SIGKILL'))
  // Tries again until the server is up.
  const url = `redis://127.0.0.1:${port}`
  const client = createClient({ url }).on('error', () => {})
  await client.connect()
  return {
    url,
    client,
    /** CPU ms that the store has taken. */
    async cpuMs() {
      const info = await client.sendCommand(['INFO', 'cpu'])
      const of = (name) => Number(new RegExp(`^${name}:(.*)`, 'm').exec(info)[1])
      return (of('used_cpu_user') + of('used_cpu_sys')) * 1_000
    },
    /** Commands that the store has run, those of scripts included. */
    async commands() {
      const info = await client.sendCommand(['INFO', 'commandstats'])
      const calls = [...info.matchAll(/^cmdstat_(?!info)[^:]+:calls=(\d+)/gm)]
      return calls.reduce((sum, [, number]) => sum + Number(number), 0)
    },
    async close() {
      client.destroy()
      server.kill('SIGKILL')
      await once(server, 'exit')
    },
  }
}

/** A host with `size` connections and commands, a tenth of the connections disconnected, and a fifth of the calls ended. */
export async function createHost(size, { isInRedis }) {
  const most = {
    maxConnections: size,
    maxConnectionsPerUser: size,
    maxDisconnected: size,
    heartbeatTimeoutMs: 86_400_000,
  }
  const options = {
    connections: isInRedis ? most : { ...most, nodeId: 'node-1' },
    rpc: { maxPending: size, maxPendingPerUser: size },
    dispatcher: { maxTracked: size, maxTrackedPerUser: size, capacity: size },
    sites: { maxSites: size, maxSitesPerUser: size },
    sessions: { maxSessions: size, maxSessionsPerUser: size },
  }
  const redis = isInRedis ? await startRedis() : undefined
  const at = redis && { client: redis.client, deploymentId: 'bench' }
  const facilities = at
    ? createRedisFacilities({ ...at, nodeId: 'node-1', commandTimeoutMs: 60_000, ...options })
    : createMemoryFacilities(options)
  const { connections, rpc, dispatcher, sites, sessions } = facilities
  const calls = isInRedis ? STORED_CALLS : size
  async function add(i) {
    const user_id = `user-${i % Math.max(1, size / 10)}`
    const client = { user_id, client_id: `client-${i}` }
    const { connection_id } = await connections.connect({ ...client, instance_id: 'i', client_type: 'web' })
    if (i % 10 === 0) await connections.disconnect(connection_id, 'client_left')
    if (i < calls) {
      const { correlation_id, result } = await rpc.open({ ...client, action: 'a', timeout_ms: 86_400_000 })
      result.catch(() => {})
      if (i % 5 === 0) await rpc.settle(correlation_id, { ok: true, result: null })
    }
    await dispatcher.dispatch({ ...client, command_id: 'k', action: 'a', deadline_ms: 86_400_000 })
    if (i >= 20_000) return
    await sites.put({ site_id: `site-${i}`, owner: user_id, mode: 'observe' })
    await sessions.open({ site_id: `site-${i}`, owner: user_id })
  }
  const together = isInRedis ? 50 : 1
  for (let i = 0; i < size; i += together)
    await Promise.all(Array.from({ length: Math.min(together, size - i) }, (_, n) => add(i + n)))
  const composition = at ? redisComposition({ ...at, commandTimeoutMs: 60_000 }) : memoryComposition(facilities)
  const router = createDiagnosticsRouter({ ...composition, auth: noopAuth(), onError: null, deadlineMs: 60_000 })
  async function close() {
    await facilities.close()
    await redis?.close()
  }
  return { facilities, router, redis, close }
}

export const request = (path) => new Request(`http://localhost${path}`)

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

/** The least disturbed of `rounds` of each of `hosts`, which take turns: what disturbs one disturbs the other. */
export async function bestOf(hosts, path, { requests, rounds }) {
  const best = hosts.map(() => ({ all: Number.POSITIVE_INFINITY }))
  for (let round = 0; round < rounds; round++)
    for (const [i, host] of hosts.entries()) {
      const found = await roundOf(host, path, requests)
      if (round >= rounds / 4 && found.all < best[i].all) best[i] = found
    }
  return best
}
