/** That no factory takes a bound on trust: nothing is ever more than `NaN`, so such a bound would let everybody in. */
import { describe, expect, it } from 'vitest'
import { startNodeServer } from '../../src/adapters/node-server.js'
import { resolveLimits } from '../../src/contract/limits.js'
import { startCooperativeSiteControlServer } from '../../src/control-server/index.js'
import * as site from '../../src/cooperative-site/index.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import * as memory from '../../src/memory/index.js'
import * as redis from '../../src/redis/index.js'
import { numberOptions } from './options.js'

/** A client that is closed: what is made over it is only made. */
const client: redis.RedisClient = {
  call: async () => null,
  duplicate: () => client,
  on: () => client,
  status: 'end',
}
const nodeClient = { sendCommand: async () => null, duplicate: () => nodeClient, on: () => nodeClient, isOpen: false }
const place = { client, deploymentId: 'd' }
const unused = undefined as never
const policy = { check: () => true }
const relay = { policy, authenticateHost: () => null, authenticateViewer: () => null, sites: unused } as never as {
  [name in keyof site.CooperativeSiteRouterOptions]: never
}

type Make = (options: object) => unknown

/** What takes the options of each declaration. */
const MAKERS: Record<string, Make[]> = {
  ActionGateOptions: [
    (o) => site.createCooperativeActionGate({ ...relay, ...o }),
    (o) => site.createCooperativeSiteRouter({ ...relay, ...o }),
  ],
  ClaimOptions: [
    memory.createDeduplicator,
    (o) => redis.createRedisDeduplicator({ ...place, ...o }),
    (deduplicator) => redis.createRedisFacilities({ ...place, deduplicator }),
  ],
  CommandDispatcherOptions: [memory.createCommandDispatcher],
  ConnectionOptions: [
    memory.createConnectionRegistry,
    (o) => redis.createRedisConnectionRegistry({ ...place, ...o }),
    (connections) => redis.createRedisFacilities({ ...place, connections }),
  ],
  ControlServerTimeouts: [
    (timeouts) =>
      startCooperativeSiteControlServer({ token: 'a'.repeat(16), sites: unused, publisher: unused, timeouts }),
  ],
  CooperativeSiteControlServerOptions: [
    (o) => startCooperativeSiteControlServer({ token: 'a'.repeat(16), sites: unused, publisher: unused, ...o }),
  ],
  CooperativeSiteRouterOptions: [(o) => site.createCooperativeSiteRouter({ ...relay, ...o })],
  DiagnosticsRouterOptions: [(o) => createDiagnosticsRouter({ inspectors: {}, auth: noopAuth(), ...o })],
  DispatcherOptions: [
    memory.createCommandDispatcher,
    (o) => redis.createRedisCommandDispatcher({ ...place, ...o }),
    (dispatcher) => redis.createRedisFacilities({ ...place, dispatcher }),
  ],
  EventBusOptions: [site.createCooperativeSiteEventBus, (o) => redis.createRedisEventBus({ ...place, ...o })],
  HistoryOptions: [
    memory.createMessageHistory,
    (o) => redis.createRedisMessageHistory({ ...place, ...o }),
    (history) => redis.createRedisFacilities({ ...place, history }),
  ],
  IdempotencyStoreOptions: [site.createIdempotencyStore],
  IngestSiteMessageDeps: [
    (o) => site.ingestCooperativeSiteMessage({ ingest: unused, sites: unused, bus: unused, ...o }, {} as never),
  ],
  ListenOptions: [(o) => startNodeServer(() => new Response(), o)],
  MemorySpillStoreOptions: [memory.createMemorySpillStore],
  RedisIdempotencyStoreOptions: [(o) => redis.createRedisIdempotencyStore({ ...place, ...o })],
  ReportedOptions: [
    memory.createContextRegistry,
    memory.createBrowserWindowRegistry,
    (o) => redis.createRedisContextRegistry({ ...place, ...o }),
    (o) => redis.createRedisBrowserWindowRegistry({ ...place, ...o }),
  ],
  RpcOptions: [
    memory.createRpcCorrelator,
    (o) => redis.createRedisRpcCorrelator({ ...place, ...o }),
    (rpc) => redis.createRedisFacilities({ ...place, rpc }),
  ],
  SessionOptions: [site.createSessionRegistry, (o) => redis.createRedisSessionRegistry({ ...place, ...o })],
  SiteOptions: [site.createSiteRegistry, (o) => redis.createRedisSiteRegistry({ ...place, ...o })],
  StoreOptions: [
    (o) => redis.createRedisFacilities({ ...place, ...o }),
    (o) => redis.redisComposition({ ...place, ...o }),
  ],
  WatchLinkOptions: [(o) => redis.watchLink(nodeClient, o)],
}

/** Declarations that no host fills in, or whose numbers are of one call and refused by its answer. */
const OTHERS = ['InvokeOptions', 'ShareBounds', 'SubscriberOptions']

/** What no bound may be; a port may be 0, which is a free one. */
const WRONG = [Number.NaN, 0, -1, 1.5, '5', Number.POSITIVE_INFINITY]
const wrongFor = (option: string) => (option === 'port' ? WRONG.filter((value) => value !== 0) : WRONG)

const declared = numberOptions()

it('there is a factory to try for each declaration of options', () => {
  expect([...declared.keys()].sort()).toEqual([...Object.keys(MAKERS), ...OTHERS].sort())
})

describe.each(Object.entries(MAKERS))('the numbers of %s', (name, makers) => {
  it.each(declared.get(name) ?? [])('%s is a bound or is refused', async (option) => {
    for (const make of makers)
      for (const value of wrongFor(option)) {
        const made = async () => make({ [option]: value })
        await expect(made(), `${String(value)}`).rejects.toThrow(new RegExp(`^${option} must be a whole number from`))
        await expect(made()).rejects.toThrow(RangeError)
      }
  })
})

it.each(Object.keys(resolveLimits()))('the limit %s of a router is a bound or is refused', (option) => {
  for (const value of WRONG)
    expect(() => createDiagnosticsRouter({ inspectors: {}, auth: noopAuth(), limits: { [option]: value } })).toThrow(
      new RegExp(`^limits\\.${option} must be a whole number from 1 to `),
    )
})
