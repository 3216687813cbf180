/** Sharded subscriptions on a connection of their own, for listeners that must hear of a lost link. */
import { runWithin } from '../../async/time-limit.js'
import { Refusal } from '../../refusal.js'
import { portOf, type RedisClient } from './client.js'
import { toError } from './reply.js'

export interface SubscriberOptions {
  client: RedisClient
  onMessage(channel: string, message: string): void
  /**
   * The link was lost (`false`) or stands again with its subscriptions renewed (`true`). On a Cluster only what the
   * client tells: compare a stored sequence now and then rather than trust this alone.
   */
  onLink(up: boolean): void
}

/**
 * Subscriptions to channels of sharded pub/sub; a channel's hash tag must be that of its shard's keys. Each is given up
 * after the `timeoutMs` of whoever asks.
 */
export interface Subscriber {
  subscribe(channel: string, timeoutMs: number): Promise<void>
  unsubscribe(channel: string, timeoutMs: number): Promise<void>
  /** Whether the client believes that its link stands. */
  readonly isUp: boolean
  /** Never rejects. */
  close(): Promise<void>
}

type Emitter = { on(event: string, listener: (...args: never[]) => void): unknown }
type NodeRedisSubscriber = Emitter & {
  connect(): Promise<unknown>
  destroy(): void
  readonly isOpen: boolean
  /** Of a single client; a Cluster's is as good as open. */
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
  const late = () => new Refusal('unavailable', `no subscription within ${timeoutMs} ms`)
  return runWithin(() => work, { ms: timeoutMs, late }).catch((error) => {
    throw toError(error)
  })
}

/**
 * Sends to `own` as soon as it is ready. Not by the client's own queue: when a Cluster of ioredis becomes ready before it
 * knows its slots, what is queued throws where nobody can catch it, and ends the process.
 */
function createSender(own: IoRedisSubscriber) {
  const waiting = new Set<() => void>()
  own.on('ready', () => {
    for (const go of waiting) go()
  })
  return async (send: () => Promise<unknown>, timeoutMs: number): Promise<void> => {
    // A host's client that connects when it is first used has made one that does so, too.
    if (own.status === 'wait') own.connect().catch(() => {})
    if (own.status !== 'ready') {
      let go = () => {}
      const ready = new Promise<void>((resolve) => {
        go = resolve
      })
      waiting.add(go)
      await wait(ready, timeoutMs).finally(() => waiting.delete(go))
    }
    // What it throws at once is as good as a rejection.
    await wait((async () => send())(), timeoutMs)
  }
}

/** Duplicates the host's client; `close` ends the duplicate, never the client. */
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
    // A single client that renews its subscriptions itself waits for no answer: where the link is lost again or closed
    // before it has come, the refusal reaches nobody and ends the process.
    const options = kind === 'ioredis-cluster' ? [[], { shardedSubscribers: true }] : [{ autoResubscribe: false }]
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
        // Nobody would unsubscribe again from what was unsubscribed meanwhile.
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
      // One of redis 5 that has given up by itself says so.
    }
  }
  const listener = (message: string, channel: string) => onMessage(channel, message)
  return {
    subscribe: (channel, timeoutMs) =>
      wait(
        connected.then(() => own.sSubscribe(channel, listener)),
        timeoutMs,
      ),
    // Without its listener the client takes the channel for subscribed until the store has answered: who subscribes again
    // meanwhile would be deaf.
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
      // What is just being connected is out of the client's reach until it stands, and would keep the process alive.
      own.on('ready', end)
      connected.then(end, () => {})
      end()
    },
  }
}
