/** What a public call of the Redis facilities is tried with, and the two nodes that it is tried between. */
import { createRedisBrowserWindowRegistry } from '../../../src/redis/browser-windows/facility.js'
import { createRedisFacilities } from '../../../src/redis/composition/facilities.js'
import { createRedisConnectionRegistry } from '../../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../../src/redis/contexts/facility.js'
import { createRedisDeduplicator } from '../../../src/redis/deduplicator/facility.js'
import { createRedisCommandDispatcher } from '../../../src/redis/delivery/facility.js'
import { createRedisEventBus } from '../../../src/redis/event-bus/facility.js'
import { createRedisMessageHistory } from '../../../src/redis/history/facility.js'
import { createRedisIdempotencyStore } from '../../../src/redis/idempotency/facility.js'
import { createRedisRpcCorrelator } from '../../../src/redis/rpc/facility.js'
import { createRedisSessionRegistry } from '../../../src/redis/sessions/facility.js'
import { createRedisSiteRegistry } from '../../../src/redis/sites/facility.js'
import type { RedisClient } from '../../../src/redis/store/client.js'
import { createStore } from '../../../src/redis/store/store.js'
import { createRedisSubscriptionRegistry } from '../../../src/redis/subscriptions/facility.js'
import type { createFlakySpill } from '../../contract/history.js'

/** Shards of every deployment: some calls write in two. */
export const SHARDS = 2

/** The factories by the names that calls are given: what a host makes, without `createRedis`. */
export const FACTORIES = {
  BrowserWindowRegistry: createRedisBrowserWindowRegistry,
  CommandDispatcher: createRedisCommandDispatcher,
  ConnectionRegistry: createRedisConnectionRegistry,
  ContextRegistry: createRedisContextRegistry,
  Deduplicator: createRedisDeduplicator,
  EventBus: createRedisEventBus,
  Facilities: createRedisFacilities,
  IdempotencyStore: createRedisIdempotencyStore,
  MessageHistory: createRedisMessageHistory,
  RpcCorrelator: createRedisRpcCorrelator,
  SessionRegistry: createRedisSessionRegistry,
  SiteRegistry: createRedisSiteRegistry,
  SubscriptionRegistry: createRedisSubscriptionRegistry,
}

export interface NodeOptions {
  client: RedisClient
  deploymentId: string
  commandTimeoutMs: number
  spill: ReturnType<typeof createFlakySpill>
}

export type Node = ReturnType<typeof createNode>

/** One node of a deployment, of which each facility is made when it is first asked for. */
export function createNode({ client, deploymentId, commandTimeoutMs, spill }: NodeOptions) {
  const options = { client, deploymentId, commandTimeoutMs, shards: SHARDS }
  const history = { spill, inlineBytes: 100, maxPerStream: 2 }
  const closing: (() => unknown)[] = []
  const made = new Map<() => unknown, unknown>()
  function lazy<T>(make: () => T, close?: (made: T) => unknown): () => T {
    return () => {
      if (!made.has(make)) {
        const part = make()
        made.set(make, part)
        if (close) closing.push(() => close(part))
      }
      return made.get(make) as T
    }
  }
  const parts = {
    windows: lazy(() => FACTORIES.BrowserWindowRegistry(options)),
    dispatcher: lazy(
      () => FACTORIES.CommandDispatcher({ ...options, ackTimeoutMs: 600 }),
      (made) => made.close(),
    ),
    connections: lazy(() => FACTORIES.ConnectionRegistry(options)),
    contexts: lazy(() => FACTORIES.ContextRegistry(options)),
    /** Has room for one context of all. */
    fewContexts: lazy(() => FACTORIES.ContextRegistry({ ...options, maxEntries: 1 })),
    deduplicator: lazy(() => FACTORIES.Deduplicator(options)),
    bus: lazy(
      () => FACTORIES.EventBus(options),
      (made) => made.close(),
    ),
    facilities: lazy(
      () => FACTORIES.Facilities({ ...options, spill, history: { inlineBytes: 100 } }),
      (made) => made.close(),
    ),
    idempotency: lazy(() => FACTORIES.IdempotencyStore(options)),
    history: lazy(() => FACTORIES.MessageHistory({ ...options, ...history })),
    rpc: lazy(
      () => FACTORIES.RpcCorrelator(options),
      (made) => made.close(),
    ),
    sites: lazy(() => FACTORIES.SiteRegistry(options)),
    sessions: lazy(
      () => FACTORIES.SessionRegistry({ ...options }),
      (made) => made.disconnect(),
    ),
    subscriptions: lazy(
      () => FACTORIES.SubscriptionRegistry(options),
      (made) => made.close(),
    ),
    store: lazy(() => createStore(options)),
  }
  return { ...parts, close: async () => void (await Promise.all(closing.map((close) => close()))) }
}

/** `far` reaches the store over the link that loses, `near` over one that does not. */
export interface World {
  far: Node
  near: Node
  spill: NodeOptions['spill']
  /** `ZCARD` and the like of one key, asked directly. */
  ask(name: string, key: string): Promise<string>
}

/** One public call, and what must be so after it, whatever became of one of its commands. */
export interface Act<S = unknown, R = unknown> {
  /** `Factory.method`. */
  call: string
  /** What of the call this is about, where there are several. */
  about?: string
  prepare?(world: World): S | Promise<S>
  run(world: World, state: S): R | Promise<R>
  /** The code with which the call is to be refused. */
  refused?: string
  /** The code with which it is refused when it has been done. */
  done?: string
  /** A call that no host repeats: it names nothing by which a second one could be known. */
  isOnce?: true
  /** What somebody else does before what was late arrives. */
  overtake?(world: World, state: S): unknown
  /** How often its effect is there, as the other node sees it. It must be once; of a call that was not run, not at all. */
  effects?(world: World, state: S, answer: Awaited<R> | undefined): Promise<number>
}

/** An act with its state and answer known to itself alone. */
export const act = <S, R>(given: Act<S, R>): Act => given as unknown as Act
