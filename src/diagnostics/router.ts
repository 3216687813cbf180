/** The diagnostics router: who may ask, what must be there, and what the hooks are told of each request. */
import { Deadline } from '../async/deadline.js'
import { checkId } from '../contract/ids.js'
import { type Capability, capabilitiesOf } from '../contract/inspectors.js'
import { deepFreeze, type JsonObject } from '../contract/json.js'
import { createAsk } from '../http/ask.js'
import { createEngine, type Mountable, toHandler } from '../http/engine.js'
import { ProblemError } from '../http/problem.js'
import { type Answer, read } from '../http/read.js'
import { prepareRoute } from '../http/read-route.js'
import { jsonReply, type TextReply } from '../http/respond.js'
import { VERSION } from '../version.js'
import { guardHooks } from './hooks.js'
import { openApiDocument } from './openapi.js'
import { type DiagnosticsRouterOptions, resolveOptions } from './options.js'
import type { DiagnosticsRoute, Present } from './route.js'
import { ROUTES } from './routes.js'
import { OPENAPI_PATH, type RouteEntry, type Service } from './service-index.js'

/** The router: a fetch-style handler that never rejects, and what a mount needs to know of it. */
export interface DiagnosticsRouter extends Mountable<TextReply> {
  /** The prefix in canonical form. */
  readonly prefix: string
  readonly routes: readonly RouteEntry[]
  /**
   * Whether a request with this path is this router's to answer; an adapter passes on what is not. A path has one
   * spelling: dot segments, empty ones, and an encoded letter of the prefix or of a literal are not ours.
   */
  owns(pathname: string): boolean
}

const DEPLOYMENT_HEADER = 'x-expected-deployment-id'

/** The inspector behind each optional operation, so that a 501 can say which of the two is missing. */
const INSPECTOR_OF: Partial<Record<Capability, Capability>> = {
  history_list_streams: 'history',
  registry_connection_history: 'registry',
  rpc_instance_check: 'rpc',
  dedup_per_user: 'deduplicator',
}

/** What is kept of one request, for the hooks. */
interface Visit {
  request: Request
  deadline: Deadline
  /** Who asks, once that is known. */
  principal?: string
  /** The route's path, for whoever is known. */
  route: string | null
  answer?: Answer
  /** Errors of sources that `onError` has heard of: an aggregate that fails with one of them does not repeat it. */
  reported: Set<unknown>
}

/**
 * Builds the diagnostics router over whatever inspectors a host injects.
 *
 * @throws TypeError or RangeError that names an unusable option; nothing is asked at construction.
 * @example
 * const diagnostics = createDiagnosticsRouter({ inspectors, auth: apiKeyAuth(key), prefix: '/ops/diagnostics' })
 * await diagnostics(new Request('http://localhost/ops/diagnostics/capabilities'))
 */
export function createDiagnosticsRouter(options: DiagnosticsRouterOptions): DiagnosticsRouter {
  const { inspectors, auth, deployment, extensions, dashboardPath, deadlineMs, limits, now } = resolveOptions(options)
  const hooks = guardHooks(options)
  // One object for all requests; an inspector that writes to it must not lift the bounds of others.
  const askLimits = Object.freeze({ examined: limits.examined })
  const capabilities = deepFreeze(
    capabilitiesOf(inspectors, { ...extensions, deployment_id: deployment.id, mode: deployment.mode }),
  )
  const routes = ROUTES.map(
    ({ path, summary, needs }): RouteEntry => ({
      method: 'GET',
      path,
      summary,
      capability: needs[0] ?? null,
      available: needs.length === 0 || needs.some((need) => capabilities[need]),
    }),
  )
  let document: JsonObject | undefined
  const service: Service = {
    index: deepFreeze({
      service: 'relayscope',
      version: VERSION,
      deployment_id: deployment.id,
      mode: deployment.mode,
      dashboard_path: dashboardPath,
      openapi_path: OPENAPI_PATH,
      routes,
    }),
    capabilities,
    // Made when it is first asked for: most processes never are.
    openApi() {
      document ??= deepFreeze(openApiDocument({ limits, prefix: options.prefix }))
      return document
    },
  }

  async function authenticate(visit: Visit): Promise<string> {
    try {
      const principal = await visit.deadline.settle(auth.authenticate(visit.request))
      if (typeof principal?.name === 'string') return principal.name
    } catch (error) {
      hooks.error(error, { route: null })
    }
    throw new ProblemError('forbidden')
  }

  function checkDeployment(request: Request): void {
    const expected = request.headers.get(DEPLOYMENT_HEADER)
    if (expected !== null && expected !== deployment.id) throw new ProblemError('deployment_mismatch')
  }

  function checkCapability(needs: DiagnosticsRoute['needs']): void {
    const need = needs[0]
    if (need === undefined || needs.some((candidate) => capabilities[candidate])) return
    const inspector = INSPECTOR_OF[need]
    const code = inspector && capabilities[inspector] ? 'operation_absent' : 'inspector_absent'
    throw new ProblemError(code, { capability: need })
  }

  /** What is thrown once the client has left says that it was stopped, and that is not a fault: whoever hangs up fills no log. */
  function report({ request, route }: Visit, error: unknown, source?: string): void {
    if (!request.signal.aborted) hooks.error(error, source === undefined ? { route } : { route, source })
  }

  const engine = createEngine({
    prefix: options.prefix ?? '',
    routes: ROUTES.map((route) => ({ path: route.path, methods: { GET: { ...prepareRoute(route, limits), route } } })),
    checkParam: checkId,
    async authenticate(visit: Visit, route) {
      visit.principal = await authenticate(visit)
      visit.route = route?.path ?? null
    },
    admit({ request }, { route }) {
      checkDeployment(request)
      checkCapability(route.needs)
    },
    async answer(prepared, { params, search }, visit) {
      const { deadline, reported } = visit
      visit.answer = await read(
        prepared,
        inspectors as Present,
        { params, search, deployment, deadline },
        {
          ask: createAsk(deadline, askLimits, (error) => report(visit, error)),
          now,
          service,
          report(source, error) {
            reported.add(error)
            report(visit, error, source)
          },
        },
      )
      return jsonReply(200, visit.answer.text)
    },
    refuse(error, visit) {
      const problem = error instanceof ProblemError ? error : new ProblemError('internal', {}, { cause: error })
      const { cause } = problem
      if (cause !== undefined && !visit.reported.has(cause)) report(visit, cause)
      return problem
    },
  })

  async function reply(request: Request): Promise<TextReply> {
    const startedAt = now()
    const deadline = new Deadline(deadlineMs, request)
    const visit: Visit = { request, deadline, route: null, reported: new Set() }
    const given = await engine.reply(visit)
    deadline.clear()
    const { principal, route, answer: answered } = visit
    if (principal !== undefined)
      hooks.access({
        principal,
        route,
        filters: answered?.filters ?? {},
        status: given.status,
        duration_ms: Math.max(0, now() - startedAt),
        item_count: answered?.itemCount ?? null,
        complete: answered?.complete ?? null,
      })
    return given
  }

  const handler = toHandler(reply, (error) => hooks.error(error, { route: null }))
  return Object.assign(handler, { prefix: engine.prefix, routes, owns: engine.owns })
}
