/** The handler for agents over streamable HTTP: the door in front of the protocol's SDK, and its answers as ours. */
import { createMcpHandler } from '@modelcontextprotocol/server'
import { Deadline } from '../async/deadline.js'
import { guardErrorHook } from '../async/hook.js'
import { withBearerAsKey } from '../http/auth.js'
import { readJson } from '../http/body.js'
import { createEngine, type Mountable, type Route, toHandler } from '../http/engine.js'
import { remoteAddressOf } from '../http/guard.js'
import { ProblemError } from '../http/problem.js'
import { emptyReply, type HttpReply } from '../http/respond.js'
import { withShortName } from './message.js'
import { type McpOptions, resolveMcpOptions } from './options.js'
import { createToolServer } from './server.js'
import { AUTH_LIMITS, type Caller, createRouteFetcher, TOO_MANY } from './source.js'

/** The tools: a fetch-style handler that never rejects, and what a mount needs to know of it. */
export interface Mcp extends Mountable {
  /** The prefix in canonical form. */
  readonly prefix: string
  /** Whether a request with this path is to be answered here; an adapter passes on what is not. */
  owns(pathname: string): boolean
}

/** The route that every caller may ask. */
const OPEN_TO_ALL = '/capabilities'

/** The port that `authority` names. */
const portOf = (authority: string) => Number(/:(\d{1,5})$/.exec(authority)?.[1] ?? 80)

/** What the SDK made of a message. Every one of its answers ends: the tools never change, so nobody waits for that. */
async function toReply(response: Response): Promise<HttpReply> {
  const type = response.headers.get('content-type')
  if (response.body === null || type === null) return emptyReply(response.status)
  const { headers } = emptyReply(response.status)
  return { status: response.status, headers: { ...headers, 'content-type': type }, body: await response.text() }
}

/**
 * Builds the handler through which an agent asks a diagnostics router: six read-only tools of the Model Context Protocol over
 * streamable HTTP, for clients of 2026-07-28 and of 2025. Needs the package `@modelcontextprotocol/server`.
 *
 * @throws TypeError or RangeError that names an unusable option; nothing is asked at construction.
 * @example
 * const mcp = createMcp({ router: diagnostics, prefix: '/mcp' })
 * await mcp(new Request('http://localhost/mcp', { method: 'POST', headers, body }))
 */
export function createMcp(options: McpOptions): Mcp {
  const { source, auth, prefix, guard, deadlineMs, onError, ...parts } = resolveMcpOptions(options)
  const failed = guardErrorHook<[]>(onError)
  const askFor = createRouteFetcher(source, deadlineMs, failed)
  const authFetch = createRouteFetcher(source, deadlineMs, failed, AUTH_LIMITS)
  // The SDK hands on the request itself, and what the host said of its connection stands beside that.
  const callers = new WeakMap<Request, Caller>()

  // What it tells of is what clients sent wrongly, and they hear of that themselves.
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
    // Nobody answers, or something else than a router does. Of a crowd, one for each would bury that.
    if (problem !== TOO_MANY) failed(new Error(`the router cannot be asked for ${OPEN_TO_ALL}: ${problem}`))
    throw new ProblemError('inspector_unavailable')
  }

  /** Whoever was let in, his token in both forms where that was it: the router may know the other one. */
  async function authenticate(visit: Visit): Promise<Caller> {
    const { request, remoteAddress } = visit
    const { headers, url } = request
    const host = headers.get('host') ?? new URL(url).host
    const origin = headers.get('origin')
    const refusal = guard({ hosts: [host], origins: origin === null ? [] : [origin], port: portOf(host) })
    if (refusal !== undefined) throw new ProblemError(refusal)
    try {
      // First with both: a router that knows keys alone would write down a caller without one, who is nobody.
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
    const { headers } = who
    const message = new Request(request.url, { method: 'POST', headers, signal: request.signal })
    callers.set(message, who)
    return toReply(await sdk.fetch(message, { parsedBody: withShortName(parsedBody) }))
  }

  const engine = createEngine<Route<typeof converse>, Visit, Caller, HttpReply>({
    prefix,
    routes: [{ path: '/', methods: { POST: converse } }],
    authenticate,
    checkParam: () => undefined,
    answer: (handle, { who }, { request }) => handle(request, who),
    refuse(error) {
      if (error instanceof ProblemError) return error
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
