/** The relay router: hosts hand in messages and declare sites, viewers watch sessions and invoke actions. */
import { CLOSE_TIMEOUT_MS, type Ending, endWithin } from '../async/ending.js'
import { guardHook } from '../async/hook.js'
import { DEADLINE_MS, withTimeout } from '../async/timeout.js'
import type { SiteEventBus } from '../contract/event-bus.js'
import { checkId, checkSegment, Id } from '../contract/ids.js'
import { resolveBounds, TIMER_MAX_MS } from '../contract/options.js'
import type { Awaitable } from '../contract/page.js'
import type { Principal, SessionRegistry } from '../contract/sessions.js'
import { type FieldError, ProblemError } from '../http/problem.js'
import { toProblemError } from '../http/refusals.js'
import { problemReply, type Reply, toResponse } from '../http/respond.js'
import { createOwns, parsePrefix, splitUrl } from '../http/target.js'
import { Refusal } from '../refusal.js'
import { type ActionGateOptions, createCooperativeActionGate } from './actions/gate.js'
import { PROJECTION_MS } from './events/ingest.js'
import { RELAY_ROUTES, type Relay, type RelayHandler, type RelayRoute } from './relay-routes.js'
import { createSessionStreams } from './sessions/streams.js'

/**
 * Who asks: `{ user_id, key? }`. `null` and a throw are 401, `Refusal('forbidden')` is 403. Must not read the body. Without a
 * `key` the policy is shown the user id alone; with one it is shown all that was answered.
 */
export type Authenticate = (request: Request) => Awaitable<Principal | null>

// Bytes of a URL; a longer one cannot be a request of ours.
const URL_LENGTH = 8_192
// A proxy that closes idle connections does so after 30 s or more.
const HEARTBEAT_MS = 15_000

export interface CooperativeSiteRouterOptions
  extends Omit<ActionGateOptions, 'sites' | 'sessions'>,
    Pick<Relay, 'sites' | 'ingest'> {
  sessions: Pick<SessionRegistry, 'get' | 'watch'>
  bus: SiteEventBus
  authenticateHost: Authenticate
  authenticateViewer: Authenticate
  /** The whole public path under which this process sees the router. @default '' */
  prefix?: string | undefined
  /** Silence after which a stream writes a comment. @default 15000 */
  heartbeatMs?: number | undefined
  /** For one answer of an authenticator, a store or the policy. @default 5000 */
  deadlineMs?: number | undefined
  /** For what is under way when the router is closed. @default 5000 */
  closeTimeoutMs?: number | undefined
}

/** A fetch-style handler that never rejects, and what a mount needs to know of it. */
export interface CooperativeSiteRouter {
  (request: Request): Promise<Response>
  /** The same function, for hosts that take an object with `fetch`. */
  fetch(request: Request): Promise<Response>
  /** The same answer before it becomes a `Response`: what our Node adapter sends, at a fraction of the cost. */
  reply(request: Request): Promise<Reply>
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether a request with this path is this router's to answer. */
  owns(pathname: string): boolean
  /** Event streams that are open now. */
  readonly streams: number
  /**
   * Ends every stream with `shutdown`, answers 503 from now on, and resolves when the calls under way have ended, or
   * after `closeTimeoutMs`, to how many had not.
   */
  close(): Promise<Ending>
}

/** Without a key all of one user are one principal, so that nothing else of it is shown to the policy. */
function readPrincipal(who: Principal): Principal | undefined {
  if (!Id.safeParse(who.user_id).success) return undefined
  if (who.key === undefined) return { user_id: who.user_id }
  return Id.safeParse(who.key).success ? who : undefined
}

interface Match {
  route: RelayRoute
  params: Record<string, string | null>
}

function match(segments: (string | null)[]): Match | undefined {
  for (const route of RELAY_ROUTES) {
    if (route.path.length !== segments.length) continue
    const params: Match['params'] = {}
    const fits = route.path.every((part, i) => {
      const segment = segments[i] as string | null
      if (!part.startsWith('{')) return part === segment
      params[part.slice(1, -1)] = segment
      return segment !== ''
    })
    if (fits) return { route, params }
  }
  return undefined
}

function checkParams(given: Match['params']): Record<string, string> {
  const errors = Object.entries(given).flatMap(([name, value]): FieldError[] => {
    const reason = value === null ? 'is not valid percent-encoded UTF-8' : (checkId(value) ?? checkSegment(value))
    return reason === undefined ? [] : [{ in: 'path', name, reason }]
  })
  if (errors.length > 0) throw new ProblemError('invalid_path', { errors })
  return given as Record<string, string>
}

function handlerOf({ methods }: RelayRoute, method: string): RelayHandler {
  const handler = Object.hasOwn(methods, method) ? methods[method] : undefined
  if (handler) return handler
  throw new ProblemError('method_not_allowed', { headers: { allow: Object.keys(methods).join(', ') } })
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
  const { authenticateHost, authenticateViewer, policy } = options
  const { heartbeatMs, deadlineMs, closeTimeoutMs } = resolveBounds(options, {
    heartbeatMs: [HEARTBEAT_MS, TIMER_MAX_MS],
    deadlineMs: [DEADLINE_MS, TIMER_MAX_MS],
    closeTimeoutMs: [CLOSE_TIMEOUT_MS, TIMER_MAX_MS],
  })
  const { now = Date.now, newId = () => crypto.randomUUID() } = options
  if (typeof authenticateHost !== 'function') throw new TypeError('authenticateHost is required')
  if (typeof authenticateViewer !== 'function') throw new TypeError('authenticateViewer is required')
  if (typeof policy?.check !== 'function') throw new TypeError('policy is required')
  const prefix = parsePrefix(options.prefix ?? '')
  const owns = createOwns(
    prefix,
    RELAY_ROUTES.map(({ path }) => `/${path.join('/')}`),
  )
  const report = guardHook(options.onError)
  const { sites, sessions, bus, ingest } = options
  const streams = createSessionStreams({ sites, sessions, policy, bus, heartbeatMs, now, newId, onError: report })
  const gate = createCooperativeActionGate({ ...options, onError: report })
  const within = <T>(work: () => Awaitable<T>) => withTimeout(work, { ms: deadlineMs, code: 'unavailable' })
  const relay: Relay = {
    sites,
    sessions,
    bus,
    ingest: (message) => within(() => ingest(message)),
    projectionMs: Math.min(PROJECTION_MS, Math.ceil(deadlineMs / 2)),
    policy,
    gate,
    streams,
    within,
    now,
    onError: report,
  }
  // With their requests: a Request that is collected no longer tells its signal’s listeners that the client has left.
  const underWay = new Map<Promise<unknown>, Request>()
  let closed = false

  async function authenticate(request: Request, by: Authenticate): Promise<Principal> {
    try {
      const who = await within(() => by(request))
      const principal = who && readPrincipal(who)
      if (principal) return principal
    } catch (error) {
      if (error instanceof Refusal && error.code === 'forbidden') throw error
      report(error)
    }
    throw new ProblemError('unauthenticated')
  }

  /** A path that is none is told only to those whom some path would let in. */
  async function authenticateAny(request: Request): Promise<void> {
    await authenticate(request, authenticateHost).catch(() => authenticate(request, authenticateViewer))
  }

  async function dispatch(request: Request, pathname: string): Promise<Reply> {
    const matched = owns(pathname) ? match(prefix.strip(pathname)) : undefined
    if (matched === undefined) {
      await authenticateAny(request)
      throw new ProblemError('route_not_found')
    }
    const { route, params } = matched
    const who = await authenticate(request, route.who === 'host' ? authenticateHost : authenticateViewer)
    const handler = handlerOf(route, request.method)
    return handler(relay, { request, who, params: checkParams(params) })
  }

  async function handle(request: Request): Promise<Reply> {
    try {
      const pathname = splitUrl(request.url)?.pathname
      if (pathname === undefined || !prefix.covers(pathname)) throw new ProblemError('route_not_found')
      if (request.url.length > URL_LENGTH) throw new ProblemError('uri_too_long')
      if (closed) throw new ProblemError('unavailable')
      return await dispatch(request, pathname)
    } catch (error) {
      const { code, extra, cause } = toProblemError(error, 'facility')
      if (code === 'internal') report(cause)
      return problemReply(code, extra)
    }
  }

  async function reply(request: Request): Promise<Reply> {
    const answer = handle(request)
    underWay.set(answer, request)
    try {
      return await answer
    } finally {
      underWay.delete(answer)
    }
  }

  const router = async (request: Request) => toResponse(await reply(request), request.method === 'HEAD')
  return Object.defineProperty(
    Object.assign(router, {
      fetch: router,
      reply,
      prefix: prefix.path,
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
