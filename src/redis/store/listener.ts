/** The one connection over which all that share a client hear their channels: opened for the first, closed with the last. */
import { Refusal } from '../../refusal.js'
import type { RedisClient } from './client.js'
import { openSubscriber, type Subscriber } from './subscriber.js'

/** Channels subscribed to anew at once. */
const BATCH = 100

/** The link was lost (`false`), or stands again with its subscriptions renewed (`true`): what came in between was missed. */
type OnLink = (isUp: boolean) => void
type Hear = (message: string) => void

/** What one of those hears. */
export interface Listening {
  /** Resolves when `channel` is subscribed. What failed is tried again by another call, or when the link stands again. */
  subscribe(channel: string, hear: Hear): Promise<void>
  unsubscribe(channel: string): Promise<void>
  /** Opens the connection anew, for all: it stands, and does not hear. A new one is cheaper than knowing why. */
  renew(): void
  /** Resolves when no connection is being opened anew. */
  renewed(): Promise<void>
  /** Ends it at once. */
  close(): Promise<void>
}

const listeners = new WeakMap<RedisClient, Listener>()

/** A part of the connection beside `client`, which is opened when the first channel is subscribed. */
export function listen(client: RedisClient, onLink: OnLink): Listening {
  const listener = listeners.get(client) ?? createListener(client)
  listeners.set(client, listener)
  return listener(onLink)
}

type Listener = (onLink: OnLink) => Listening

function createListener(client: RedisClient): Listener {
  const parts = new Map<OnLink, Map<string, Hear>>()
  let subscriber: Subscriber | undefined
  let renewing: Promise<void> | undefined

  const tell = (isUp: boolean) => {
    for (const onLink of [...parts.keys()]) onLink(isUp)
  }
  const isHeard = (channel: string) => [...parts.values()].some((channels) => channels.has(channel))

  function opened(): Subscriber {
    if (subscriber) return subscriber
    const own = openSubscriber({
      client,
      onMessage(channel, message) {
        if (subscriber === own) for (const channels of [...parts.values()]) channels.get(channel)?.(message)
      },
      onLink(isUp) {
        if (subscriber !== own) return
        if (isUp) void relink()
        else tell(false)
      },
    })
    subscriber = own
    return own
  }

  /** Subscribes anew before anybody asks what was missed, so that nothing falls between. */
  async function relink(): Promise<void> {
    const channels = [...new Set([...parts.values()].flatMap((own) => [...own.keys()]))]
    for (let i = 0; i < channels.length; i += BATCH)
      await Promise.allSettled(channels.slice(i, i + BATCH).map((channel) => subscriber?.subscribe(channel)))
    tell(true)
  }

  async function renew(): Promise<void> {
    const deaf = subscriber
    subscriber = undefined
    tell(false)
    await deaf?.close()
    if (parts.size > 0) opened()
    await relink()
    renewing = undefined
  }

  return (onLink) => {
    const own = new Map<string, Hear>()
    let closed = false
    return {
      async subscribe(channel, hear) {
        // A connection opened now would outlive whoever could close it.
        if (closed) return
        parts.set(onLink, own)
        own.set(channel, hear)
        const by = opened()
        try {
          await by.subscribe(channel)
        } catch (error) {
          // A link that is there and does not answer is dead: nothing else would say so. A refusal has an outcome.
          const isSilent = error instanceof Refusal && error.outcome === undefined
          if (isSilent && by === subscriber && by.isUp) renewing ??= renew()
          throw error
        }
      },
      async unsubscribe(channel) {
        if (own.delete(channel) && !isHeard(channel)) await subscriber?.unsubscribe(channel)
      },
      renew() {
        if (!closed) renewing ??= renew()
      },
      renewed: async () => renewing,
      async close() {
        closed = true
        if (!parts.delete(onLink)) return
        if (parts.size > 0) {
          for (const channel of own.keys()) if (!isHeard(channel)) subscriber?.unsubscribe(channel).catch(() => {})
          return
        }
        const last = subscriber
        subscriber = undefined
        await last?.close()
      },
    }
  }
}
