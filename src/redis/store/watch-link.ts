/** Detects dead connections of node-redis clients (dead without a reset) with `PING`, and reconnects them. */

import { createTicker } from '../../internal/async/timer.js'
import { invalidOption } from '../../internal/contract/checks.js'
import { defineOptions, type Input, readOptions, timer } from '../../internal/contract/options.js'
import { kindOf, type Listener, type NodeRedisClient } from './client.js'

/** Number of checks per `silentMs`. */
const LOOKS = 3

/** Options of `watchLink`. */
export const WatchLinkOptions = defineOptions({
  /** A connection without a reply for this long is closed and reopened, in ms. @default 15000 */
  silentMs: timer(15_000),
})
/** Options of `watchLink`. */
export interface WatchLinkOptions extends Input<typeof WatchLinkOptions> {}

interface Link {
  sendCommand(args: string[]): Promise<unknown>
  on(event: string, listener: Listener): unknown
  destroy(): void
  connect(): Promise<unknown>
  readonly isOpen: boolean
  readonly isReady: boolean
}
interface Nodes {
  on(event: string, listener: Listener): unknown
  readonly nodeByAddress: ReadonlyMap<string, { client?: Link }>
}

/**
 * Reconnects `client`, or a node's connection of a cluster, when it is ready and has not replied for `silentMs`. Commands
 * that wait for a reply there are rejected. node-redis has no option for this: its `socketTimeout` counts writes as
 * activity, and a busy application keeps writing. Clients of ioredis only need their own `socketTimeout`.
 *
 * Does not keep the process alive. A Cluster needs redis 5.9 or later. If you share the client with blocking commands,
 * set `silentMs` to more than their timeout.
 *
 * @returns a function that stops watching. Call it before you end the client: a connection that is being replaced at
 * that moment would be opened again.
 * @throws TypeError for a client that is not of node-redis, RangeError for an invalid `silentMs`.
 * @example
 * const client = createClient({ url })
 * const stopWatching = watchLink(client)
 */
export function watchLink(client: NodeRedisClient, options: WatchLinkOptions = {}): () => void {
  const { silentMs } = readOptions(WatchLinkOptions, options)
  const kind = kindOf(client)
  if (kind === 'node-redis') return watch(client as unknown as Link, silentMs)
  if (kind !== 'node-redis-cluster')
    throw new TypeError(
      invalidOption('client', 'a client or Cluster of node-redis (ioredis reconnects on its own)', client),
    )
  const cluster = client as unknown as Nodes
  const watched = new Map<Link, () => void>()
  let isStopped = false
  const addLinks = () => {
    const links = [...cluster.nodeByAddress.values()].flatMap(({ client: link }) => link ?? [])
    for (const link of watched.keys()) if (!links.includes(link)) watched.delete(link)
    for (const link of links) if (!isStopped && !watched.has(link)) watched.set(link, watch(link, silentMs))
  }
  cluster.on('node-connect', addLinks)
  addLinks()
  return () => {
    isStopped = true
    for (const stop of watched.values()) stop()
    watched.clear()
  }
}

function watch(link: Link, silentMs: number): () => void {
  const ticker = createTicker(check, silentMs / LOOKS)
  /** Number of checks since the last reply. Not a time: while the process is suspended it receives nothing. */
  let looks = 0
  let isProbing = false
  let isStopped = false
  /** Our own connect, until it is ready or has failed. */
  let attempt: Promise<unknown> | undefined

  async function probe(): Promise<void> {
    isProbing = true
    try {
      await link.sendCommand(['PING'])
      looks = 0
    } catch {
      // The client rejects what it cannot send or gave up; silence is counted by `check`.
    } finally {
      isProbing = false
    }
  }

  async function renew(): Promise<void> {
    looks = 0
    link.destroy()
    // Two attempts at once would open two connections with one queue, and mix up the replies of commands.
    await attempt
    if (isStopped) return
    attempt = link.connect().then(
      () => {},
      () => {},
    )
    await attempt
    attempt = undefined
  }

  function check(): void {
    // A link that is being closed waits for all commands in progress, including the `PING`.
    if (!link.isOpen && !link.isReady && !attempt) {
      ticker.stop()
      return
    }
    if (link.isReady && !isProbing) void probe()
    // The client repeats its own attempts; only ours are ended here.
    if (!link.isReady && !attempt) looks = 0
    else if (++looks > LOOKS)
      renew().catch(() => {
        // A listener of the application has thrown.
      })
  }

  link.on('ready', () => {
    looks = 0
    if (!isStopped) ticker.start()
  })
  if (link.isReady) ticker.start()
  return () => {
    isStopped = true
    ticker.stop()
  }
}
