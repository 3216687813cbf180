/**
 * The event bus of a deployment: an event published on one node reaches the subscriptions on all nodes, or they see a
 * gap.
 */
import { EventBusOptions, PublishedEvent, type SiteEventBus } from '../../internal/contract/event-bus.js'
import { toJson } from '../../internal/contract/json.js'
import { defineOptions, parseInput, readParts } from '../../internal/contract/options.js'
import { Refusal } from '../../internal/refusal.js'
import { shardOf } from '../store/keys.js'
import { runScript } from '../store/script.js'
import { createStore, type Store, StoreOptions } from '../store/store.js'
import { badPosition } from './local-topic.js'
import { createEventTopics, PUBLISH } from './topics.js'

/** Maximum size of one event in bytes: more than a relay's body of 256 KiB can become as JSON. */
const EVENT_BYTES = 1_048_576

/** Options of `createRedisEventBus`. */
export type RedisEventBusOptions = Omit<StoreOptions, 'now'> & EventBusOptions

const RedisEventBusOptions = defineOptions({ ...StoreOptions.omit({ now: true }).shape, ...EventBusOptions.shape })

/**
 * Creates an event bus over sharded pub/sub. Positions of a topic are counted in the store, so they mean the same on
 * every node. The store forgets a topic ten minutes after its last event if no node reads it; then it starts a new
 * epoch at 1. Events that a node misses while its connection is down appear to its subscribers as a gap with reason
 * `link_lost`, which is exact as long as the store has not lost its counter.
 *
 * Call `prepare(topic)` before a subscription whose position you show: the position is known only after the store has
 * replied. A publication that the client sends twice is published once. After an `unavailable` with an `outcome` other
 * than `not_run` it is unknown whether the event was published.
 *
 * From the first subscription to `close()` the bus uses the subscriber connection that all listeners of the client
 * share.
 *
 * @throws RangeError if `queueSize` is not an integer of at least 1.
 * @example
 * const bus = createRedisEventBus({ client, deploymentId: 'prod' })
 * await bus.publish('users/alice/sites/notes/events', event)
 */
export function createRedisEventBus(options: RedisEventBusOptions): Required<SiteEventBus> {
  return eventBusOn(createStore(options, RedisEventBusOptions), options)
}

/**
 * Creates an event bus on a store.
 *
 * @param shared Its injected clock is not used: expiry depends on the store's own clock.
 */
export function eventBusOn(shared: Store, options: EventBusOptions): Required<SiteEventBus> {
  const { newId, queueSize } = readParts(EventBusOptions, options)
  const store: Store = { ...shared, now: undefined }
  const topics = createEventTopics({ store, queueSize, newId })
  let closed = false

  function open(name: string) {
    if (closed) throw new Refusal('closed', 'the event bus is closed')
    return topics.open(name)
  }

  /** @param once Id by which a repeated event is detected, or ''. */
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
      // A failure is retried: until then the subscription waits without a position.
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
