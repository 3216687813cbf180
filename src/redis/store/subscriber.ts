/** Sharded subscriptions on their own connection, for listeners that must notice a lost connection. */
import { runWithin } from '../../internal/async/deadline.js'
import { Refusal } from '../../internal/refusal.js'
import { portOf, type RedisClient } from './client.js'
import { optionsOf } from './client-options.js'
import { toError } from './reply.js'

interface SubscriberOptions {
  client: RedisClient
  onMessage(channel: string, message: string): void
  /**
   * Called when the connection was lost (`false`) or is back with its subscriptions renewed (`true`). On a Cluster this
   * is only what the client reports: also compare a stored sequence from time to time.
   */
  onLink(up: boolean): void
}

/**
 * Subscriptions to channels of sharded pub/sub. The hash tag of a channel must be the one of its shard's keys. Each
 * call times out after its `timeoutMs`.
 */
interface Subscriber {
  subscribe(channel: string, timeoutMs: number): Promise<void>
  unsubscribe(channel: string, timeoutMs: number): Promise<void>
  /** Whether the client reports that it is connected. */
  readonly isUp: boolean
  /** Never rejects. */
  close(): Promise<void>
}

type Emitter = { on(event: string, listener: (...args: never[]) => void): unknown }
type NodeRedisSubscriber = Emitter & {
  connect(): Promise<unknown>
  destroy(): void
  readonly isOpen: boolean
  /** Only on a single client; a Cluster counts as ready when it is open. */
  readonly isReady?: boolean
  sSubscribe(channel: string, listener: (message: string, channel: string) => void): Promise<void>
  sUnsubscribe(channel: string, listener: (message: string, channel: string) => void): Promise<void>
}
type IoRedisSubscriber = Emitter & {
  readonly status: string
  connect(): Promise<unknown>
  ssubscribe(channel: string): Promise<unknown>
  sunsubscribe(channel: string): Promise<unknown>
  disconnect(): void
}

function wait<T>(work: Promise<T>, timeoutMs: number): Promise<T> {
  const late = () => new Refusal('unavailable', `subscription timed out after ${timeoutMs} ms`)
  return runWithin(() => work, { ms: timeoutMs, late }).catch((error) => {
    throw toError(error)
  })
}

/**
 * Returns a function that sends to `own` as soon as it is ready. It does not use the client's own queue: when a Cluster
 * of ioredis becomes ready before it knows its slots, queued commands throw an uncatchable error that ends the process.
 */
function createSender(own: IoRedisSubscriber) {
  const waiting = new Set<() => void>()
  own.on('ready', () => {
    for (const go of waiting) go()
  })
  return async (send: () => Promise<unknown>, timeoutMs: number): Promise<void> => {
    // A duplicate of a client with `lazyConnect` is lazy, too.
    if (own.status === 'wait') own.connect().catch(() => {})
    if (own.status !== 'ready') {
      let go = () => {}
      const ready = new Promise<void>((resolve) => {
        go = resolve
      })
      waiting.add(go)
      await wait(ready, timeoutMs).finally(() => waiting.delete(go))
    }
    // A synchronous throw counts as a rejection.
    await wait((async () => send())(), timeoutMs)
  }
}

/** Opens a subscriber on a duplicate of the client; `close` closes only the duplicate. */
export function openSubscriber({ client, onMessage, onLink }: SubscriberOptions): Subscriber {
  const { kind } = portOf(client)
  const duplicate = client.duplicate as (...args: unknown[]) => unknown
  let wasUp = false
  const up = () => {
    if (wasUp) onLink(true)
    wasUp = true
  }
  const down = () => onLink(false)

  if (kind === 'ioredis' || kind === 'ioredis-cluster') {
    // A single client that renews its subscriptions itself does not handle the reply: if the connection is lost again
    // or closed before it arrives, the unhandled rejection ends the process.
    // With `stringNumbers`, a Cluster knows only part of the slots, and subscribes in no other.
    const redisOptions = { ...optionsOf(client).redisOptions, stringNumbers: false }
    const options =
      kind === 'ioredis-cluster' ? [[], { shardedSubscribers: true, redisOptions }] : [{ autoResubscribe: false }]
    const own = duplicate.apply(client, options) as IoRedisSubscriber
    const wanted = new Set<string>()
    const channels = new Set<string>()
    own.on('error', () => {})
    own.on('ready', () => {
      if (kind === 'ioredis') for (const channel of channels) own.ssubscribe(channel).catch(() => {})
      up()
    })
    const send = createSender(own)
    for (const event of ['close', 'nodeError', '-node']) own.on(event, down)
    own.on('smessage', (channel: string, message: string) => onMessage(channel, message))
    return {
      async subscribe(channel, timeoutMs) {
        wanted.add(channel)
        await send(() => own.ssubscribe(channel), timeoutMs)
        // It may have been unsubscribed in the meantime, and then must not be renewed.
        if (wanted.has(channel)) channels.add(channel)
      },
      unsubscribe(channel, timeoutMs) {
        wanted.delete(channel)
        channels.delete(channel)
        return send(() => own.sunsubscribe(channel), timeoutMs)
      },
      get isUp() {
        return own.status === 'ready'
      },
      close: async () => own.disconnect(),
    }
  }

  const own = duplicate.call(client) as NodeRedisSubscriber
  own.on('error', () => {})
  for (const event of ['ready', 'node-ready']) own.on(event, up)
  for (const event of ['reconnecting', 'node-reconnecting', 'node-disconnect']) own.on(event, down)
  const connected = own.connect()
  connected.catch(() => {})
  let closed = false
  const end = () => {
    try {
      own.destroy()
    } catch {
      // A client of redis 5 that has given up throws here.
    }
  }
  const listener = (message: string, channel: string) => onMessage(channel, message)
  return {
    subscribe: (channel, timeoutMs) =>
      wait(
        connected.then(() => own.sSubscribe(channel, listener)),
        timeoutMs,
      ),
    // Without the listener the client considers the channel subscribed until the store has replied: a new subscription
    // in the meantime would receive nothing.
    unsubscribe: (channel, timeoutMs) =>
      wait(
        connected.then(() => own.sUnsubscribe(channel, listener)),
        timeoutMs,
      ),
    get isUp() {
      return own.isReady ?? own.isOpen
    },
    async close() {
      if (closed) return
      closed = true
      // A client that is still connecting cannot be destroyed until it is connected, and would keep the process alive.
      own.on('ready', end)
      connected.then(end, () => {})
      end()
    },
  }
}

// Channels that stay subscribed on one connection, through reconnects: for the listener that uses it.

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
