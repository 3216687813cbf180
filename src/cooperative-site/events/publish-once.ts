/** How an event of a message reaches its bus once, however often the message comes. */
import type { PublishedEvent, SiteEventBus } from '../../contract/event-bus.js'
import { FairShare, type Place } from '../../fair-share/fair-share.js'

/** Where events are published. */
export type PublishingBus = Pick<SiteEventBus, 'publish' | 'publishOnce'>

/** Events remembered of one bus: some megabytes at most. */
const REMEMBERED = 10_000

/** Message ids published on one bus by this process; the largest publisher's are forgotten first. */
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
 * Publishes the event unless it was published before. A bus over several nodes knows that itself if it has
 * `publishOnce`; for any other bus this process remembers its own publications, and concurrent duplicates share one
 * attempt.
 *
 * @returns whether it was published by this call.
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
