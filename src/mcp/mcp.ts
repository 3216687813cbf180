/** The handler for agents over streamable HTTP: authentication before the protocol's SDK, and its responses. */
import { createMcpHandler } from '@modelcontextprotocol/server'
import { Deadline } from '../internal/async/deadline.js'
import { guardErrorHook } from '../internal/async/hook.js'
import { withBearerAsKey } from '../internal/http/auth.js'
import { readJson } from '../internal/http/body.js'
import { createCors } from '../internal/http/cors.js'
import { createEngine, type Mountable, type Route, toHandler } from '../internal/http/engine.js'
import { type GuardRefusal, remoteAddressOf } from '../internal/http/guard.js'
import { ProblemError } from '../internal/http/problem.js'
import { emptyReply, type HttpReply } from '../internal/http/respond.js'
import { type McpOptions, resolveMcpOptions, withShortName } from './options.js'
import { createToolServer } from './server.js'
import { AUTH_LIMITS, type Caller, createRouteFetcher, TOO_MANY } from './source.js'

/** A fetch-style handler that never rejects, with the properties that a mount needs. */
export interface Mcp extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether this handler serves the path; adapters pass on others. */
  owns(pathname: string): boolean
}

/** The route that every authenticated caller may read. */
const OPEN_TO_ALL = '/capabilities'

/** The port that `authority` names. */
const portOf = (authority: string) => Number(/:(\d{1,5})$/.exec(authority)?.[1] ?? 80)

const TYPES = ['application/json', 'text/event-stream']

/** Whether `accept` takes `type` (RFC 9110, 12.5.1): the most specific range decides. */
function isAccepted(accept: string | null, type: string): boolean {
  if (!accept?.trim()) return true
  const ranges = new Map(
    accept
      .toLowerCase()
      .split(',')
      .map((entry) => {
        const [range = '', ...params] = entry.split(';').map((part) => part.trim())
        return [range, !params.some((param) => /^q=0(?:\.0*)?$/.test(param))]
      }),
  )
  return ranges.get(type) ?? ranges.get(type.replace(/\/.*/, '/*')) ?? ranges.get('*/*') ?? false
}

/** Converts the SDK's response. It always ends, because the list of tools never changes. */
async function toReply(response: Response): Promise<HttpReply> {
  const type = response.headers.get('content-type')
  if (response.body === null || type === null) return emptyReply(response.status)
  const { headers } = emptyReply(response.status)
  return { status: response.status, headers: { ...headers, 'content-type': type }, body: await response.text() }
}

/**
 * Creates the handler through which agents read a diagnostics router: read-only tools of the Model Context Protocol
 * over streamable HTTP, for clients of 2026-07-28 and of 2025. Needs the package `@modelcontextprotocol/server`.
 *
 * @throws TypeError or RangeError that names an invalid option; the router is not called at construction.
 * @example
 * const mcp = createMcp({ router: diagnostics, prefix: '/mcp' })
 * await mcp(new Request('http://localhost/mcp', { method: 'POST', headers, body }))
 */
export function createMcp(options: McpOptions): Mcp {
  const { source, auth, prefix, guard, deadlineMs, onError, ...parts } = resolveMcpOptions(options)
  const failed = guardErrorHook<[]>(onError)
  const askFor = createRouteFetcher(source, deadlineMs, failed)
  const authFetch = createRouteFetcher(source, deadlineMs, failed, AUTH_LIMITS)
  // The SDK passes on the request itself; the connection info is stored by it.
  const callers = new WeakMap<Request, Caller>()

  // The SDK's errors concern invalid client messages, and the clients get them.
  const sdk = createMcpHandler(({ requestInfo }) =>
    createToolServer(askFor((requestInfo && callers.get(requestInfo)) ?? { headers: new Headers() }), {
      ...parts,
      failed,
    }),
  )

  type Visit = { request: Request; deadline: Deadline; remoteAddress: string | null }

  async function isAdmitted(request: Request, { deadline, remoteAddress }: Visit): Promise<boolean> {
    if (auth) return typeof (await deadline.race(auth.authenticate(request, { remoteAddress })))?.name === 'string'
    const { problem, status, code } = await authFetch({ headers: request.headers, remoteAddress })(
      OPEN_TO_ALL,
      deadline.signal,
    )
    if (problem === undefined) return true
    if (code === 'admin_key_required') throw new ProblemError(code)
    if (status === 401 || status === 403) return false
    if (status === 412) throw new ProblemError('deployment_mismatch')
    // No response, or not that of a router. With many callers, one report each would hide it.
    if (problem !== TOO_MANY) failed(new Error(`cannot read ${OPEN_TO_ALL} from the router: ${problem}`))
    throw new ProblemError('inspector_unavailable')
  }

  function refusalOf({ headers, url }: Request): GuardRefusal | undefined {
    const host = headers.get('host') ?? new URL(url).host
    const origin = headers.get('origin')
    return guard({ hosts: [host], origins: origin === null ? [] : [origin], port: portOf(host) })
  }

  /** Authenticates the caller, passing its token in both forms because the router may expect either. */
  async function authenticate(visit: Visit): Promise<Caller> {
    const { request, remoteAddress } = visit
    const { headers } = request
    const refusal = refusalOf(request)
    if (refusal !== undefined) throw new ProblemError(refusal)
    try {
      // Both forms first: a router that only knows keys would record a caller without one as unauthenticated.
      const asKey = withBearerAsKey(request)
      if (asKey && (await isAdmitted(asKey, visit))) return { headers: asKey.headers, remoteAddress }
      if (await isAdmitted(request, visit)) return { headers, remoteAddress }
    } catch (error) {
      if (error instanceof ProblemError) throw error
      failed(error)
    }
    throw new ProblemError('forbidden')
  }

  async function converse(request: Request, who: Caller): Promise<HttpReply> {
    const parsedBody = await readJson(request)
    // A batch would be as many questions as fit into a body; the protocol has none since 2025-06-18.
    if (Array.isArray(parsedBody))
      throw new ProblemError('invalid_body', { errors: [{ in: 'body', name: 'body', reason: 'must be one message' }] })
    const headers = new Headers(who.headers)
    // The SDK compares text.
    headers.set('accept', TYPES.filter((type) => isAccepted(headers.get('accept'), type)).join(', '))
    const message = new Request(request.url, { method: 'POST', headers, signal: request.signal })
    callers.set(message, who)
    return toReply(await sdk.fetch(message, { parsedBody: withShortName(parsedBody) }))
  }

  const engine = createEngine<Route<typeof converse>, Visit, Caller, HttpReply>({
    prefix,
    // Such a page has the key of its user; it needs no cookies.
    cors: createCors((_, request) => refusalOf(request) === undefined, { credentials: false }),
    routes: [{ path: '/', methods: { POST: converse } }],
    authenticate,
    checkParam: () => undefined,
    answer: (handle, { who }, { request }) => handle(request, who),
    refuse(error) {
      if (error instanceof ProblemError) {
        if (error.code === 'body_consumed') failed(error.cause)
        return error
      }
      failed(error)
      return new ProblemError('internal')
    },
  })

  async function reply(request: Request, info: unknown): Promise<HttpReply> {
    const deadline = new Deadline(deadlineMs, request)
    const given = await engine.reply({ request, deadline, remoteAddress: remoteAddressOf(info, request) })
    deadline.clear()
    return given
  }

  const handler = toHandler(reply, failed)
  return Object.assign(handler, { prefix: engine.prefix, owns: engine.owns })
}
