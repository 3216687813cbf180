/** Channels that stay subscribed on one connection, through reconnects: for the listener that uses it. */
import type { RedisClient } from './client.js'
import { openSubscriber, type Subscriber } from './subscriber.js'

/** Number of channels that are resubscribed at the same time. */
const BATCH = 100

interface SubscriptionsOptions {
  client: RedisClient
  onMessage(channel: string, message: string): void
  /** Called when the connection was lost (`false`), or is back with its subscriptions renewed (`true`). */
  onLink(isUp: boolean): void
}

interface Subscriptions {
  /**
   * Resolves when `channel` is subscribed; the first one opens the connection. After a failure or a timeout of
   * `timeoutMs` the channel stays wanted.
   */
  subscribe(channel: string, timeoutMs: number): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Whether `channel` is known to be subscribed on the current connection. */
  has(channel: string): boolean
  /** Retries failed subscriptions, and calls `onLink(true)` if some of them succeed. Never rejects. */
  retry(): Promise<void>
  /** Reopens the connection. Never rejects. */
  renew(): Promise<void>
  close(): Promise<void>
}

export function createSubscriptions({ client, onMessage, onLink }: SubscriptionsOptions): Subscriptions {
  /** Wanted channels with their timeout in ms. */
  const wanted = new Map<string, number>()
  const subscribed = new Set<string>()
  /** Channels whose first subscription is in progress: only its caller gets the result. */
  const starting = new Set<string>()
  let subscriber: Subscriber | undefined

  function opened(): Subscriber {
    if (subscriber) return subscriber
    const own = openSubscriber({
      client,
      onMessage(channel, message) {
        if (subscriber === own) onMessage(channel, message)
      },
      onLink(isUp) {
        if (subscriber !== own) return
        if (isUp) void relink()
        else lose()
      },
    })
    subscriber = own
    return own
  }

  function lose() {
    subscribed.clear()
    onLink(false)
  }

  async function subscribe([channel, timeoutMs]: readonly [string, number]): Promise<void> {
    const by = opened()
    await by.subscribe(channel, timeoutMs)
    if (by === subscriber && wanted.has(channel)) subscribed.add(channel)
  }

  const isMissing = ([channel]: readonly [string, number]) =>
    wanted.has(channel) && !subscribed.has(channel) && !starting.has(channel)

  /** Returns whether any channel was resubscribed. */
  async function subscribeMissing(): Promise<boolean> {
    let isSome = false
    const missing = [...wanted].filter(isMissing)
    for (let i = 0; i < missing.length; i += BATCH) {
      const batch = missing.slice(i, i + BATCH).filter(isMissing)
      await Promise.allSettled(batch.map(subscribe))
      isSome ||= batch.some(([channel]) => subscribed.has(channel))
    }
    return isSome
  }

  /** Resubscribes before callers fetch the messages that they missed, so that none is lost in between. */
  async function relink(): Promise<void> {
    subscribed.clear()
    await subscribeMissing()
    onLink(true)
  }

  return {
    async subscribe(channel, timeoutMs) {
      wanted.set(channel, timeoutMs)
      if (subscribed.has(channel)) return
      starting.add(channel)
      await subscribe([channel, timeoutMs]).finally(() => starting.delete(channel))
    },
    async unsubscribe(channel) {
      subscribed.delete(channel)
      const timeoutMs = wanted.get(channel)
      if (timeoutMs === undefined) return
      wanted.delete(channel)
      await subscriber?.unsubscribe(channel, timeoutMs)
    },
    has: (channel) => subscribed.has(channel),
    async retry() {
      if (await subscribeMissing()) onLink(true)
    },
    async renew() {
      const old = subscriber
      subscriber = undefined
      lose()
      await old?.close()
      await relink()
    },
    async close() {
      wanted.clear()
      subscribed.clear()
      const last = subscriber
      subscriber = undefined
      await last?.close()
    },
  }
}
