/** The event bus of a deployment: what one node publishes reaches the subscriptions of all, or they see that it did not. */
import { EventBusOptions, PublishedEvent, type SiteEventBus } from '../../contract/event-bus.js'
import { parseInput } from '../../contract/input.js'
import { toJson } from '../../contract/json.js'
import { defineOptions, readParts } from '../../contract/options.js'
import { Refusal } from '../../refusal.js'
import { shardOf } from '../store/keys.js'
import { runScript } from '../store/script.js'
import { createStore, type Store, StoreOptions } from '../store/store.js'
import { badPosition } from './local-topic.js'
import { PUBLISH } from './scripts.js'
import { createEventTopics } from './topics.js'

/** Bytes of one event: whatever a relay's body of 256 KiB can become as JSON. */
const EVENT_BYTES = 1_048_576

export type RedisEventBusOptions = Omit<StoreOptions, 'now'> & EventBusOptions

const RedisEventBusOptions = defineOptions({ ...StoreOptions.omit({ now: true }).shape, ...EventBusOptions.shape })

/**
 * An event bus over sharded pub/sub. A topic counts in the store, so that a position means the same on every node; it is
 * forgotten ten minutes after its last event when no node reads it, and then starts a new epoch at 1. What a node misses
 * while its link is down its subscribers see as a gap, `link_lost`, exact as long as the store has not lost count.
 *
 * Call `prepare(topic)` before a subscription whose position is shown: it knows its place only when the store has said so.
 * A publication that arrives twice, because a client has sent it again, is published once. An `unavailable` whose `outcome`
 * is not `not_run` leaves open whether it was published.
 *
 * From the first subscription to `close()` it listens on the connection that all share who listen over the client.
 *
 * @throws RangeError for a `queueSize` that is not a whole number from 1.
 * @example
 * const bus = createRedisEventBus({ client, deploymentId: 'prod' })
 * await bus.publish('users/alice/sites/notes/events', event)
 */
export function createRedisEventBus(options: RedisEventBusOptions): Required<SiteEventBus> {
  return eventBusOn(createStore(options, RedisEventBusOptions), options)
}

/** @param shared Its clock counts for nothing here: what the bus remembers expires by the store's own. */
export function eventBusOn(shared: Store, options: EventBusOptions): Required<SiteEventBus> {
  const { newId, queueSize } = readParts(EventBusOptions, options)
  const store: Store = { ...shared, now: undefined }
  const topics = createEventTopics({ store, queueSize, newId })
  let closed = false

  function open(name: string) {
    if (closed) throw new Refusal('closed', 'the event bus is closed')
    return topics.open(name)
  }

  /** @param once The id under which the topic may have had the event, if that matters. */
  async function send(name: string, event: PublishedEvent, once: string): Promise<number | null> {
    if (closed) throw new Refusal('closed', 'the event bus is closed')
    parseInput(PublishedEvent, event)
    const { text } = toJson(event, EVENT_BYTES)
    const known = topics.find(name)
    const { epoch, seq } = known?.isPlaced ? known.topic.position : { epoch: '', seq: 0 }
    const shard = shardOf(name, await store.claimShards())
    const { isRepeated, isSpoilt, position } = await runScript(store, PUBLISH, shard, {
      topic: name,
      event: text,
      fresh: newId(),
      known_epoch: epoch,
      known_seq: seq,
      event_id: once,
      published_at: event.published_at,
      name: crypto.randomUUID(),
    })
    if (isRepeated) return null
    if (isSpoilt) store.onError(badPosition(name))
    const topic = topics.find(name)?.topic
    if (position) topic?.published(position)
    return topic?.readers ?? 0
  }

  return {
    queueSize,

    publish: async (name, event) => (await send(name, event, '')) ?? 0,

    publishOnce: (name, event) => send(name, event, event.event_id),

    subscribe(name, subscribeOptions) {
      const local = open(name)
      const subscription = local.topic.subscribe(subscribeOptions)
      // What fails now is tried again: until then the subscription waits at a place that it does not know yet.
      if (!local.isPlaced) topics.place(local).catch((error) => store.onError(error))
      return subscription
    },

    async prepare(name) {
      await topics.catchUp(open(name))
    },

    async close() {
      closed = true
      await topics.close()
    },
  }
}
