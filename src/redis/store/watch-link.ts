/** Detects dead connections of node-redis clients (dead without a reset) with `PING`, and reconnects them. */

import { createTicker } from '../../async/timer.js'
import { invalidOption } from '../../contract/checks.js'
import { defineOptions, type Input, readOptions, timer } from '../../contract/options.js'
import { kindOf, type Listener, type NodeRedisClient } from './client.js'

/** Number of checks per `silentMs`. */
const LOOKS = 3
/**
 * Longer than a client pauses between two attempts, whatever its reconnect strategy, in ms: some clients do not report
 * that they gave up an attempt.
 */
const PAUSE_MS = 10_000
/** Methods that end a client of node-redis. */
const ENDINGS = ['destroy', 'close', 'disconnect', 'quit'] as const

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
  once(event: string, listener: Listener): unknown
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
 * Reconnects `client`, or a node's connection of a cluster, when it has not replied for `silentMs`. Commands that wait
 * for a reply there are rejected. node-redis has no option for this: its `socketTimeout` counts writes as activity, and
 * a busy application keeps writing. Clients of ioredis only need their own `socketTimeout`.
 *
 * Watching ends with the client, and does not keep the process alive. A first `connect()` that gets no reply is
 * rejected. A Cluster needs redis 5.9 or later. If you share the client with blocking commands, set `silentMs` to more
 * than their timeout.
 *
 * @throws TypeError for a client that is not of node-redis, RangeError for an invalid `silentMs`.
 * @example
 * const client = createClient({ url })
 * watchLink(client)
 */
export function watchLink(client: NodeRedisClient, options: WatchLinkOptions = {}): void {
  const { silentMs } = readOptions(WatchLinkOptions, options)
  const kind = kindOf(client)
  if (kind === 'node-redis') {
    watch(client as unknown as Link, silentMs)
    return
  }
  if (kind !== 'node-redis-cluster')
    throw new TypeError(
      invalidOption('client', 'a client or Cluster of node-redis (ioredis reconnects on its own)', client),
    )
  const cluster = client as unknown as Nodes
  const watched = new WeakSet<Link>()
  const checkLink = () => {
    for (const { client: link } of cluster.nodeByAddress.values()) {
      if (!link || watched.has(link)) continue
      watched.add(link)
      watch(link, silentMs, true)
    }
  }
  cluster.on('node-connect', checkLink)
  checkLink()
}

/**
 * Returns a function that tells whether the application has ended `link` since this call. A link that is already closed
 * ignores such a call, and would be reopened otherwise.
 */
function watchEnding(link: Link): () => boolean {
  const own = link as unknown as Record<string, unknown>
  const was = Object.getOwnPropertyDescriptors(own)
  let isEnded = false
  for (const name of ENDINGS)
    own[name] = async () => {
      isEnded = true
    }
  return () => {
    for (const name of ENDINGS) {
      delete own[name]
      if (was[name]) Object.defineProperty(own, name, was[name])
    }
    return isEnded
  }
}

/**
 * @param isGreeting The link is connected but not ready. Before that the client itself limits and repeats its attempts.
 */
function watch(link: Link, silentMs: number, isGreeting = false): void {
  const ticker = createTicker(checkLink, silentMs / LOOKS)
  /** Number of checks since the last reply. Not a time: while the process is suspended it receives nothing. */
  let looks = 0
  let isProbing = false
  let wasReady = link.isReady
  /** The reconnect attempt in progress, until it is ready or has failed. */
  let attempt: Promise<void> | undefined

  const heard = () => {
    looks = 0
  }

  function probe() {
    if (isProbing || !link.isReady) return
    isProbing = true
    link.sendCommand(['PING']).then(
      () => {
        isProbing = false
        heard()
      },
      () => {
        isProbing = false
      },
    )
  }

  /**
   * Resolves when the client has given up its own attempt, which may happen only after its pause between two attempts.
   */
  const givenUp = () =>
    attempt ??
    new Promise<void>((resolve) => {
      // Keeps the process alive, as the client does.
      const timer = setTimeout(resolve, PAUSE_MS)
      for (const event of ['reconnecting', 'ready'])
        link.once(event, () => {
          clearTimeout(timer)
          resolve()
        })
    })

  /**
   * Never runs while another attempt is in progress: the client would open two connections with one queue, and mix up
   * the replies of commands. A link that was never ready is left to its owner, who gets the error.
   */
  async function renew() {
    heard()
    if (!link.isOpen) ticker.stop()
    if (!link.isOpen || !wasReady) return link.destroy()
    const end = link.isReady ? undefined : givenUp()
    link.destroy()
    if (end) {
      const isEnded = watchEnding(link)
      await end
      if (isEnded()) return
    }
    isGreeting = false
    attempt = link
      .connect()
      .catch(() => {})
      .then(() => {
        attempt = undefined
      })
  }

  function checkLink() {
    // A link that is being closed waits for all commands in progress, including the `PING`.
    if (!link.isOpen && !link.isReady) return ticker.stop()
    if (link.isOpen) probe()
    if ((link.isReady || isGreeting) && ++looks > LOOKS)
      return renew().catch(() => {
        // A listener of the application has thrown.
      })
  }

  const start = () => {
    heard()
    ticker.start()
  }

  link.on('connect', () => {
    isGreeting = true
    start()
  })
  link.on('ready', () => {
    wasReady ||= link.isOpen
    heard()
    isGreeting = false
  })
  // A client that reconnects or reports an error is not silent: how often is the application's own setting.
  for (const event of ['reconnecting', 'error', 'end'])
    link.on(event, () => {
      // The error concerns a single command or message.
      if (link.isReady) return
      heard()
      isGreeting = false
    })
  if (link.isOpen) start()
}
