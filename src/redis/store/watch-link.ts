/** A link that is dead without a reset, for hosts with a client of node-redis: noticed by asking, left by connecting anew. */
import { createTicker, unref } from '../../async/timer.js'
import { ANYTHING, checkOptions, resolveBounds, type Shape, TIMER_MAX_MS } from '../../contract/options.js'
import { kindOf, type Listener, type NodeRedisClient } from './client.js'

const SILENT_MS = 15_000
/** How often it is asked in that time. */
const LOOKS = 3
/** Longer than a client of node-redis pauses between two attempts, unless its host says so. */
const PAUSE_MS = 2_500

export interface WatchLinkOptions {
  /** A link that has answered nothing for so long is given up. @default 15000 */
  silentMs?: number | undefined
}

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
 * It ends with the client, and keeps no process alive.
 *
 * @throws TypeError for a client that is none of node-redis, RangeError for a `silentMs` that is not a time.
 * @example
 * const client = createClient({ url })
 * watchLink(client)
 */
export function watchLink(client: NodeRedisClient, options: WatchLinkOptions = {}): void {
  checkOptions(options, { silentMs: ANYTHING } satisfies Shape<WatchLinkOptions>)
  const { silentMs } = resolveBounds(options, { silentMs: [SILENT_MS, TIMER_MAX_MS] })
  const kind = kindOf(client)
  if (kind === 'node-redis') {
    watch(client as unknown as Link, silentMs)
    return
  }
  if (kind !== 'node-redis-cluster')
    throw new TypeError('client must be a client or Cluster of node-redis, not of ioredis, which reconnects by itself')
  const cluster = client as unknown as Nodes
  const watched = new WeakSet<Link>()
  const checkLink = () => {
    for (const { client: link } of cluster.nodeByAddress.values()) {
      if (!link || watched.has(link)) continue
      watched.add(link)
      watch(link, silentMs)
    }
  }
  cluster.on('node-connect', checkLink)
  checkLink()
}

function watch(link: Link, silentMs: number): void {
  const ticker = createTicker(checkLink, silentMs / LOOKS)
  /** Since it was heard last. No clock: where the process stood still, it is the one that heard nothing. */
  let looks = 0
  let isProbing = false
  /** It is connected, and not yet ready. Before that the client bounds its attempts itself, and makes others. */
  let isGreeting = true
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
      const timer = unref(setTimeout(resolve, PAUSE_MS))
      for (const event of ['reconnecting', 'ready'])
        link.once(event, () => {
          clearTimeout(timer)
          resolve()
        })
    })

  /**
   * Never beside an attempt that is under way: the client would make two connections over one queue, and give commands the
   * replies to others.
   */
  async function renew() {
    const isUnderWay = !link.isReady
    const end = isUnderWay ? givenUp() : undefined
    link.destroy()
    await end
    heard()
    isGreeting = false
    attempt = link
      .connect()
      .catch(() => {})
      .then(() => {
        attempt = undefined
      })
  }

  function checkLink() {
    if (!link.isOpen) return ticker.stop()
    probe()
    if ((link.isReady || isGreeting) && ++looks > LOOKS) return renew()
  }

  const start = () => {
    heard()
    ticker.start()
  }

  link.on('connect', () => {
    isGreeting = true
    start()
  })
  // Whoever tries again or is told why not is not deaf: how often is the host's own to say.
  for (const event of ['ready', 'reconnecting', 'error'])
    link.on(event, () => {
      isGreeting = false
      heard()
    })
  if (link.isOpen) start()
}
