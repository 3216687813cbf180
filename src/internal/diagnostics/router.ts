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
import { isAnyNamed, isNamed, isWhole } from '../http/etag.js'
import { remoteAddressOf } from '../http/guard.js'
import { ProblemError } from '../http/problem.js'
import { type RequestOutcome, readQuery } from '../http/read.js'
import { type HttpReply, jsonReply, notModified } from '../http/respond.js'
import { VERSION } from '../version.js'
import { type AccessScope, createAccessScopes } from './authorization.js'
import { guardHooks, requestIdOf } from './hooks.js'
import { AS_OF_HEADER, createInstants, INSTANTS, instantIn } from './instants.js'
import { openApiDocument } from './openapi.js'
import { type DiagnosticsRouterOptions, type ResolvedOptions, resolveOptions } from './options.js'
import { createQuestions, type RequestedRoute, requestedRoutes, tagOfAnswer, tagOfVersion } from './question.js'
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
interface Visit {
  request: Request
  remoteAddress: string | null
  deadline: Deadline
  /** The name of the caller, once authenticated. */
  principal?: string
  /** The route's path. */
  route: string | null
  params: Readonly<Record<string, string>>
  filters: Readonly<Record<string, unknown>>
  answer?: RequestOutcome
  /**
   * Errors of sources that were passed to `onError` already: an aggregate that fails with one of them does not repeat
   * it.
   */
  handled: Set<unknown>
  /** Number of records that were left out. */
  leftOut: number
  /** Whether a part of the response failed: then the version of the sources must not be used as its tag. */
  isPartial: boolean
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

/** @param clock Returns the time of access records, in epoch ms: the option `now` may be that of a past instant. */
function buildRouter<Principal extends AdminPrincipal>(
  options: DiagnosticsRouterOptions<Principal>,
  clock?: () => number,
): DiagnosticsRouter {
  const resolved = resolveOptions(options)
  const { inspectors, auth, authorize, deployment, deadlineMs, limits, now, requestId, recorder, prefix } = resolved
  const timeOfAccess = clock ?? now
  const hooks = guardHooks(resolved)
  const { whole, accessScopeOf } = createAccessScopes({
    inspectors,
    authorize,
    describe: createServices(resolved),
  })
  const { offers, index } = whole.service

  /** Unauthenticated callers must not be able to flood the error hook. */
  function reportUnplaced({ principal }: Visit, error: unknown): void {
    if (principal === undefined) hooks.unauthenticatedError(error)
    else hooks.error(error, { route: null })
  }

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
      reportUnplaced(visit, error)
    }
    throw new ProblemError('forbidden')
  }

  function checkDeployment(request: Request): void {
    const expected = request.headers.get(DEPLOYMENT_HEADER)
    if (expected !== null && expected !== deployment.id) throw new ProblemError('deployment_mismatch')
  }

  function checkCapability(requires: DiagnosticsRoute['requires']): void {
    const need = requires[0]
    if (need === undefined || requires.some(offers)) return
    // Of an inspector that is there the operation is missing; else it is the inspector.
    const code = offers(CAPABILITIES.inspectorOf(need)) ? 'operation_absent' : 'inspector_absent'
    throw new ProblemError(code, { capability: need })
  }

  /** After a client disconnects, the errors only report the abort. They are not logged. */
  function handleError(visit: Visit, error: unknown, source?: string): void {
    const { request, route } = visit
    visit.isPartial = true
    if (request.signal.aborted) return
    const fault = error instanceof BadRecord ? error.fault : undefined
    if (fault && ++visit.leftOut > RECORDS_TOLD) return
    hooks.error(error, { route, ...(source === undefined ? {} : { source }), ...fault })
  }

  function endErrors({ route, leftOut }: Visit): void {
    const rest = leftOut - RECORDS_TOLD
    if (rest > 0) hooks.error(new BadRecord(`${rest} more records were left out of the answer`), { route })
  }

  const principals = new WeakMap<Request, Principal>()
  // The caller is authenticated before anything is read of the past, and only once.
  const pastAt =
    recorder &&
    createInstants(recorder, (composition, instant) => ({
      readAt: composition.now(),
      router: buildRouter<Principal>(
        {
          ...options,
          ...composition,
          extensions: { ...options.extensions, ...composition.extensions },
          auth: { authenticate: (request) => principals.get(request) ?? null },
          prefix: `${engine.prefix}/at/${instant}`,
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
  async function findPast(visit: Visit, principal: Principal): Promise<void> {
    const instant = pastAt ? instantIn(new URL(visit.request.url).pathname, engine.prefix) : null
    if (!pastAt || instant === null) return
    principals.set(visit.request, principal)
    try {
      visit.past = await visit.deadline.race(pastAt(instant))
    } catch (error) {
      throw error instanceof ProblemError ? error : new ProblemError('inspector_unavailable', {}, { cause: error })
    }
  }

  const asked = requestedRoutes(limits)
  const question = createQuestions(resolved)

  /** What a principal may see on a route; evaluated after validation and before any inspector is called. */
  function accessScopeFor(
    principal: Principal,
    { route }: RequestedRoute,
    { params, filters }: Pick<Visit, 'params' | 'filters'>,
    { request, deadline }: Pick<Visit, 'request' | 'deadline'>,
  ): Awaitable<AccessScope> {
    if (!authorize) return whole
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
      if (recorder) await findPast(visit, principal)
      return principal
    },
    admit({ request }, { route }) {
      checkDeployment(request)
      checkCapability(route.requires)
    },
    async answer(prepared, { who: principal, params, search }, visit) {
      const { request, deadline, handled } = visit
      visit.params = params
      const given = readQuery(prepared, search)
      visit.filters = given.filters
      const accessScope = await accessScopeFor(principal, prepared, visit, visit)
      const put = question(prepared, { params, given, accessScope, deadline }, handled, (error, source) =>
        handleError(visit, error, source),
      )
      const compared = prepared.isCompared
        ? JSON.stringify([prepared.route.path, params, search, accessScope.users ?? null])
        : null
      if (compared === null) {
        visit.answer = await put.answer()
        return jsonReply(200, visit.answer.encoded.text)
      }
      const named = request.headers.get('if-none-match')
      const version = await put.version()
      const known = version === null ? null : tagOfVersion(compared, version)
      if (known !== null && isNamed(named, known)) return notModified(known)
      visit.answer = await put.answer()
      const { encoded } = visit.answer
      const isVersioned = known !== null && !visit.isPartial && isWhole(visit.answer)
      const etag = isVersioned ? known : tagOfAnswer(compared, encoded, prepared.route)
      return isNamed(named, etag) || isAnyNamed(named) ? notModified(etag) : jsonReply(200, encoded.text, { etag })
    },
    refuse(error, visit) {
      const problem = error instanceof ProblemError ? error : new ProblemError('internal', {}, { cause: error })
      const { cause } = problem
      if (cause !== undefined && !visit.handled.has(cause)) handleError(visit, cause)
      return problem
    },
  })

  async function reply(request: Request, info: unknown): Promise<HttpReply> {
    const startedAt = timeOfAccess()
    const deadline = new Deadline(deadlineMs, request)
    const visit: Visit = {
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
    const given = await engine.reply(visit)
    deadline.clear()
    if (visit.past) {
      const { router, readAt } = visit.past
      const reply = await router.reply(request, info)
      // A refusal is the same for every caller who may not read it.
      if (reply.status >= 400) return reply
      return { ...reply, headers: { ...reply.headers, [AS_OF_HEADER]: toTimestamp(readAt) } }
    }
    endErrors(visit)
    const { principal = null, route, params, filters, answer } = visit
    // Log unauthenticated requests only if they were rejected with 403.
    if ((principal === null && given.status !== 403) || !hooks.hasAccessHook()) return given
    hooks.access({
      at: toTimestamp(startedAt),
      principal,
      method: request.method,
      route,
      params,
      filters,
      status: given.status,
      duration_ms: Math.max(0, timeOfAccess() - startedAt),
      item_count: answer?.itemCount ?? null,
      complete: answer?.complete ?? null,
      remote_address: visit.remoteAddress,
      request_id: requestIdOf(requestId, request, (error) => reportUnplaced(visit, error)),
    })
    return given
  }

  const handler = toHandler(reply, (error) => hooks.error(error, { route: null }))
  return Object.assign(handler, { prefix: engine.prefix, routes: index.routes, owns: engine.owns })
}
