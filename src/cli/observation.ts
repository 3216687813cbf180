/** The observation service: a router over one deployment of a store, served until it receives a signal. */

import { createDashboard } from '../dashboard/dashboard.js'
import { runWithin } from '../internal/async/deadline.js'
import { createDiagnosticsRouter } from '../internal/diagnostics/router.js'
import { AdminKeyRequiredError, resolveAdminAuth } from '../internal/http/auth.js'
import { createFileSpillStore } from '../internal/spill/object-store.js'
import { createMetrics } from '../metrics/metrics.js'
import { redisComposition } from '../redis/composition/inspectors.js'
import type { RedisClient } from '../redis/store/client.js'
import { createStore } from '../redis/store/store.js'
import { watchLink } from '../redis/store/watch-link.js'
import { MOUNT_PATHS, type ObserveArguments, UsageError } from './arguments.js'
import { load, loadMcp, SDK } from './sdk.js'
import { PortError, reasonOf, serve, underOneRoof } from './serve.js'

// The client of the command line: whatever `redis` package the host has installed, connected within a bound.

/** Timeout of a connect: enough for a handshake between continents. */
const CONNECT_MS = 5_000

/** The store cannot be used now; the message says why, and names no password. */
class StoreError extends Error {
  override readonly name = 'StoreError'
}

interface ConnectedClient {
  client: RedisClient
  close(): void
}

/** Rejects with the client's first error: by default the client would retry indefinitely. */
async function connected(
  client: { on(event: 'error', listener: (error: unknown) => void): unknown },
  connecting: () => Promise<unknown>,
) {
  const broken = new AbortController()
  // Stays when the connection stands: without a listener a lost one would end the process.
  client.on('error', (error) => broken.abort(error))
  const late = () => new Error(`no answer within ${CONNECT_MS} ms`)
  await runWithin(connecting, { ms: CONNECT_MS, late, signal: broken.signal })
}

/** The URL of the store without credentials and query. */
function publicUrl(url: string): string {
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}

/**
 * Connects to a single server, or to the Cluster that it is part of.
 *
 * @param extra Other packages that the same command line needs.
 * @throws StoreError if the connect fails, UsageError if the client package is not installed.
 */
export async function connectStore(url: string, extra: readonly string[] = []): Promise<ConnectedClient> {
  const requirements = { command: extra.length > 0 ? 'observe --mcp' : 'observe', packages: ['redis', ...extra] }
  const { createClient, createCluster } = await load('redis', requirements, () => import('redis'))
  const single = createClient({ url })
  try {
    let info = ''
    await connected(single, async () => {
      await single.connect()
      info = await single.sendCommand<string>(['INFO', 'cluster'])
    })
    if (!info.includes('cluster_enabled:1')) {
      const stopWatching = watchLink(single)
      return {
        client: single,
        close() {
          stopWatching()
          single.destroy()
        },
      }
    }
    single.destroy()
    const { username, password } = new URL(url)
    const defaults = password ? { username: decodeURIComponent(username), password: decodeURIComponent(password) } : {}
    const cluster = createCluster({ rootNodes: [{ url }], defaults })
    await connected(cluster, () => cluster.connect())
    const stopWatching = watchLink(cluster)
    return {
      client: cluster,
      close() {
        stopWatching()
        cluster.destroy()
      },
    }
  } catch (cause) {
    if (single.isOpen) single.destroy()
    throw new StoreError(`cannot use the store at ${publicUrl(url)}: ${reasonOfStore(cause)}`, { cause })
  }
}

/** Why the store cannot be used, in words that help the person who started it. */
function reasonOfStore(error: unknown): string {
  const text = reasonOf(error)
  if (/NOPERM/.test(text)) return 'this user may not read the deployment (its ACL is in docs/redis-keys.md)'
  if (/NOAUTH|WRONGPASS/.test(text)) return 'it wants a user and a password, or others'
  return text
}

interface Observation {
  url: string
  /** The page that shows what it answers; `null` for none. */
  dashboard: string | null
  /** Where a scraper finds its numbers; `null` for nowhere. */
  metrics: string | null
  /** Where an agent finds its tools; `null` for nowhere. */
  mcp: string | null
  /** Warnings for the operator; one sentence each. */
  warnings: string[]
  /** Ends within 5 s, whatever clients and the store do. @returns how many connections were cut off. */
  close(): Promise<{ aborted: number }>
}

// With what the process takes besides it ends within 5 s.
const CLOSE_TIMEOUT_MS = 4_000

/**
 * Starts the service. Nothing is opened before the arguments and the administrator key are known to fit.
 *
 * @throws UsageError, StoreError; an Error that names the port when it cannot be bound.
 */
export async function startObservation(
  options: ObserveArguments,
  env: Record<string, string | undefined>,
): Promise<Observation> {
  const { host, port, prefix, deployment, spill, legacy, without } = options
  const auth = authFor(host, env)
  const warnings: string[] = []
  const hasKey = Boolean(env.SERVICE_ADMIN_KEY?.trim())
  if (!hasKey) warnings.push('SERVICE_ADMIN_KEY is not set: every program of this machine may ask')
  const createMcp = options.mcp ? (await loadMcp()).createMcp : null
  const { client, close } = await connectStore(options.redis, options.mcp ? [SDK] : [])
  try {
    const store = createStore({ client, deploymentId: deployment })
    const key = store.key(0, 'shards')
    if ((await store.command(['GET', key], key)) === null)
      warnings.push(
        `nothing of deployment "${deployment}" is in this store: no node has written yet, or it has another name`,
      )
    const composition = redisComposition({
      client,
      deploymentId: deployment,
      ...(spill === undefined ? {} : { spill: createFileSpillStore({ directory: spill }) }),
      ...(legacy === undefined ? {} : { legacy }),
      ...Object.fromEntries(without.map((name) => [name, false])),
    })
    const router = createDiagnosticsRouter({ ...composition, auth, prefix, cors: options.cors })
    const allowedHosts = hasKey ? undefined : ['loopback']
    const { traceUrl } = options
    const dashboard = options.dashboard
      ? createDashboard({ api: router.prefix, prefix: MOUNT_PATHS.dashboard, traceUrl })
      : null
    const metrics = options.metrics ? createMetrics({ ...composition, auth, prefix: MOUNT_PATHS.metrics }) : null
    const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host
    const allowedNames = ['loopback', name, ...options.allowHosts]
    const mcp = createMcp?.({ router, prefix: MOUNT_PATHS.mcp, allowedHosts: allowedNames }) ?? null
    const others = [dashboard, metrics, mcp].filter((other) => other !== null)
    const server = await serve(underOneRoof(router, others), {
      host,
      port,
      allowedHosts,
      closeTimeoutMs: CLOSE_TIMEOUT_MS,
    })
    return {
      url: `${server.url}${router.prefix}/`,
      dashboard: dashboard && `${server.url}${dashboard.prefix}/`,
      metrics: metrics && server.url + metrics.prefix,
      mcp: mcp && server.url + mcp.prefix,
      warnings,
      async close() {
        const ended = await server.close()
        close()
        return ended
      },
    }
  } catch (error) {
    close()
    if (error instanceof PortError) throw error
    if (error instanceof TypeError || error instanceof RangeError) throw new UsageError(error.message)
    throw new StoreError(`cannot use the store at ${publicUrl(options.redis)}: ${reasonOfStore(error)}`, {
      cause: error,
    })
  }
}

function authFor(host: string, env: Record<string, string | undefined>) {
  try {
    return resolveAdminAuth({ strict: true, host, env })
  } catch (error) {
    if (!(error instanceof AdminKeyRequiredError || error instanceof TypeError)) throw error
    throw new UsageError(
      error instanceof AdminKeyRequiredError
        ? `SERVICE_ADMIN_KEY must be set to listen on ${host}, which other machines may reach`
        : error.message,
    )
  }
}
