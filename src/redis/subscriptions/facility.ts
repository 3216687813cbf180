/**
 * Viewer streams of one node, reported to the store while they are open, so that all nodes and observers can list them.
 */
import { CLOSE_TIMEOUT_MS, endWithin } from '../../internal/async/deadline.js'
import { createTicker } from '../../internal/async/timer.js'
import type { Inspected } from '../../internal/contract/families.js'
import { defineOptions, readParts } from '../../internal/contract/options.js'
import {
  checkStream,
  ReportedOptions,
  type SubscriptionInspector,
  SubscriptionOptions,
  type SubscriptionRegistry,
  type ViewerStream,
} from '../../internal/contract/subscriptions.js'
import { shardOf } from '../store/keys.js'
import { ignoreReply } from '../store/reply.js'
import { defineScript, runScript, throwMostSevere } from '../store/script.js'
import { createStore, inStore, type Store, type StoreOptions } from '../store/store.js'
import { createSubscriptionInspector, UNREPORTED_UNTIL } from './inspector.js'
import { scripts } from './subscriptions.lua'

// The scripts of the viewer streams: each node reports its own, periodically.

/**
 * Reports the streams of a node. `streams`: id, viewer, session, site and body of each; `is_short`: 1 if the node has
 * more than it reports. The state of a row holds its ids and when it expires.
 */
export const REPORT_STREAMS = defineScript(
  'subscriptions.report',
  { args: ['lease', 'is_short'], rest: 'streams', constants: { BEYOND: UNREPORTED_UNTIL }, answer: ignoreReply },
  scripts.report,
)

/** Deletes streams that have ended, by their ids. */
export const END_STREAMS = defineScript(
  'subscriptions.end',
  { args: [], rest: 'gone', answer: ignoreReply, freesMemory: true },
  scripts.end,
)

/** Delay before a new or ended stream is reported, in ms. */
const SOON_MS = 500
/** Interval at which all streams are reported, in ms. */
const REPORT_MS = 5_000
/** How long a report is valid, in ms: two reports may be lost. */
const LEASE_MS = 15_000
/** Maximum number of streams per script: a few milliseconds of the store's time. */
const BATCH = 100

const Options = defineOptions({ ...SubscriptionOptions.shape, ...ReportedOptions.shape })
/** Options of `createRedisSubscriptionRegistry`. */
export type RedisSubscriptionRegistryOptions = StoreOptions & SubscriptionOptions & ReportedOptions

/**
 * A registry of viewer streams. `close()` removes those of this node from the store, within 5 s, and reports none
 * afterwards; what could not be removed expires within 15 s.
 */
export type RedisSubscriptionRegistry = Inspected<SubscriptionRegistry, SubscriptionInspector> & {
  close(): Promise<void>
}

/** A stream, and whether it was reported to the store. */
interface Held {
  readonly stream: ViewerStream
  isReported: boolean
}

/**
 * Creates a registry of viewer streams in Redis, for the relay routers of one node. Streams are reported in batches:
 * within half a second after they open or end, and their state every five seconds. Those of a node that has died expire
 * within 15 s.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
 *
 * @example
 * const subscriptions = createRedisSubscriptionRegistry({ client, deploymentId: 'prod', nodeId: 'a' })
 */
export function createRedisSubscriptionRegistry(options: RedisSubscriptionRegistryOptions): RedisSubscriptionRegistry {
  return subscriptionRegistryOn(createStore(options, inStore(Options)), options)
}

/**
 * Sends each shard its part of `all`, one batch after the other; with `least` 1 also an empty batch to a shard without
 * any. After a failure the rest of that shard is skipped; other shards are not affected. @throws Refusal once all
 * shards are done.
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
      // A stream that has ended since would be listed until its report expires.
      const still = batch.filter((held) => open.has(held))
      for (const held of still) held.isReported = true
      const given = { lease: LEASE_MS, is_short: isShort ? '1' : '', streams: still.flatMap(partsOf) }
      return runScript(store, REPORT_STREAMS, shard, given)
    }
    // A viewer whose stream is not reported may be in any shard.
    await tellShards(some, ({ stream }) => stream.user_id, shards, tell, isShort ? 1 : 0)
  }

  /** Ended streams are removed once: if that fails, they expire. */
  async function end(shards: number): Promise<void> {
    const over = [...ended]
    ended.clear()
    const tell = (shard: number, batch: readonly ViewerStream[]) =>
      runScript(store, END_STREAMS, shard, { gone: batch.map(({ subscription_id }) => subscription_id) })
    await tellShards(over, ({ user_id }) => user_id, shards, tell)
  }

  /** One pass at a time: later reports are newer. */
  async function pass(): Promise<void> {
    if (open.size === 0 && ended.size === 0) return ticker.stop()
    const isDue = performance.now() >= reportAt
    const first = [...open].slice(0, maxReported)
    const unreported = isDue ? first : first.filter(({ isReported }) => !isReported)
    if (unreported.length === 0 && ended.size === 0) return
    // Even after a failure: a store that is down is not contacted twice a second.
    if (isDue) reportAt = performance.now() + REPORT_MS
    const shards = await store.claimShards()
    // Streams that cannot be removed now expire; this must not prevent the report of others.
    await end(shards).catch((error) => store.onError(error))
    await report(unreported, shards)
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
      checkStream(stream)
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
