/** A factory for each declaration of options, with what it cannot do without. */
import { startNodeServer } from '../../src/adapters/node-listen.js'
import { openRecordingDirectory } from '../../src/adapters/recording-directory.js'
import { type BullmqQueue, createBullmqInspectors } from '../../src/bullmq/index.js'
import { startCooperativeSiteControlServer } from '../../src/control-server/index.js'
import * as site from '../../src/cooperative-site/index.js'
import { captureIncident, captureLast, createFlightRecorder } from '../../src/incident/index.js'
import { createDiagnosticsRouter, noopAuth } from '../../src/index.js'
import { createMcp } from '../../src/mcp/index.js'
import * as memory from '../../src/memory/index.js'
import { createMetrics } from '../../src/metrics/index.js'
import { followEventStreams, followMcpSessions } from '../../src/plugs/index.js'
import { followBrowser } from '../../src/plugs/playwright/index.js'
import { followSocketIo } from '../../src/plugs/socket.io/index.js'
import { followWebSockets } from '../../src/plugs/ws/index.js'
import { createProbes } from '../../src/probes/index.js'
import * as redis from '../../src/redis/index.js'
import { lineageOf, typesIn } from './declarations.js'

/** A client that is closed: what is made over it is only made. */
const client: redis.RedisClient = {
  call: async () => null,
  duplicate: () => client,
  on: () => client,
  status: 'end',
}
const nodeClient = { sendCommand: async () => null, duplicate: () => nodeClient, on: () => nodeClient, isOpen: false }
export const place = { client, deploymentId: 'd', onError: null }
const sites = site.createSiteRegistry()
const sessions = site.createSessionRegistry()
export const gateParts = {
  sites,
  sessions,
  policy: site.createSessionPolicy({ sessions }),
  connector: { call: async () => null },
}
export const relayParts = {
  ...gateParts,
  bus: site.createCooperativeSiteEventBus(),
  ingest: async () => ({ accepted: true, duplicate: false }),
  authenticateHost: () => null,
  authenticateViewer: () => null,
}
export const controlParts = { token: 'a'.repeat(16), sites, publisher: { publish: async () => ({}) as never } }

/** Nothing to follow: what follows it is only made, and ended at once. */
const emitter = { on: () => emitter, off: () => emitter }
const noSpace = { ...emitter, name: '/', sockets: new Map(), adapter: emitter }
const noServer = { ...emitter, sockets: noSpace, of: () => noSpace }
const plugParts = { connections: memory.createConnectionRegistry(), identify: () => null }
const browserParts = {
  contexts: memory.createContextRegistry(),
  browserWindows: memory.createBrowserWindowRegistry(),
  identify: () => null,
}
const pending = () => new Promise<never>(() => {})
/** A queue that is not connected. */
const queue: BullmqQueue = {
  name: 'q',
  getJob: pending,
  getJobState: pending,
  getJobs: pending,
  getJobCounts: pending,
  isPaused: pending,
  getMetrics: pending,
  getWorkers: async () => [],
}

type Make = (options: object) => unknown

/** What takes the options of each declaration. */
const MAKERS: Record<string, Make[]> = {
  ActionGateOptions: [
    (o) => site.createCooperativeActionGate({ ...gateParts, ...o }),
    (o) => site.createCooperativeSiteRouter({ ...relayParts, ...o }),
  ],
  BullmqOptions: [(o) => createBullmqInspectors({ queues: [queue], ...o })],
  CaptureLastOptions: [(o) => captureLast({ prefix: '', fetch: async () => Response.json({}) }, o)],
  CaptureOptions: [(o) => captureIncident({ prefix: '', fetch: async () => Response.json({}) }, o)],
  ClaimOptions: [memory.createDeduplicator, (o) => redis.createRedisDeduplicator({ ...place, ...o })],
  CommandDispatcherOptions: [memory.createCommandDispatcher],
  ConnectionOptions: [memory.createConnectionRegistry, (o) => redis.createRedisConnectionRegistry({ ...place, ...o })],
  ControlServerTimeouts: [(timeouts) => startCooperativeSiteControlServer({ ...controlParts, timeouts })],
  CooperativeSiteControlServerOptions: [(o) => startCooperativeSiteControlServer({ ...controlParts, ...o })],
  CooperativeSiteRouterOptions: [(o) => site.createCooperativeSiteRouter({ ...relayParts, ...o })],
  DiagnosticsRouterOptions: [(o) => createDiagnosticsRouter({ inspectors: {}, auth: noopAuth(), ...o })],
  DispatcherOptions: [memory.createCommandDispatcher, (o) => redis.createRedisCommandDispatcher({ ...place, ...o })],
  EventBusOptions: [site.createCooperativeSiteEventBus, (o) => redis.createRedisEventBus({ ...place, ...o })],
  FlightRecorderOptions: [(o) => createFlightRecorder({ inspectors: {}, ...o }).close()],
  FollowCallsOptions: [(o) => followWebSockets(emitter, { ...plugParts, ...o }).close()],
  FollowMcpOptions: [(o) => followMcpSessions({ ...plugParts, calls: memory.createRpcCorrelator(), ...o }).close()],
  FollowOptions: [
    (o) => followWebSockets(emitter, { ...plugParts, ...o }).close(),
    (o) => followSocketIo(noServer, { ...plugParts, ...o }).close(),
    (o) => followEventStreams({ ...plugParts, ...o }).close(),
    (o) => followBrowser({ ...emitter, contexts: () => [] }, { ...browserParts, ...o }).close(),
  ],
  HistoryOptions: [memory.createMessageHistory, (o) => redis.createRedisMessageHistory({ ...place, ...o })],
  IdempotencyStoreOptions: [site.createIdempotencyStore],
  IngestSiteMessageDeps: [(o) => site.ingestCooperativeSiteMessage({ ...relayParts, ...o }, {} as never)],
  ListenOptions: [(o) => startNodeServer(() => new Response(), o)],
  MemorySpillStoreOptions: [memory.createMemorySpillStore],
  RecordingDirectoryOptions: [(o) => openRecordingDirectory({ path: '/nowhere', ...o })],
  RedisIdempotencyStoreOptions: [(o) => redis.createRedisIdempotencyStore({ ...place, ...o })],
  McpOptions: [(o) => createMcp({ url: 'http://localhost', ...o })],
  MetricsOptions: [(o) => createMetrics({ inspectors: {}, auth: noopAuth(), ...o })],
  ProbesOptions: [(o) => createProbes({ inspectors: {}, ...o })],
  PresenceOptions: [
    memory.createContextRegistry,
    memory.createBrowserWindowRegistry,
    (o) => redis.createRedisContextRegistry({ ...place, ...o }),
    (o) => redis.createRedisBrowserWindowRegistry({ ...place, ...o }),
  ],
  RouterLimits: [(limits) => createDiagnosticsRouter({ inspectors: {}, auth: noopAuth(), limits })],
  RpcOptions: [memory.createRpcCorrelator, (o) => redis.createRedisRpcCorrelator({ ...place, ...o })],
  SessionOptions: [site.createSessionRegistry, (o) => redis.createRedisSessionRegistry({ ...place, ...o })],
  SiteOptions: [site.createSiteRegistry, (o) => redis.createRedisSiteRegistry({ ...place, ...o })],
  StoreOptions: [(o) => redis.createRedisFacilities({ ...place, ...o })],
  WatchLinkOptions: [(o) => redis.watchLink(nodeClient, o)],
}

/** Of each declaration, what takes it for one of the families of a composition. */
function withinComposition(name: string): Make[] {
  const compositions: [options: string, make: Make][] = [
    ['MemoryFacilitiesOptions', memory.createMemoryFacilities],
    ['RedisFacilitiesOptions', (o) => redis.createRedisFacilities({ ...place, ...o })],
  ]
  return compositions.flatMap(([options, make]) =>
    typesIn(options)
      .filter(([, type]) => lineageOf(type).includes(name))
      .map(
        ([family]): Make =>
          (o) =>
            make({ [family]: o }),
      ),
  )
}

/** What takes the options of a declaration. */
export const makersOf = (name: string): Make[] => [...(MAKERS[name] ?? []), ...withinComposition(name)]
