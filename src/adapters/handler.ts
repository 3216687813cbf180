/** What every adapter carries, and the two answers and one reading of `Host` that they share. */

/** What a host knows about the connection and a `Request` has no place for. */
export interface ConnectionInfo {
  /** The socket's remote address, never a forwarding header's; `undefined` where the host does not tell. */
  remoteAddress: string | undefined
}

/** An answer before it becomes a `Response`. */
export interface Reply {
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
   * `next` go on to it. A handler without it is always called.
   */
  owns?(pathname: string): boolean
  /**
   * The same answer before it becomes a `Response`, to a request whose parts may be made when they are first read:
   * making these costs more than everything else that a Node host does for a request, and what a stream keeps of them
   * it keeps for as long as it lives. Hosts that need neither prefer it.
   */
  reply?(request: Request, info: ConnectionInfo): Reply | Response | Promise<Reply | Response>
}

const FIXED_HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
} as const

const fixed = (status: number, body: string) => ({ status, headers: FIXED_HEADERS, body })

/** The target or the `Host` has no single reading, so no handler may see it. */
export const BAD_REQUEST = fixed(400, 'Bad Request\n')
/** The handler threw, rejected, or returned no `Response`. Nothing of what it threw is told. */
export const HANDLER_FAILED = fixed(500, 'Internal Server Error\n')

export const toResponse = ({ status, headers, body }: typeof BAD_REQUEST): Response =>
  new Response(body, { status, headers })

// A name or an IPv4 address, or an IPv6 address in brackets; then a port. Nothing that could start a path or userinfo.
const HOST = /^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i

/** Whether `host` is one well-formed `Host`. Two of them arrive joined by a comma and are not. */
export function isHost(host: string): boolean {
  return HOST.test(host) && URL.canParse(`http://${host}`)
}

/**
 * The path of a request that a fetch-style host has already parsed, or `undefined` when its `Host` is malformed or its
 * path has no single reading. Looks at `Host` before the URL: some hosts build the URL from it unread.
 */
export function pathOf(request: Request): string | undefined {
  const host = request.headers.get('host')
  if (host !== null && !isHost(host)) return undefined
  try {
    const { pathname } = new URL(request.url)
    return pathname.startsWith('//') ? undefined : pathname
  } catch {
    return undefined
  }
}

/** The handler's answer to `request`, or the fixed one of a handler that failed. Never rejects. */
export async function call(handler: FetchHandler, request: Request, info: ConnectionInfo): Promise<Response> {
  try {
    const response = await handler(request, info)
    if (response instanceof Response) return response
  } catch {
    // The handler's own hooks are the place to learn what went wrong; an answer is not.
  }
  return toResponse(HANDLER_FAILED)
}
