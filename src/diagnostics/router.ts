/** The diagnostics router: every check in its order, from the prefix to the answer of one row. */
import { Router } from 'itty-router'
import { Deadline } from '../async/deadline.js'
import { type Capability, capabilitiesOf } from '../contract/inspectors.js'
import { deepFreeze, type JsonObject } from '../contract/json.js'
import { createAsk } from '../http/ask.js'
import { PROBLEMS, type ProblemCode, ProblemError, type ProblemExtra } from '../http/problem.js'
import { jsonReply, problemReply, type TextReply, toResponse } from '../http/respond.js'
import { type Answer, answer, type PreparedRow, prepareRow } from '../http/route.js'
import { createOwns, decodeSegment, splitUrl } from '../http/target.js'
import { VERSION } from '../version.js'
import { guardHooks } from './hooks.js'
import { openApiDocument } from './openapi.js'
import { type DiagnosticsRouterOptions, resolveOptions } from './options.js'
import type { DiagnosticsRow, Present } from './row.js'
import { createRows } from './rows.js'
import { OPENAPI_PATH, type RouteEntry, type ServiceIndex } from './service.js'

/** The router: a fetch-style handler that never rejects, and what a mount needs to know of it. */
export interface DiagnosticsRouter {
  (request: Request): Promise<Response>
  /** The same function, for hosts that take an object with `fetch`. */
  fetch(request: Request): Promise<Response>
  /** The same answer before it becomes a `Response`: what our Node adapter sends, at a fraction of the cost. */
  reply(request: Request): Promise<TextReply>
  /** The prefix in canonical form. */
  readonly prefix: string
  readonly routes: readonly RouteEntry[]
  /**
   * Whether a request with this path is this router's to answer; an adapter passes on what is not. A path has one
   * spelling: dot segments, empty ones, and an encoded letter of the prefix or of a literal are not ours.
   */
  owns(pathname: string): boolean
}

/** Bytes of a URL; a longer one cannot be a request of ours. */
const URL_LENGTH = 8_192
const ALLOWED = 'GET, HEAD'
/** A path in another spelling: to a caller without the key it looks like any other. */
const NOT_OURS = ['', '']
const DEPLOYMENT_HEADER = 'x-expected-deployment-id'

/** The inspector behind each optional operation, so that a 501 can say which of the two is missing. */
const INSPECTOR_OF: Partial<Record<Capability, Capability>> = {
  history_list_streams: 'history',
  registry_connection_history: 'registry',
  rpc_instance_check: 'rpc',
  dedup_per_user: 'deduplicator',
}

/** What one request has come by on its way. */
interface Seen {
  row?: DiagnosticsRow
  /** Errors of sources that `onError` has heard of: an aggregate that fails with one of them does not repeat it. */
  reported: Set<unknown>
}

interface Match {
  row: DiagnosticsRow
  prepared: PreparedRow<Present>
  params: Record<string, string>
}

function createMatcher(rows: readonly DiagnosticsRow[]) {
  const matcher = Router()
  for (const row of rows) {
    const prepared = prepareRow(row)
    matcher.get(row.path.replaceAll(/\{(\w+)\}/g, ':$1'), ({ params }): Match => ({ row, prepared, params }))
  }
  /** `segments` as `Prefix.strip` gives them. A malformed one becomes a lone `%`, which no literal of ours equals. */
  return async (segments: (string | null)[]): Promise<Match | undefined> => {
    const path = segments.length === 1 && segments[0] === '' ? [] : segments
    if (path.some((segment) => segment === '' || segment === '.' || segment === '..')) return undefined
    const encoded = path.map((segment) => (segment === null ? '%' : encodeURIComponent(segment)))
    // itty writes to the request that it is given and reads nothing but these two.
    return matcher.fetch({ method: 'GET', url: `http://localhost/${encoded.join('/')}` })
  }
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
  const { inspectors, auth, prefix, deployment, extensions, dashboardPath, deadlineMs, limits, now } =
    resolveOptions(options)
  const hooks = guardHooks(options)
  // One object for all requests; an inspector that writes to it must not lift the bounds of others.
  const askLimits = Object.freeze({ examined: limits.examined })
  const capabilities = deepFreeze(
    capabilitiesOf(inspectors, { ...extensions, deployment_id: deployment.id, mode: deployment.mode }),
  )
  let document: JsonObject | undefined
  // Made when it is first asked for: most processes never are.
  const openApi = () => {
    document ??= deepFreeze(openApiDocument({ limits, prefix: prefix.path }))
    return document
  }
  const rows = createRows(limits, { index: () => index, openApi, capabilities: () => capabilities })
  const match = createMatcher(rows)
  const owns = createOwns(
    prefix,
    rows.map(({ path }) => path),
  )
  const routes = rows.map(
    ({ path, summary, needs }): RouteEntry => ({
      method: 'GET',
      path,
      summary,
      capability: needs[0] ?? null,
      available: needs.length === 0 || needs.some((need) => capabilities[need]),
    }),
  )
  const index: ServiceIndex = deepFreeze({
    service: 'relayscope',
    version: VERSION,
    deployment_id: deployment.id,
    mode: deployment.mode,
    dashboard_path: dashboardPath,
    openapi_path: OPENAPI_PATH,
    routes,
  })

  async function authenticate(request: Request, deadline: Deadline): Promise<string> {
    try {
      const principal = await deadline.settle(auth.authenticate(request))
      if (typeof principal?.name === 'string') return principal.name
    } catch (error) {
      hooks.error(error, { route: null })
    }
    throw new ProblemError('forbidden')
  }

  function checkMethod(method: string): void {
    if (method !== 'GET' && method !== 'HEAD')
      throw new ProblemError('method_not_allowed', { headers: { allow: ALLOWED } })
  }

  function checkDeployment(request: Request): void {
    const expected = request.headers.get(DEPLOYMENT_HEADER)
    if (expected !== null && expected !== deployment.id) throw new ProblemError('deployment_mismatch')
  }

  function checkCapability({ needs }: DiagnosticsRow): void {
    const need = needs[0]
    if (need === undefined || needs.some((candidate) => capabilities[candidate])) return
    const inspector = INSPECTOR_OF[need]
    const code = inspector && capabilities[inspector] ? 'operation_absent' : 'inspector_absent'
    throw new ProblemError(code, { capability: need })
  }

  /** What is thrown once the client has left says that it was stopped, and that is no fault: whoever hangs up fills no log. */
  function report(request: Request, error: unknown, place: Parameters<typeof hooks.error>[1]): void {
    if (!request.signal.aborted) hooks.error(error, place)
  }

  async function dispatch(
    request: Request,
    segments: (string | null)[],
    search: string,
    deadline: Deadline,
    seen: Seen,
  ): Promise<Answer> {
    const matched = await match(segments)
    if (!matched) throw new ProblemError('route_not_found')
    const { row, prepared } = matched
    seen.row = row
    checkMethod(request.method)
    checkDeployment(request)
    checkCapability(row)
    const params = Object.fromEntries(Object.entries(matched.params).map(([name, text]) => [name, decodeSegment(text)]))
    return answer(
      prepared,
      inspectors as Present,
      { params, search, deployment, pageDefault: limits.pageDefault, deadline },
      {
        ask: createAsk(deadline, askLimits, (error) => report(request, error, { route: row.path })),
        now,
        report(source, error) {
          seen.reported.add(error)
          report(request, error, { route: row.path, source })
        },
      },
    )
  }

  async function handle(request: Request): Promise<TextReply> {
    const target = splitUrl(request.url)
    if (target === undefined || !prefix.covers(target.pathname)) return problemReply('route_not_found')
    if (request.url.length > URL_LENGTH) return problemReply('uri_too_long')
    const startedAt = now()
    const deadline = new Deadline(deadlineMs, request)
    const seen: Seen = { reported: new Set() }
    let principal: string | undefined
    let outcome: { status: number; answer?: Answer; refusal?: { code: ProblemCode; extra: ProblemExtra } }
    try {
      principal = await authenticate(request, deadline)
      outcome = {
        status: 200,
        answer: await dispatch(
          request,
          owns(target.pathname) ? prefix.strip(target.pathname) : NOT_OURS,
          target.search,
          deadline,
          seen,
        ),
      }
    } catch (error) {
      const { code, extra, cause } = error instanceof ProblemError ? error : unexpected(error)
      if (cause !== undefined && !seen.reported.has(cause)) report(request, cause, { route: seen.row?.path ?? null })
      outcome = { status: PROBLEMS[code][0], refusal: { code, extra } }
    } finally {
      deadline.clear()
    }
    const { status, answer: given, refusal } = outcome
    if (principal !== undefined)
      hooks.access({
        principal,
        route: seen.row?.path ?? null,
        filters: given?.filters ?? {},
        status,
        duration_ms: Math.max(0, now() - startedAt),
        item_count: given?.itemCount ?? null,
        complete: given?.complete ?? null,
      })
    return refusal ? problemReply(refusal.code, refusal.extra) : jsonReply(200, given?.text ?? '')
  }

  const reply = (request: Request) =>
    handle(request).catch((error: unknown) => {
      hooks.error(error, { route: null })
      return problemReply('internal')
    })
  // Untyped callers hand over anything; what is no request at all is answered too.
  const router = async (request: Request) => toResponse(await reply(request), request?.method === 'HEAD')
  return Object.assign(router, { fetch: router, reply, prefix: prefix.path, routes, owns })
}

const unexpected = (cause: unknown) => new ProblemError('internal', {}, { cause })
