/** Types and fixed responses shared by all adapters, and the checks of `Host` and path. */
import { type GuardRefusal, hasDotSegment, isRespelled } from '../internal/http/guard.js'

/** Connection facts that a `Request` does not carry. */
export interface ConnectionInfo {
  /** The socket's remote address, never taken from a forwarding header; `undefined` if the host does not provide it. */
  remoteAddress: string | undefined
}

/** A response before it becomes a `Response` object. */
export interface HttpReply {
  /** HTTP status. */
  status: number
  /** HTTP headers, with lower-case names. */
  headers: Record<string, string>
  /**
   * The whole text, for HEAD too: the adapter adds `content-length`. Or chunks, each pulled after the previous one was
   * written; `return` is called when the client disconnects, even while `next` is pending. Or `null` for no body.
   */
  body: string | AsyncIterator<Uint8Array, unknown> | null
}

/** Any fetch-style handler. Adapters carry it; they decide nothing that it could decide. */
export interface FetchHandler {
  (request: Request, info: ConnectionInfo): Response | Promise<Response>
  /**
   * Whether the handler serves this public, undecoded path; if not, hosts with `next` continue there. A handler without
   * `owns` is called for every path without dot segments.
   */
  owns?(pathname: string): boolean
  /**
   * The same response without a `Response` object, for a request whose parts are created on first read. Creating them
   * costs more than the rest of a Node request, and a stream would keep them for its lifetime. Adapters that need
   * neither prefer it.
   */
  reply?(request: Request, info: ConnectionInfo): HttpReply | Response | Promise<HttpReply | Response>
}

const FIXED_HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

interface Fixed {
  status: number
  headers: Record<string, string>
  body: string
}

const fixed = (status: number, body: string, headers = {}): Fixed => ({
  status,
  headers: { ...FIXED_HEADERS, ...headers },
  body,
})

/** Equals `toProblem` of the routers, which adapters do not load. */
function refused(status: number, code: string, title: string): Fixed {
  const type = `urn:relayscope:problem:${code.replaceAll('_', '-')}`
  const body = JSON.stringify({ type, title, status, code, help: `docs/problems.md#${code}` })
  return fixed(status, body, { 'content-type': 'application/problem+json' })
}

/** The target or the `Host` has no single reading, so no handler may see it: the routers' own problem. */
export const BAD_REQUEST = refused(400, 'bad_request', 'The request has no single reading')
/** Node drops header lines over its limit, so the request cannot be trusted. */
export const TOO_MANY_HEADERS = refused(431, 'too_many_headers', 'The request has too many header lines')
/** The request names a foreign host, or comes from a page of a foreign origin. */
export const NOT_ALLOWED: Record<GuardRefusal, Fixed> = {
  bad_host: refused(403, 'bad_host', 'The Host is not this server on this machine'),
  bad_origin: refused(403, 'bad_origin', 'The request comes from a web page'),
}
/** The handler threw, rejected, or returned no `Response`. The error's message is never sent. */
export const HANDLER_FAILED = fixed(500, 'Internal Server Error\n')

export const toResponse = ({ status, headers, body }: Fixed): Response => new Response(body, { status, headers })

// A name or an IPv4 address, or an IPv6 address in brackets; then a port. Nothing that could start a path or userinfo.
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** Whether `host` is a single well-formed `Host` value. Two values arrive joined by a comma and are refused. */
export function isHost(host: string): boolean {
  return HOST.test(host) && URL.canParse(`http://${host}`)
}

/** Who serves a path: the handler, the host, or `none` because the path is not in its canonical spelling. */
export type Ownership = 'handler' | 'host' | 'none'

/**
 * Decides who serves this undecoded path. A path that parsers resolve differently never reaches the handler: a proxy's
 * access rule may have read another path.
 */
export function ownershipOf(handler: FetchHandler, path: string): Ownership {
  if (path.startsWith('//') || hasDotSegment(path)) return 'none'
  if (handler.owns?.(path) !== false) return 'handler'
  return isRespelled(path) ? 'none' : 'host'
}

/**
 * The path of a request that a fetch-style host has already parsed, as the host shows it, or `undefined` when its
 * `Host` is malformed or the path holds a backslash, which some read as a slash. Looks at `Host` before the URL: some hosts build the URL from it unread.
 */
export function pathOf(request: Request): string | undefined {
  const host = request.headers.get('host')
  if ((host !== null && !isHost(host)) || !URL.canParse(request.url)) return undefined
  // Not parsed as a URL object, which would normalise the path.
  const path = /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(request.url)?.[1] || '/'
  return path.includes('\\') ? undefined : path
}

/** Calls the handler and returns its response, or the fixed 500 if it fails. Never rejects. */
export async function call(
  handler: FetchHandler,
  request: Request,
  info: ConnectionInfo,
  onError: (error: unknown) => void,
): Promise<Response> {
  try {
    const response = await handler(request, info)
    if (response instanceof Response) return response
    onError(new TypeError('the handler answered no Response'))
  } catch (error) {
    if (!request.signal.aborted) onError(error)
  }
  return toResponse(HANDLER_FAILED)
}
