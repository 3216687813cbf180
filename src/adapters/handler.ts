/** What every adapter carries, and the answers and the readings of `Host` and path that they share. */
import type { GuardRefusal } from '../http/guard.js'
import { hasDotSegment, isRespelled } from '../http/guard.js'

/** What a host knows about the connection and a `Request` has no place for. */
export interface ConnectionInfo {
  /** The socket's remote address, never a forwarding header's; `undefined` where the host does not tell. */
  remoteAddress: string | undefined
}

/** An answer before it becomes a `Response`. */
export interface HttpReply {
  status: number
  headers: Record<string, string>
  /**
   * The whole text, for HEAD too: the adapter adds `content-length`. Or chunks, each asked for when the one before it
   * was taken; `return` is called when the client goes away, though a `next` may be waiting. Or nothing at all.
   */
  body: string | AsyncIterator<Uint8Array, unknown> | null
}

/** Any fetch-style handler. Adapters carry it; they decide nothing that it could decide. */
export interface FetchHandler {
  (request: Request, info: ConnectionInfo): Response | Promise<Response>
  /**
   * Whether a request with this (public, undecoded) path is the handler's to answer; when it is not, hosts with a
   * `next` go on to it. A handler without it is called for every path without dot segments.
   */
  owns?(pathname: string): boolean
  /**
   * The same answer before it becomes a `Response`, to a request whose parts may be made when they are first read:
   * making these costs more than everything else that a Node host does for a request, and what a stream keeps of them
   * it keeps for as long as it lives. Hosts that need neither prefer it.
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

const refused = (status: number, code: string, title: string) =>
  fixed(status, JSON.stringify({ type: `urn:relayscope:problem:${code.replaceAll('_', '-')}`, title, status, code }), {
    'content-type': 'application/problem+json',
  })

/** The target or the `Host` has no single reading, so no handler may see it: the routers' own problem. */
export const BAD_REQUEST = refused(400, 'bad_request', 'The request has no single reading')
/** Node drops what is over its bound of header lines, so nobody knows what the request says. */
export const TOO_MANY_HEADERS = refused(431, 'too_many_headers', 'The request has too many header lines')
/** Who asks is led here by a foreign name, or speaks for a page of one. */
export const NOT_ALLOWED: Record<GuardRefusal, Fixed> = {
  bad_host: refused(403, 'bad_host', 'The Host is not this server on this machine'),
  bad_origin: refused(403, 'bad_origin', 'The request comes from a web page'),
}
/** The handler threw, rejected, or returned no `Response`. Nothing of what it threw is told. */
export const HANDLER_FAILED = fixed(500, 'Internal Server Error\n')

export const toResponse = ({ status, headers, body }: Fixed): Response => new Response(body, { status, headers })

// A name or an IPv4 address, or an IPv6 address in brackets; then a port. Nothing that could start a path or userinfo.
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** Whether `host` is one well-formed `Host`. Two of them arrive joined by a comma and are not. */
export function isHost(host: string): boolean {
  return HOST.test(host) && URL.canParse(`http://${host}`)
}

/** Whose a path is: the handler's, the host's, or nobody's, because it has another spelling than its one. */
export type Ownership = 'handler' | 'host' | 'nobody'

/**
 * Whose a request with this undecoded path is. A path that parsers resolve in different ways is not a handler's: a guard
 * that stands in front of it has read another path than the handler would.
 */
export function ownershipOf(handler: FetchHandler, path: string): Ownership {
  if (path.startsWith('//') || hasDotSegment(path)) return 'nobody'
  if (handler.owns?.(path) !== false) return 'handler'
  return isRespelled(path) ? 'nobody' : 'host'
}

/**
 * The path of a request that a fetch-style host has already parsed, as the host shows it, or `undefined` when its
 * `Host` is malformed or the path holds a backslash, which some read as a slash. Looks at `Host` before the URL: some hosts build the URL from it unread.
 */
export function pathOf(request: Request): string | undefined {
  const host = request.headers.get('host')
  if ((host !== null && !isHost(host)) || !URL.canParse(request.url)) return undefined
  // Not of a URL object, which would resolve what the host has left as it was.
  const path = /^[a-z]+:\/\/[^/?#]*([^?#]*)/i.exec(request.url)?.[1] || '/'
  return path.includes('\\') ? undefined : path
}

/** The handler's answer to `request`, or the fixed one of a handler that failed. Never rejects. */
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
