/** The client of the command line: whatever `redis` package the host has installed, connected within a bound. */
import { runWithin } from '../async/time-limit.js'
import type { RedisClient } from '../redis/store/client.js'
import { watchLink } from '../redis/store/watch-link.js'
import { load } from './packages.js'

/** Long enough for a handshake across a continent, short enough for somebody who waits. */
const CONNECT_MS = 5_000

/** The store cannot be used now; the message says why, and names no password. */
export class StoreError extends Error {
  override readonly name = 'StoreError'
}

interface ConnectedClient {
  client: RedisClient
  close(): void
}

/** `connecting`, unless the client says first what is wrong: left alone it would try again for ever. */
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

/** The store of `url` without what nobody should read over a shoulder. */
export function publicUrl(url: string): string {
  const { protocol, host } = new URL(url)
  return `${protocol}//${host}`
}

/**
 * Connects to a single server, or to the Cluster that it is part of.
 *
 * @param beside Packages that the same command line needs, too.
 * @throws StoreError, UsageError where there is no client to connect with.
 */
export async function connectStore(url: string, beside: readonly string[] = []): Promise<ConnectedClient> {
  const needs = { command: beside.length > 0 ? 'observe --mcp' : 'observe', packages: ['redis', ...beside] }
  const { createClient, createCluster } = await load('redis', needs, () => import('redis'))
  const single = createClient({ url })
  try {
    let info = ''
    await connected(single, async () => {
      await single.connect()
      info = await single.sendCommand<string>(['INFO', 'cluster'])
    })
    if (!info.includes('cluster_enabled:1')) {
      watchLink(single)
      return { client: single, close: () => single.destroy() }
    }
    single.destroy()
    const { username, password } = new URL(url)
    const defaults = password ? { username: decodeURIComponent(username), password: decodeURIComponent(password) } : {}
    const cluster = createCluster({ rootNodes: [{ url }], defaults })
    await connected(cluster, () => cluster.connect())
    watchLink(cluster)
    return { client: cluster, close: () => cluster.destroy() }
  } catch (cause) {
    if (single.isOpen) single.destroy()
    throw new StoreError(`cannot use the store at ${publicUrl(url)}: ${reasonOf(cause)}`, { cause })
  }
}

/** Why, in words that help whoever started it. */
export function reasonOf(error: unknown): string {
  const causes = error instanceof AggregateError ? error.errors : [error]
  const text = causes
    .map((cause) =>
      cause instanceof Error ? cause.message || String((cause as { code?: string }).code) : String(cause),
    )
    .join(', ')
  if (/NOPERM/.test(text)) return 'this user may not read the deployment (its ACL is in docs/shared-store.md)'
  if (/NOAUTH|WRONGPASS/.test(text)) return 'it wants a user and a password, or others'
  return text
}
