/** The diagnostics router: authentication, required capabilities, and calls to the hooks. */
import { Deadline } from '../async/deadline.js'
import { BadRecord } from '../contract/bad-record.js'
import { CAPABILITIES, capabilitiesOf } from '../contract/capabilities.js'
import type { Inspectors } from '../contract/families.js'
import { checkId, toTimestamp } from '../contract/ids.js'
import { deepFreeze, type JsonObject } from '../contract/json.js'
import type { Awaitable } from '../contract/page.js'
import type { AdminPrincipal } from '../http/auth.js'
import { corsOf } from '../http/cors.js'
import { createEngine, type Mountable, type Route, toHandler } from '../http/engine.js'
import { remoteAddressOf } from '../http/guard.js'
import { ProblemError } from '../http/problem.js'
import { readQuery } from '../http/read.js'
import type { HttpReply } from '../http/respond.js'
import { VERSION } from '../version.js'
import { type AccessScope, createAccessScopes } from './authorization.js'
import { guardHooks, requestIdOf } from './hooks.js'
import { AS_OF_HEADER, createInstants, INSTANTS, instantIn, type PastAnswers } from './instants.js'
import { openApiDocument } from './openapi.js'
import { type DiagnosticsRouterOptions, type ResolvedOptions, resolveOptions } from './options.js'
import { type AnsweredVisit, answerTo, createQuestions, type RequestedRoute, requestedRoutes } from './question.js'
import { type DiagnosticsRoute, OPENAPI_PATH, type RouteEntry, type Service } from './route.js'
import { ROUTES } from './routes.js'

// What a router reports about itself, for callers with full access and with access to some users.

/** A route as the index lists it. */
type Listed = Pick<DiagnosticsRoute, 'path' | 'summary' | 'requires' | 'scopable' | 'operation'>

/**
 * @returns a function that returns what the router reports about itself, over some of its inspectors and the routes
 * that are open.
 */
function createServices({
  deployment,
  extensions,
  dashboardPath,
  limits,
  recorder,
  prefix,
}: Pick<ResolvedOptions, 'deployment' | 'extensions' | 'dashboardPath' | 'limits' | 'recorder' | 'prefix'>): (
  inspectors: Inspectors,
  isOpen?: (route: Pick<DiagnosticsRoute, 'scopable'>) => boolean,
) => Service {
  let document: JsonObject | undefined
  // Created on first use: most processes never need it.
  function openApi(): JsonObject {
    document ??= deepFreeze(openApiDocument({ limits, prefix }))
    return document
  }

  return (inspectors, isOpen = () => true) => {
    const offered = CAPABILITIES.offeredBy(inspectors)
    const offers = (name: string) => offered.has(name)
    const routes = ROUTES.map(
      (route: Listed): RouteEntry => ({
        method: 'GET',
        path: route.path,
        summary: route.summary,
        capability: route.operation ?? route.requires[0] ?? null,
        available: isOpen(route) && (route.requires.length === 0 || route.requires.some(offers)),
      }),
    )
    const available = new Set(routes.filter((route) => route.available).map(({ path }) => path))
    const views = new Set(
      ROUTES.flatMap(({ operation, path }) => (operation && available.has(path) ? [operation] : [])),
    )
    return {
      index: deepFreeze({
        service: 'relayscope',
        version: VERSION,
        deployment_id: deployment.id,
        mode: deployment.mode,
        dashboard_path: dashboardPath,
        openapi_path: OPENAPI_PATH,
        routes,
      }),
      capabilities: deepFreeze(
        capabilitiesOf(inspectors, { ...extensions, deployment_id: deployment.id, mode: deployment.mode }, [
          ...views,
          // A replay says it in its entry `incident`, and has the capabilities of what it replays.
          ...(recorder && !Object.hasOwn(extensions, 'incident') ? [INSTANTS] : []),
        ]),
      ),
      offers,
      isAvailable: (path) => available.has(path),
      openApi,
    }
  }
}

/** The router: a fetch-style handler that never rejects, with what adapters need. */
export interface DiagnosticsRouter extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** The routes, with whether their inspectors are present. */
  readonly routes: readonly RouteEntry[]
  /**
   * Whether a path belongs to this router; adapters pass on other requests. Each path has one spelling: dot segments,
   * empty segments, and encoded letters of the prefix or of a literal do not belong to it.
   */
  owns(pathname: string): boolean
}

// Invalid records per request that are reported one by one; a page has up to a thousand, an aggregate more.
const RECORDS_TOLD = 100

const DEPLOYMENT_HEADER = 'x-expected-deployment-id'

/** The state of one request, for the hooks. */
interface Visit extends AnsweredVisit {
  remoteAddress: string | null
  deadline: Deadline
  /** The name of the caller, once authenticated. */
  principal?: string
  /** The route's path. */
  route: string | null
  params: Readonly<Record<string, string>>
  filters: Readonly<Record<string, unknown>>
  /**
   * Errors of sources that were passed to `onError` already: an aggregate that fails with one of them does not repeat
   * it.
   */
  handled: Set<unknown>
  /** Number of records that were left out. */
  leftOut: number
  /** The router of the instant that an authenticated request asks for, and the time of the reading that it shows. */
  past?: { router: DiagnosticsRouter; readAt: number }
}

/**
 * Creates the diagnostics router over the given inspectors.
 *
 * @throws TypeError or RangeError that names the invalid option. No inspector is called at construction.
 * @example
 * const diagnostics = createDiagnosticsRouter({ inspectors, auth: apiKeyAuth(key), prefix: '/ops/diagnostics' })
 * await diagnostics(new Request('http://localhost/ops/diagnostics/capabilities'))
 */
export function createDiagnosticsRouter<Principal extends AdminPrincipal = AdminPrincipal>(
  options: DiagnosticsRouterOptions<Principal>,
): DiagnosticsRouter {
  return buildRouter(options)
}

type GuardedHooks = ReturnType<typeof guardHooks>

function newVisit(request: Request, info: unknown, deadline: Deadline): Visit {
  return {
    request,
    remoteAddress: remoteAddressOf(info, request),
    deadline,
    route: null,
    params: {},
    filters: {},
    handled: new Set(),
    leftOut: 0,
    isPartial: false,
  }
}

/** Reports requests and their errors to the hooks. @param timeOfAccess Returns the time of access records, in epoch ms. */
function createReports(hooks: GuardedHooks, requestId: ResolvedOptions['requestId'], timeOfAccess: () => number) {
  /** Unauthenticated callers must not be able to flood the error hook. */
  function unplacedError({ principal }: Visit, error: unknown): void {
    if (principal === undefined) hooks.unauthenticatedError(error)
    else hooks.error(error, { route: null })
  }

  return {
    unplacedError,

    /** After a client disconnects, the errors only report the abort. They are not logged. */
    error(visit: Visit, error: unknown, source?: string): void {
      const { request, route } = visit
      visit.isPartial = true
      if (request.signal.aborted) return
      const fault = error instanceof BadRecord ? error.fault : undefined
      if (fault && ++visit.leftOut > RECORDS_TOLD) return
      hooks.error(error, { route, ...(source === undefined ? {} : { source }), ...fault })
    },

    /** Reports how many records were left out without a report of their own, and the request itself. */
    end(visit: Visit, status: number, startedAt: number): void {
      const { request, principal = null, route, params, filters, answer } = visit
      const rest = visit.leftOut - RECORDS_TOLD
      if (rest > 0) hooks.error(new BadRecord(`${rest} more records were left out of the answer`), { route })
      // Log unauthenticated requests only if they were rejected with 403.
      if ((principal === null && status !== 403) || !hooks.hasAccessHook()) return
      hooks.access({
        at: toTimestamp(startedAt),
        principal,
        method: request.method,
        route,
        params,
        filters,
        status,
        duration_ms: Math.max(0, timeOfAccess() - startedAt),
        item_count: answer?.itemCount ?? null,
        complete: answer?.complete ?? null,
        remote_address: visit.remoteAddress,
        request_id: requestIdOf(requestId, request, (error) => unplacedError(visit, error)),
      })
    },
  }
}

function checkDeployment(request: Request, id: string | null): void {
  const expected = request.headers.get(DEPLOYMENT_HEADER)
  if (expected !== null && expected !== id) throw new ProblemError('deployment_mismatch')
}

function checkCapability(requires: DiagnosticsRoute['requires'], offers: Service['offers']): void {
  const need = requires[0]
  if (need === undefined || requires.some(offers)) return
  // Of an inspector that is there the operation is missing; else it is the inspector.
  const code = offers(CAPABILITIES.inspectorOf(need)) ? 'operation_absent' : 'inspector_absent'
  throw new ProblemError(code, { capability: need })
}

interface PastOptions<Principal extends AdminPrincipal> {
  options: DiagnosticsRouterOptions<Principal>
  hooks: GuardedHooks
  now: () => number
  prefix: string
}

/** @returns a function that sets the router of the instant that an authenticated request asks for, if it asks for one. */
function createPast<Principal extends AdminPrincipal>(
  recorder: PastAnswers,
  { options, hooks, now, prefix }: PastOptions<Principal>,
) {
  // The caller is authenticated before anything is read of the past, and only once.
  const principals = new WeakMap<Request, Principal>()
  const pastAt = createInstants(recorder, (composition, instant) => ({
    readAt: composition.now(),
    router: buildRouter<Principal>(
      {
        ...options,
        ...composition,
        extensions: { ...options.extensions, ...composition.extensions },
        auth: { authenticate: (request) => principals.get(request) ?? null },
        prefix: `${prefix}/at/${instant}`,
        recorder: undefined,
        // The recorder does not record every route: this is not an error of the host.
        onError: (error, place) => {
          if ((error as { code?: unknown } | null)?.code !== 'unavailable') hooks.error(error, place)
        },
      },
      now,
    ),
  }))

  /** @throws ProblemError for an instant that was not recorded, or cannot be read. */
  return async (visit: Visit, principal: Principal): Promise<void> => {
    const instant = instantIn(new URL(visit.request.url).pathname, prefix)
    if (instant === null) return
    principals.set(visit.request, principal)
    try {
      visit.past = await visit.deadline.race(pastAt(instant))
    } catch (error) {
      throw error instanceof ProblemError ? error : new ProblemError('inspector_unavailable', {}, { cause: error })
    }
  }
}

/** @param clock Returns the time of access records, in epoch ms: the option `now` may be that of a past instant. */
function buildRouter<Principal extends AdminPrincipal>(
  options: DiagnosticsRouterOptions<Principal>,
  clock?: () => number,
): DiagnosticsRouter {
  const resolved = resolveOptions(options)
  const { inspectors, auth, authorize, deployment, deadlineMs, limits, now, requestId, recorder, prefix } = resolved
  const timeOfAccess = clock ?? now
  const hooks = guardHooks(resolved)
  const reports = createReports(hooks, requestId, timeOfAccess)
  const { whole, accessScopeOf } = createAccessScopes({ inspectors, authorize, describe: createServices(resolved) })
  const { offers, index } = whole.service

  async function authenticate(visit: Visit): Promise<Principal> {
    try {
      const principal = await visit.deadline.race(auth.authenticate(visit.request, visit))
      const name = principal?.name
      if (principal && typeof name === 'string') {
        visit.principal = name
        return principal
      }
    } catch (error) {
      if (error instanceof ProblemError) throw error
      reports.unplacedError(visit, error)
    }
    throw new ProblemError('forbidden')
  }

  const asked = requestedRoutes(limits)
  const question = createQuestions(resolved)

  /** What a principal may see on a route; evaluated after validation and before any inspector is called. */
  function accessScopeFor(principal: Principal, { route }: RequestedRoute, visit: Visit): Awaitable<AccessScope> {
    if (!authorize) return whole
    const { params, filters, request, deadline } = visit
    // Copies: changes by the host must not affect the request or the access record.
    const copied = { params: { ...params }, filters: { ...filters } }
    return accessScopeOf(route, { principal, route: route.path, ...copied, request }, deadline)
  }

  const engine = createEngine<Route<RequestedRoute>, Visit, Principal, HttpReply>({
    prefix,
    cors: corsOf(resolved.cors),
    routes: asked.map((route) => ({ path: route.path, methods: { GET: route } })),
    checkParam: checkId,
    async authenticate(visit: Visit, route) {
      visit.route = route?.path ?? null
      const principal = await authenticate(visit)
      if (findPast) await findPast(visit, principal)
      return principal
    },
    admit({ request }, { route }) {
      checkDeployment(request, deployment.id)
      checkCapability(route.requires, offers)
    },
    async answer(prepared, { who: principal, params, search }, visit) {
      const { deadline, handled } = visit
      visit.params = params
      const given = readQuery(prepared, search)
      visit.filters = given.filters
      const accessScope = await accessScopeFor(principal, prepared, visit)
      const put = question(prepared, { params, given, accessScope, deadline }, handled, (error, source) =>
        reports.error(visit, error, source),
      )
      const compared = prepared.isCompared
        ? JSON.stringify([prepared.route.path, params, search, accessScope.users ?? null])
        : null
      return answerTo(put, compared, prepared.route, visit)
    },
    refuse(error, visit) {
      const problem = error instanceof ProblemError ? error : new ProblemError('internal', {}, { cause: error })
      const { cause } = problem
      if (cause !== undefined && !visit.handled.has(cause)) reports.error(visit, cause)
      return problem
    },
  })
  const findPast = recorder && createPast(recorder, { options, hooks, now, prefix: engine.prefix })

  async function reply(request: Request, info: unknown): Promise<HttpReply> {
    const startedAt = timeOfAccess()
    const visit = newVisit(request, info, new Deadline(deadlineMs, request))
    const given = await engine.reply(visit)
    visit.deadline.clear()
    if (visit.past) {
      const { router, readAt } = visit.past
      const reply = await router.reply(request, info)
      // A refusal is the same for every caller who may not read it.
      if (reply.status >= 400) return reply
      return { ...reply, headers: { ...reply.headers, [AS_OF_HEADER]: toTimestamp(readAt) } }
    }
    reports.end(visit, given.status, startedAt)
    return given
  }

  const handler = toHandler(reply, (error) => hooks.error(error, { route: null }))
  return Object.assign(handler, { prefix: engine.prefix, routes: index.routes, owns: engine.owns })
}
