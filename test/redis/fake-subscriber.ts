/** A client of node-redis without a store: the test controls the subscriptions of its duplicates. */
import { EventEmitter } from 'node:events'
import type { RedisClient } from '../../src/redis/store/client.js'

type Listener = (message: string, channel: string) => void

/** One connection that subscribes. */
class FakeLink extends EventEmitter {
  readonly isOpen = true
  readonly isReady = true
  readonly channels = new Map<string, Listener>()

  constructor(private readonly client: FakeClient) {
    super()
  }

  connect(): Promise<unknown> {
    return this.client.connecting
  }

  async sSubscribe(channel: string, listener: Listener): Promise<void> {
    await this.client.answer(channel)
    this.channels.set(channel, listener)
  }

  async sUnsubscribe(channel: string): Promise<void> {
    this.channels.delete(channel)
  }

  destroy(): void {
    this.channels.clear()
    this.client.destroyed++
    if (this.client.isEnded) throw new Error('The client is closed')
  }
}

export class FakeClient {
  readonly isOpen = true
  readonly links: FakeLink[] = []
  /** When its duplicates are connected. */
  connecting: Promise<unknown> = Promise.resolve()
  /** What becomes of a subscription: subscribed where it resolves. */
  answer: (channel: string) => Promise<unknown> = async () => {}
  /** Whether a duplicate reports that it has ended, as one of redis 5 does. */
  isEnded = false
  destroyed = 0

  /** The client to pass to the library. */
  get client(): RedisClient {
    return this as unknown as RedisClient
  }

  duplicate(): FakeLink {
    const link = new FakeLink(this)
    this.links.push(link)
    return link
  }

  on() {}

  sendCommand() {}

  /** Delivers `message` to all subscribers of `channel`. */
  say(channel: string, message: string): void {
    for (const link of this.links) link.channels.get(channel)?.(message, channel)
  }
}
