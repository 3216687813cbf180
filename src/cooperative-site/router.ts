/** The relay router: hosts hand in messages and declare sites, viewers watch sessions and invoke actions. */
import { CLOSE_TIMEOUT_MS, type CloseResult, endWithin } from '../async/ending.js'
import { guardErrorHook } from '../async/hook.js'
import { DEADLINE_MS, withTimeout } from '../async/time-limit.js'
import {
  boundsIn,
  checkOptions,
  defineBounds,
  FUNCTION,
  having,
  needed,
  resolveBounds,
  type Shape,
  TEXT,
  TIMER_MAX_MS,
} from '../contract/checks.js'
import type { SiteEventBus } from '../contract/event-bus.js'
import { checkSegmentId, Id, randomUuid } from '../contract/ids.js'
import type { Awaitable } from '../contract/page.js'
import type { Principal, SessionRegistry } from '../contract/sessions.js'
import type { SubscriptionRegistry } from '../contract/subscriptions.js'
import { createEngine, type Mountable, toHandler } from '../http/engine.js'
import { ProblemError, toProblemError } from '../http/problem.js'
import type { HttpReply } from '../http/respond.js'
import { Refusal } from '../refusal.js'
import { type ActionGateOptions, GATE_OPTIONS, openGate } from './actions/gate.js'
import { PROJECTION_MS } from './events/ingest.js'
import type { Relay } from './relay-handlers.js'
import { RELAY_ROUTES } from './relay-routes.js'
import { createSessionStreams } from './sessions/streams.js'

/**
 * Returns the caller: `{ user_id, key? }`. `null` and an error are 401, `Refusal('forbidden')` is 403. Must not read
 * the body. Without a `key` the policy gets the user id only; with one it gets the whole returned object.
 */
export type Authenticate = (request: Request) => Awaitable<Principal | null>

// More than one person's tabs, few enough that one viewer cannot exhaust the relay's sockets and memory.
const STREAMS_PER_VIEWER = 100
const STREAMS_PER_VIEWER_IN_SESSION = 25

// A proxy that closes idle connections does so after 30 s or more.
const HEARTBEAT_MS = 15_000

export interface CooperativeSiteRouterOptions
  extends Omit<ActionGateOptions, 'sites' | 'sessions' | 'onError'>,
    Pick<Relay, 'sites' | 'ingest'> {
  /** Where sessions are read. With `watch` a stream ends as soon as its session does. */
  sessions: Pick<SessionRegistry, 'get' | 'watch'>
  /** Where events are published, and streams subscribe. */
  bus: SiteEventBus
  /** Who is told of the event streams that are open, for `/subscriptions`. Without it nobody is. */
  subscriptions?: SubscriptionRegistry | undefined
  /** Who publishes and declares sites: an application. */
  authenticateHost: Authenticate
  /** Who watches and invokes. */
  authenticateViewer: Authenticate
  /** The whole public path under which this process sees the router. @default '' */
  prefix?: string | undefined
  /** Silence after which a stream writes a comment. @default 15000 */
  heartbeatMs?: number | undefined
  /** Event streams that one viewer may hold open at this relay. A further one is refused with 429. @default 100 */
  streamsPerViewer?: number | undefined
  /** Event streams that one viewer may hold open in one session. A further one is refused with 429. @default 25 */
  streamsPerViewerInSession?: number | undefined
  /** For one answer of an authenticator, a store or the policy. @default 5000 */
  deadlineMs?: number | undefined
  /** For what is under way when the router is closed. @default 5000 */
  closeTimeoutMs?: number | undefined
  /**
   * Told of what nobody is shown: what an authenticator, the policy, a store or a connector threw, with the route where the
   * answer was a 500. Refusals are no errors. What it does wrong changes nothing. `null` for nobody. @default console.error
   */
  onError?: ((error: unknown, place?: { route: string | null }) => void) | null | undefined
}

const BOUNDS = defineBounds({
  heartbeatMs: [HEARTBEAT_MS, TIMER_MAX_MS],
  streamsPerViewer: STREAMS_PER_VIEWER,
  streamsPerViewerInSession: STREAMS_PER_VIEWER_IN_SESSION,
  deadlineMs: [DEADLINE_MS, TIMER_MAX_MS],
  closeTimeoutMs: [CLOSE_TIMEOUT_MS, TIMER_MAX_MS],
})

const OPTIONS: Shape<CooperativeSiteRouterOptions> = {
  ...GATE_OPTIONS,
  ...boundsIn(BOUNDS),
  bus: needed({ ...having('publish', 'subscribe'), said: 'an event bus with publish(), subscribe()' }),
  ingest: needed({ ...FUNCTION, said: 'a function, like `facilities.ingest`' }),
  subscriptions: having('add'),
  authenticateHost: needed(FUNCTION),
  authenticateViewer: needed(FUNCTION),
  prefix: TEXT,
}

/** A fetch-style handler that never rejects, with the properties that a mount needs. */
export interface CooperativeSiteRouter extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether this router serves the path. */
  owns(pathname: string): boolean
  /** Event streams that are open now. */
  readonly streams: number
  /**
   * Ends every stream with `shutdown`, responds 503 from then on, and resolves when pending calls have ended or after
   * `closeTimeoutMs`; the result counts those that had not.
   */
  close(): Promise<CloseResult>
}

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
  checkOptions(options, OPTIONS)
  const { authenticateHost, authenticateViewer, policy } = options
  const { deadlineMs, closeTimeoutMs, ...ofStreams } = resolveBounds(options, BOUNDS)
  const { now = Date.now, newId = randomUuid } = options
  const onError = guardErrorHook(options.onError)
  const { sites, sessions, bus, ingest, subscriptions } = options
  const streams = createSessionStreams({
    sites,
    sessions,
    policy,
    bus,
    subscriptions,
    ...ofStreams,
    now,
    newId,
    onError,
  })
  const gate = openGate({ ...options, onError })
  const withinDeadline = <T>(work: () => Awaitable<T>) => withTimeout(work, { ms: deadlineMs, code: 'unavailable' })
  const relay: Relay = {
    sites,
    sessions,
    bus,
    ingest: (message) => withinDeadline(() => ingest(message)),
    projectionMs: Math.min(PROJECTION_MS, Math.ceil(deadlineMs / 2)),
    policy,
    gate,
    streams,
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
    prefix: options.prefix ?? '',
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
      if (problem.code === 'internal') onError(problem.cause, { route })
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

  const { prefix, owns } = engine
  return Object.defineProperty(
    Object.assign(toHandler(reply, onError), {
      prefix,
      owns,
      async close() {
        closed = true
        streams.close()
        return endWithin(underWay.keys(), closeTimeoutMs)
      },
    }),
    'streams',
    { get: () => streams.size },
  ) as CooperativeSiteRouter
}
