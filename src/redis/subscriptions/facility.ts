/** The viewer streams of one node, told to the deployment while they last: whoever asks any node, or an observer, sees them. */
import { CLOSE_TIMEOUT_MS, endWithin } from '../../async/ending.js'
import { createTicker } from '../../async/timer.js'
import type { Inspected } from '../../contract/inspectors.js'
import { defineOptions, readParts } from '../../contract/options.js'
import {
  ReportedOptions,
  type SubscriptionInspector,
  SubscriptionOptions,
  type SubscriptionRegistry,
  type ViewerStream,
} from '../../contract/subscriptions.js'
import { shardOf } from '../store/keys.js'
import { runScript, throwMostSevere } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { createSubscriptionInspector } from './inspector.js'
import { END_STREAMS, REPORT_STREAMS } from './scripts.js'

/** How soon the store is told of what has begun or ended. */
const SOON_MS = 500
/** How often it is told of all. */
const REPORT_MS = 5_000
/** How long a node that says nothing more is believed: two reports may be lost. */
const LEASE_MS = 15_000
/** Streams of one script: a few milliseconds of the store. */
const BATCH = 100

const Options = defineOptions({ ...SubscriptionOptions.shape, ...ReportedOptions.shape })
export type RedisSubscriptionRegistryOptions = StoreOptions & SubscriptionOptions & ReportedOptions

/**
 * A registry of viewer streams. `close()` takes out those of this node, as far as the store can be told within 5 s, and no
 * stream is shown by this node after it; what the store was not told of leaves within 15 s.
 */
export type RedisSubscriptionRegistry = Inspected<SubscriptionRegistry, SubscriptionInspector> & {
  close(): Promise<void>
}

/** A stream that the store was, or is to be, told of. */
interface Held {
  readonly stream: ViewerStream
  isReported: boolean
}

/**
 * A registry of viewer streams in Redis, for the relay routers of one node. The store is told of them in batches, within half a
 * second of their beginning and their end, and every five seconds of how they stand; those of a node that has died leave within 15 s.
 *
 * @throws RangeError for a bound that is not a whole number from 1.
 *
 * @example
 * const subscriptions = createRedisSubscriptionRegistry({ client, deploymentId: 'prod', nodeId: 'a' })
 */
export function createRedisSubscriptionRegistry(options: RedisSubscriptionRegistryOptions): RedisSubscriptionRegistry {
  return subscriptionRegistryOn(createStore(options, inStore(Options)), options)
}

/**
 * Hands each shard what is its own of `all`, one batch after the other; with `least` 1 also a shard that has nothing.
 * A shard that fails is not told the rest, and holds up no other. @throws Refusal once all have been told.
 */
async function tellShards<T>(
  all: Iterable<T>,
  userOf: (one: T) => string,
  shards: number,
  tell: (shard: number, batch: readonly T[]) => Promise<unknown>,
  least = 0,
): Promise<void> {
  const lists = Array.from({ length: shards }, (): T[] => [])
  for (const one of all) lists[shardOf(userOf(one), shards)]?.push(one)
  const tellAll = async (list: readonly T[], shard: number) => {
    for (let i = 0; i < Math.max(list.length, least); i += BATCH) await tell(shard, list.slice(i, i + BATCH))
  }
  throwMostSevere(await Promise.allSettled(lists.map(tellAll)))
}

export function subscriptionRegistryOn(
  store: Store,
  options: SubscriptionOptions & ReportedOptions,
): RedisSubscriptionRegistry {
  const { nodeId: node_id = crypto.randomUUID(), maxReported } = readParts(Options, options)
  const open = new Set<Held>()
  const ended = new Set<ViewerStream>()
  let reportAt = 0
  let underWay: Promise<void> = Promise.resolve()
  let isClosed = false
  const ticker = createTicker(() => {
    underWay = pass().catch((error) => store.onError(error))
    return underWay
  }, SOON_MS)

  const partsOf = ({ stream }: Held) => {
    const { subscription_id, user_id, session_id, site_id, opened_at } = stream
    return [subscription_id, user_id, session_id, site_id, JSON.stringify({ node_id, opened_at, ...stream.state() })]
  }

  async function report(some: Iterable<Held>, shards: number): Promise<void> {
    const isShort = open.size > maxReported
    const tell = (shard: number, batch: readonly Held[]) => {
      // One that has ended since would stand there for as long as a node that says nothing is believed.
      const still = batch.filter((held) => open.has(held))
      for (const held of still) held.isReported = true
      const given = { lease: LEASE_MS, is_short: isShort ? '1' : '', streams: still.flatMap(partsOf) }
      return runScript(store, REPORT_STREAMS, shard, given)
    }
    // A viewer whose stream is left out may be of any shard.
    await tellShards(some, ({ stream }) => stream.user_id, shards, tell, isShort ? 1 : 0)
  }

  /** What has ended is told once: where that is lost, its time runs out. */
  async function end(shards: number): Promise<void> {
    const over = [...ended]
    ended.clear()
    const tell = (shard: number, batch: readonly ViewerStream[]) =>
      runScript(store, END_STREAMS, shard, { gone: batch.map(({ subscription_id }) => subscription_id) })
    await tellShards(over, ({ user_id }) => user_id, shards, tell)
  }

  /** One at a time: what is told later has happened later. */
  async function pass(): Promise<void> {
    if (open.size === 0 && ended.size === 0) return ticker.stop()
    const isDue = performance.now() >= reportAt
    const first = [...open].slice(0, maxReported)
    const news = isDue ? first : first.filter(({ isReported }) => !isReported)
    if (news.length === 0 && ended.size === 0) return
    // Also where it fails: a store that is away is not asked twice a second.
    if (isDue) reportAt = performance.now() + REPORT_MS
    const shards = await store.claimShards()
    // What cannot be taken out now goes by its time, and keeps nobody from telling of the others.
    await end(shards).catch((error) => store.onError(error))
    await report(news, shards)
  }

  async function leave(): Promise<void> {
    await underWay
    for (const { stream, isReported } of open) if (isReported) ended.add(stream)
    open.clear()
    if (ended.size > 0) await end(await store.claimShards())
  }

  return {
    inspector: createSubscriptionInspector(store),
    add(stream) {
      if (isClosed) return () => {}
      const held: Held = { stream, isReported: false }
      open.add(held)
      ticker.start()
      return () => {
        if (open.delete(held) && held.isReported) ended.add(stream)
      }
    },
    async close() {
      isClosed = true
      ticker.stop()
      await endWithin([leave().catch((error) => store.onError(error))], CLOSE_TIMEOUT_MS)
    },
  }
}
