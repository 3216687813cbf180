/** How an event of a message reaches its bus once, however often the message comes. */
import type { PublishedEvent, SiteEventBus } from '../../contract/event-bus.js'
import { FairShare, type Place } from '../../fair-share/fair-share.js'

/** Where events are published. */
export type PublishingBus = Pick<SiteEventBus, 'publish' | 'publishOnce'>

/** Events remembered of one bus: some megabytes at most. */
const REMEMBERED = 10_000

/** What this process has published on one bus; what has to be forgotten goes from whoever has published most. */
class Published {
  readonly #events = new Map<string, { done: Promise<unknown>; place: Place<string> }>()
  readonly #shares = new FairShare<string>({ entries: REMEMBERED })

  known(key: string): Promise<unknown> | undefined {
    return this.#events.get(key)?.done
  }

  remember(owner: string, key: string, done: Promise<unknown>): void {
    const place = this.#shares.add(owner, key)
    this.#events.set(key, { done, place })
    for (let left = this.#shares.excess(place); left !== undefined; left = this.#shares.excess(place)) this.forget(left)
  }

  forget(key: string): void {
    const event = this.#events.get(key)
    if (!event) return
    this.#events.delete(key)
    this.#shares.remove(event.place)
  }
}

const memories = new WeakMap<object, Published>()

/**
 * Publishes the event unless the topic has had it. A bus of several nodes knows that by itself, if it has `publishOnce`;
 * of any other this process remembers what it has published there, and one that is under way decides for all.
 *
 * @returns whether it was published just now.
 */
export async function publishOnce(
  bus: PublishingBus,
  { owner, topic, event }: { owner: string; topic: string; event: PublishedEvent },
): Promise<boolean> {
  if (bus.publishOnce) return (await bus.publishOnce(topic, event)) !== null
  const memory = memories.get(bus) ?? new Published()
  memories.set(bus, memory)
  const key = `${topic}\n${event.event_id}`
  const known = memory.known(key)
  if (known) {
    await known
    return false
  }
  const done = (async () => bus.publish(topic, event))()
  memory.remember(owner, key, done)
  try {
    await done
    return true
  } catch (error) {
    memory.forget(key)
    throw error
  }
}
