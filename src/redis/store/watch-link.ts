/** A link that is dead without a reset, for hosts with a client of node-redis: noticed by asking, left by connecting anew. */

import { createTicker } from '../../async/timer.js'
import { invalidOption } from '../../contract/checks.js'
import { defineOptions, type Input, readOptions, timer } from '../../contract/options.js'
import { kindOf, type Listener, type NodeRedisClient } from './client.js'

/** How often it is asked in that time. */
const LOOKS = 3
/** Longer than a client pauses between two attempts, whatever its host's strategy: some say nothing when they give one up. */
const PAUSE_MS = 10_000
/** What ends a client of node-redis. */
const ENDINGS = ['destroy', 'close', 'disconnect', 'quit'] as const

export const WatchLinkOptions = defineOptions({
  /** A link that has answered nothing for so long is given up. @default 15000 */
  silentMs: timer(15_000),
})
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
 * Connects `client`, or each node's link of a cluster, anew when it has not answered for `silentMs`; what waits for an
 * answer there is rejected. The options of node-redis do not do that: its `socketTimeout` takes what is written for life,
 * and a host that is alive keeps writing. A client of ioredis needs no more than its own `socketTimeout`.
 *
 * It ends with the client, and keeps no process alive that the client would not. A first `connect()` that is not answered
 * is rejected. A Cluster is watched with redis 5.9 or later; who shares the client with blocking commands
 * is patient for longer than those.
 *
 * @throws TypeError for a client that is none of node-redis, RangeError for a `silentMs` that is not a time.
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
      invalidOption('client', 'a client or Cluster of node-redis (ioredis reconnects by itself)', client),
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
 * Whether the host has ended `link` until this is asked: one that is closed already takes that without a word, and would be
 * opened again.
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

/** @param isGreeting It is connected, and not yet ready. Before that the client bounds its attempts itself, and makes others. */
function watch(link: Link, silentMs: number, isGreeting = false): void {
  const ticker = createTicker(checkLink, silentMs / LOOKS)
  /** Since it was heard last. No clock: where the process stood still, it is the one that heard nothing. */
  let looks = 0
  let isProbing = false
  let wasReady = link.isReady
  /** An attempt of ours, until it is ready or has been given up. */
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

  /** The client has given up its attempt, which it may do at the end of its pause between two. */
  const givenUp = () =>
    attempt ??
    new Promise<void>((resolve) => {
      // It keeps the process alive, as the client would.
      const timer = setTimeout(resolve, PAUSE_MS)
      for (const event of ['reconnecting', 'ready'])
        link.once(event, () => {
          clearTimeout(timer)
          resolve()
        })
    })

  /**
   * Never beside an attempt that is under way: the client would make two connections over one queue, and give commands the
   * replies to others. One that was never ready is its owner's, who hears that it has failed.
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
    // One that is being closed waits for all that is under way, our question as well.
    if (!link.isOpen && !link.isReady) return ticker.stop()
    if (link.isOpen) probe()
    if ((link.isReady || isGreeting) && ++looks > LOOKS)
      return renew().catch(() => {
        // A listener of the host's has thrown.
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
  // Whoever tries again or is told why not is not deaf: how often is the host's own to say.
  for (const event of ['reconnecting', 'error', 'end'])
    link.on(event, () => {
      // Of one command, or of what was heard.
      if (link.isReady) return
      heard()
      isGreeting = false
    })
  if (link.isOpen) start()
}
