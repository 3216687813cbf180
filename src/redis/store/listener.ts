/** The one connection over which all that share a client hear their channels: opened for the first, closed with the last. */
import { runWithin } from '../../async/time-limit.js'
import { createTicker } from '../../async/timer.js'
import type { RedisClient } from './client.js'
import { createEcho, type HealthProbe } from './echo.js'
import type { Store } from './store.js'
import { createSubscriptions } from './subscriptions.js'

/** How often it asks itself in each shard whether it hears. */
const ECHO_MS = 1_000
/** Longest wait for a connection that is being opened anew. */
const RENEWED_MS = 2_000

/** The link was lost (`false`), or stands again with its subscriptions renewed (`true`): what came in between was missed. */
type OnLink = (isUp: boolean) => void
type Hear = (message: string) => void

/** What one of those hears. */
export interface Listening {
  /** Resolves when `channel`, one of `shard`, is subscribed, within the time of a command. What failed is tried again every second. */
  subscribe(shard: number, channel: string, hear: Hear): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Whether what is published to `channel` would be heard: evidence, and not what the client believes of its link. */
  isHearing(channel: string): boolean
  /** Resolves when no connection is being opened anew, or after two seconds. */
  renewed(): Promise<void>
  /** Ends it at once. */
  close(): Promise<void>
}

interface Channel {
  readonly echo: HealthProbe
  readonly hears: Map<OnLink, Hear>
}

type Listener = (store: Store, onLink: OnLink) => Listening

const listeners = new WeakMap<RedisClient, Listener>()

/** A part of the connection beside the store's client, which is opened when the first channel is subscribed. */
export function listen(store: Store, onLink: OnLink): Listening {
  const listener = listeners.get(store.client) ?? createListener(store.client)
  listeners.set(store.client, listener)
  return listener(store, onLink)
}

function createListener(client: RedisClient): Listener {
  const id = crypto.randomUUID()
  const parts = new Set<OnLink>()
  const channels = new Map<string, Channel>()
  const echoes = new Map<string, HealthProbe>()
  const ticker = createTicker(tick, ECHO_MS)
  let renewing: Promise<void> | undefined

  const subscriptions = createSubscriptions({
    client,
    onMessage(channel, message) {
      echoes.get(channel)?.hear(message)
      for (const hear of [...(channels.get(channel)?.hears.values() ?? [])]) hear(message)
    },
    onLink(isUp) {
      if (!isUp) for (const echo of echoes.values()) echo.forget()
      for (const onLink of [...parts]) onLink(isUp)
    },
  })

  /** The echo of a shard, which is listened for from now on. */
  function echoIn(store: Store, shard: number): HealthProbe {
    const channel = store.key(shard, 'echo', id)
    const known = echoes.get(channel)
    if (known) return known
    const echo = createEcho(store, channel)
    echoes.set(channel, echo)
    // What fails is tried again with the next.
    subscriptions.subscribe(channel, store.commandTimeoutMs).then(echo.begin, () => {})
    ticker.start()
    return echo
  }

  async function tick(): Promise<void> {
    // A new one is cheaper than knowing why.
    if ([...echoes.values()].some(({ isLost }) => isLost)) renewing = subscriptions.renew()
    await renewing
    renewing = undefined
    // Not waited for: what is silent holds up no echo.
    void subscriptions.retry()
    await Promise.all([...echoes.values()].map((echo) => echo.send()))
  }

  function add(channel: string, echo: HealthProbe): Channel {
    const added = { echo, hears: new Map() }
    channels.set(channel, added)
    return added
  }

  async function leave(onLink: OnLink, channel: string): Promise<void> {
    const hears = channels.get(channel)?.hears
    if (!hears?.delete(onLink) || hears.size > 0) return
    channels.delete(channel)
    await subscriptions.unsubscribe(channel)
  }

  return (store, onLink) => {
    let closed = false
    return {
      async subscribe(shard, channel, hear) {
        // A connection opened now would outlive whoever could close it.
        if (closed) return
        parts.add(onLink)
        const { hears } = channels.get(channel) ?? add(channel, echoIn(store, shard))
        hears.set(onLink, hear)
        await subscriptions.subscribe(channel, store.commandTimeoutMs)
      },
      unsubscribe: (channel) => leave(onLink, channel),
      isHearing: (channel) => subscriptions.has(channel) && channels.get(channel)?.echo.isHeard === true,
      renewed: () => runWithin(async () => renewing, { ms: RENEWED_MS, late: () => undefined }).catch(() => {}),
      async close() {
        closed = true
        if (!parts.delete(onLink)) return
        if (parts.size > 0) {
          for (const channel of [...channels.keys()]) leave(onLink, channel).catch(() => {})
          return
        }
        ticker.stop()
        channels.clear()
        echoes.clear()
        await subscriptions.close()
      },
    }
  }
}
