/** The relay router: hosts hand in messages and declare sites, viewers watch sessions and invoke actions. */
import { CLOSE_TIMEOUT_MS, type CloseResult, DEADLINE_MS, endWithin, withTimeout } from '../internal/async/deadline.js'
import { guardErrorHook } from '../internal/async/hook.js'
import { invalidOption, missingOption } from '../internal/contract/checks.js'
import type { CommandDispatcher } from '../internal/contract/delivery-dispatch.js'
import type { SiteEventBus } from '../internal/contract/event-bus.js'
import { checkSegmentId, Id } from '../internal/contract/ids.js'
import type { Ingest } from '../internal/contract/ingest.js'
import {
  count,
  defineOptions,
  func,
  hook,
  type Input,
  origins,
  readOptions,
  text,
  timer,
  withMethods,
} from '../internal/contract/options.js'
import type { Awaitable } from '../internal/contract/page.js'
import type { Principal, SessionRegistry } from '../internal/contract/sessions.js'
import type { SubscriptionRegistry } from '../internal/contract/subscriptions.js'
import { corsOf } from '../internal/http/cors.js'
import { createEngine, type Mountable, toHandler } from '../internal/http/engine.js'
import { ProblemError, toProblemError } from '../internal/http/problem.js'
import type { HttpReply } from '../internal/http/respond.js'
import { Refusal } from '../internal/refusal.js'
import { ActionGateOptions, openGate } from './actions/gate.js'
import type { ReplyTarget } from './actions/handlers.js'
import { type ApplicationConnections, createApplications } from './applications/applications.js'
import { PROJECTION_MS } from './events/ingest.js'
import type { Relay } from './relay-handlers.js'
import { RELAY_ROUTES } from './relay-routes.js'
import { createSessionStreams } from './sessions/streams.js'

/**
 * Returns the caller: `{ user_id, key? }`. `null` and an error are 401, `Refusal('forbidden')` is 403. Must not read
 * the body. Without a `key` the policy gets the user id only; with one it gets the whole returned object.
 */
export type Authenticate = (request: Request) => Awaitable<Principal | null>

/** Options of `createCooperativeSiteRouter`. */
export const CooperativeSiteRouterOptions = defineOptions({
  ...ActionGateOptions.shape,
  /** Registry of the sites. With `get` alone, sites can't be declared over HTTP: those methods return 501. */
  sites: withMethods<Relay['sites']>('get'),
  /** Registry of the sessions. With `watch`, a stream ends as soon as its session does. */
  sessions: withMethods<Pick<SessionRegistry, 'get' | 'watch'>>('get'),
  /** Takes in the messages of hosts, like `facilities.ingest`. It must return within `deadlineMs`. */
  ingest: func<Ingest>(),
  /** Event bus that events are published to and streams subscribe to. */
  bus: withMethods<SiteEventBus>('publish', 'subscribe'),
  /** Registry of the open event streams, for `/subscriptions`. @default they are not listed */
  subscriptions: withMethods<SubscriptionRegistry>('add').optional(),
  /**
   * Registry that applications in processes of their own are entered in while they are connected, like
   * `facilities.connections`. Needs `dispatcher`, and a `connector` of `createDispatchConnector`. @default applications
   * can't connect here: 501
   */
  connections: withMethods<ApplicationConnections>('connect', 'heartbeat', 'disconnect', 'currentInstance').optional(),
  /** Dispatcher of the commands for connected applications. Needs `connections`. @default applications can't connect here */
  dispatcher: withMethods<Pick<CommandDispatcher, 'attach'>>('attach').optional(),
  /** Maximum number of applications per user that are connected to this relay; one more gets 429. @default 100 */
  streamsPerHost: count(100),
  /** Authenticates hosts: applications that publish and declare sites. */
  authenticateHost: func<Authenticate>(),
  /** Authenticates viewers, who watch and invoke. */
  authenticateViewer: func<Authenticate>(),
  /** Public path of the router, as this process sees it. @default '' */
  prefix: text().default(''),
  /**
   * Exact origins whose pages may watch, invoke and publish, like `https://app.example.org`, with the cookies of the
   * user if they send them. @default []
   */
  cors: origins(),
  // A proxy that closes idle connections does so after 30 s or more.
  /** Silence in ms after which a stream sends a comment. @default 15000 */
  heartbeatMs: timer(15_000),
  // More than the tabs of one person, few enough that one viewer cannot hold the relay's sockets and memory.
  /** Maximum number of open event streams per viewer; one more gets 429. @default 100 */
  streamsPerViewer: count(100),
  /** Maximum number of open event streams per viewer and session; one more gets 429. @default 25 */
  streamsPerViewerInSession: count(25),
  /** Timeout in ms of one call of an authenticator, a store or the policy. @default 5000 */
  deadlineMs: timer(DEADLINE_MS),
  /** Time in ms that pending requests get when the router closes. @default 5000 */
  closeTimeoutMs: timer(CLOSE_TIMEOUT_MS),
  /**
   * Called with errors of an authenticator, the policy, a store or a connector, and with the route if the response was a 500.
   * Refusals are not errors. Errors that it throws change nothing. `null` disables it. @default console.error
   */
  onError: hook<(error: unknown, place?: { route: string | null }) => void>(),
})
export interface CooperativeSiteRouterOptions extends Input<typeof CooperativeSiteRouterOptions> {}

/** A fetch-style handler that never rejects, with the properties that a mount needs. */
export interface CooperativeSiteRouter extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether this router serves the path. */
  owns(pathname: string): boolean
  /** Event streams that are open now. */
  readonly streams: number
  /**
   * Ends every stream with `shutdown`, disconnects applications, responds 503 from then on, and resolves when pending calls have ended or after
   * `closeTimeoutMs`; the result counts those that had not.
   */
  close(): Promise<CloseResult>
}

/** @throws TypeError if one of the options that let applications connect is missing. */
function readApplicationPorts({ connections, dispatcher, connector }: CooperativeSiteRouterOptions) {
  if (connections === undefined && dispatcher === undefined) return undefined
  if (connections === undefined) throw missingOption('connections', 'the registry, given with "dispatcher"')
  if (dispatcher === undefined) throw missingOption('dispatcher', 'the dispatcher, given with "connections"')
  if (!REPLY_TARGET.safeParse(connector).success)
    throw new TypeError(
      invalidOption('connector', 'createDispatchConnector(), given with "connections" and "dispatcher"', connector),
    )
  return { connections, dispatcher, connector: connector as CooperativeSiteRouterOptions['connector'] & ReplyTarget }
}

const REPLY_TARGET = withMethods<ReplyTarget>('acknowledge', 'reply')

/** The state of one request. */
interface Visit {
  request: Request
  /** The route's path. */
  route: string | null
}

/** Without a key all callers of one user are the same principal, so the policy gets no other fields. */
function readPrincipal(who: Principal): Principal | undefined {
  if (!Id.safeParse(who.user_id).success) return undefined
  if (who.key === undefined) return { user_id: who.user_id }
  return Id.safeParse(who.key).success ? who : undefined
}

/**
 * Builds the relay router over sites, sessions, a bus, the ordinary ingest and a connector.
 *
 * @throws TypeError for an unusable prefix or when an authenticator or the policy is missing.
 * @example
 * const relay = createCooperativeSiteRouter({ sites, sessions, bus, ingest, connector, policy, authenticateHost,
 *   authenticateViewer, prefix: '/relay' })
 */
export function createCooperativeSiteRouter(options: CooperativeSiteRouterOptions): CooperativeSiteRouter {
  const read = readOptions(CooperativeSiteRouterOptions, options)
  const { sites, sessions, policy, bus, ingest, subscriptions, authenticateHost, authenticateViewer } = read
  const { heartbeatMs, streamsPerViewer, streamsPerViewerInSession, deadlineMs, closeTimeoutMs, now, newId } = read
  const onError = guardErrorHook(read.onError)
  const streams = createSessionStreams({
    sites,
    sessions,
    policy,
    bus,
    subscriptions,
    heartbeatMs,
    streamsPerViewer,
    streamsPerViewerInSession,
    now,
    newId,
    onError,
  })
  const gate = openGate({ ...read, onError })
  const withinDeadline = <T>(work: () => Awaitable<T>) => withTimeout(work, { ms: deadlineMs, code: 'unavailable' })
  const ports = readApplicationPorts(options)
  const applications =
    ports && createApplications({ ...ports, heartbeatMs, streamsPerHost: read.streamsPerHost, withinDeadline, onError })
  const relay: Relay = {
    sites,
    sessions,
    bus,
    ingest: (message) => withinDeadline(() => ingest(message)),
    projectionMs: Math.min(PROJECTION_MS, Math.ceil(deadlineMs / 2)),
    policy,
    gate,
    streams,
    applications,
    withinDeadline,
    now,
    onError,
  }
  // Keeps the Request objects alive: once collected, a Request no longer notifies its signal's listeners.
  const underWay = new Map<Promise<unknown>, Request>()
  let closed = false

  async function authenticate(request: Request, by: Authenticate): Promise<Principal> {
    try {
      const who = await withinDeadline(() => by(request))
      const principal = who && readPrincipal(who)
      if (principal) return principal
    } catch (error) {
      if (error instanceof Refusal && error.code === 'forbidden') throw error
      onError(error)
    }
    throw new ProblemError('unauthenticated')
  }

  const engine = createEngine({
    prefix: read.prefix,
    cors: corsOf(read.cors),
    routes: RELAY_ROUTES,
    checkParam: checkSegmentId,
    authenticate(visit: Visit, route) {
      const { request } = visit
      visit.route = route?.path ?? null
      if (closed) throw new ProblemError('unavailable')
      if (route !== undefined)
        return authenticate(request, route.who === 'host' ? authenticateHost : authenticateViewer)
      // An unknown path gets a 404 only for callers that some route would accept.
      return authenticate(request, authenticateHost).catch(() => authenticate(request, authenticateViewer))
    },
    answer: ({ handle }, { who, params }, { request }) => handle(relay, { request, who, params }),
    refuse(error, { route }) {
      const problem = toProblemError(error, 'facility')
      if (problem.code === 'internal' || problem.code === 'body_consumed') onError(problem.cause, { route })
      return problem
    },
  })

  async function reply(request: Request): Promise<HttpReply> {
    const answer = engine.reply({ request, route: null })
    underWay.set(answer, request)
    try {
      return await answer
    } finally {
      underWay.delete(answer)
    }
  }

  return Object.defineProperty(
    Object.assign(toHandler(reply, onError), {
      prefix: engine.prefix,
      owns: engine.owns,
      async close() {
        closed = true
        streams.close()
        const leaving = applications?.close() ?? []
        return endWithin([...underWay.keys(), ...leaving], closeTimeoutMs)
      },
    }),
    'streams',
    { get: () => streams.size },
  ) as CooperativeSiteRouter
}
