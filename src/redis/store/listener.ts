/**
 * One subscriber connection shared by all users of a client: opened for the first channel, closed with the last user.
 */
import { runWithin } from '../../internal/async/deadline.js'
import { createTicker } from '../../internal/async/timer.js'
import type { RedisClient } from './client.js'
import type { Store } from './store.js'
import { createSubscriptions } from './subscriber.js'

// A message that a listener sends to itself in one shard, to verify that the other channels of that shard work too.

/**
 * Number of consecutive probes that the store accepted but did not deliver after which the subscription counts as dead,
 * whatever the client reports.
 */
const MISSES_MAX = 3
/** A probe counts as evidence for this long after it arrived, in ms. */
const HEARD_MS = 5_000

interface HealthProbe {
  readonly channel: string
  /** Whether a probe arrived recently. Only this shows that messages published in this shard are received. */
  readonly isHeard: boolean
  /** Whether several consecutive probes did not arrive. */
  readonly isLost: boolean
  /**
   * Sends a probe, and records whether the previous one arrived. Never rejects: an unreachable store says nothing about
   * the subscription.
   */
  send(): Promise<void>
  hear(message: string): void
  /** The channel was just subscribed, which counts as evidence. */
  begin(): void
  /** The connection was lost, and with it all evidence. */
  forget(): void
}

export function createEcho(store: Store, channel: string): HealthProbe {
  let [made, sent, heard, misses] = [0, 0, 0, 0]
  let heardAt = Number.NEGATIVE_INFINITY

  const begin = () => {
    heardAt = performance.now()
  }

  return {
    channel,
    get isHeard() {
      return performance.now() - heardAt <= HEARD_MS
    },
    get isLost() {
      return misses >= MISSES_MAX
    },
    async send() {
      const number = ++made
      try {
        await store.command(['SPUBLISH', channel, String(number)], channel)
        // Only after the store accepted the probe: while nothing can be sent, the last probe counts as missed only
        // once.
        misses = sent > heard ? misses + 1 : 0
        sent = number
      } catch {
        // A probe that could not be sent does not count.
      }
    },
    hear(message) {
      heard = Math.max(heard, Number(message) || 0)
      begin()
    },
    begin,
    forget() {
      misses = 0
      heardAt = Number.NEGATIVE_INFINITY
    },
  }
}

/** Interval between probes in each shard, in ms. */
const ECHO_MS = 1_000
/** Maximum wait for a connection that is being reopened, in ms. */
const RENEWED_MS = 2_000

/**
 * Called when the connection was lost (`false`), or is back with its subscriptions renewed (`true`): messages in
 * between were missed.
 */
type OnLink = (isUp: boolean) => void
type Hear = (message: string) => void

/** One user's part of the shared connection. */
interface Listening {
  /**
   * Resolves when `channel` of `shard` is subscribed, within the command timeout. A failed subscription is retried
   * every second.
   */
  subscribe(shard: number, channel: string, hear: Hear): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /**
   * Whether messages published to `channel` are received. Based on evidence, not on the connection state that the
   * client reports.
   */
  isHearing(channel: string): boolean
  /** Resolves when no connection is being reopened, or after two seconds. */
  renewed(): Promise<void>
  /** Ends the part immediately. */
  close(): Promise<void>
}

interface Channel {
  readonly echo: HealthProbe
  readonly hears: Map<OnLink, Hear>
}

type Listener = (store: Store, onLink: OnLink) => Listening

const listeners = new WeakMap<RedisClient, Listener>()

/**
 * Returns a part of the subscriber connection of the store's client. The connection is opened for the first channel.
 */
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
      for (const receive of [...(channels.get(channel)?.hears.values() ?? [])]) receive(message)
    },
    onLink(isUp) {
      if (!isUp) for (const echo of echoes.values()) echo.forget()
      for (const onLink of [...parts]) onLink(isUp)
    },
  })

  /** Returns the probe of a shard and subscribes to it. */
  function echoIn(store: Store, shard: number): HealthProbe {
    const channel = store.key(shard, 'echo', id)
    const known = echoes.get(channel)
    if (known) return known
    const echo = createEcho(store, channel)
    echoes.set(channel, echo)
    // A failure is retried with the next tick.
    subscriptions.subscribe(channel, store.commandTimeoutMs).then(echo.begin, () => {})
    ticker.start()
    return echo
  }

  async function tick(): Promise<void> {
    // Opening a new connection is cheaper than finding the cause.
    if ([...echoes.values()].some(({ isLost }) => isLost)) renewing = subscriptions.renew()
    await renewing
    renewing = undefined
    // Not awaited: a subscription that gets no reply must not delay the probes.
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
        // A connection opened now would never be closed.
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
