/** Cross-origin access (WHATWG Fetch, 3.2) for pages of origins that the host names. */
import { emptyReply, type HttpReply } from './respond.js'

/** Answers preflights of allowed origins, and marks every response. */
export interface Cors {
  /** The response to a preflight of an allowed origin; `undefined` for any other request. */
  preflight(request: Request, methods: readonly string[]): HttpReply | undefined
  mark<A extends HttpReply>(request: Request, reply: A): A
}

// Sent without being requested, so that a response does not depend on what else the page sends.
const ALLOWED_HEADERS = [
  'accept',
  'authorization',
  'content-type',
  'idempotency-key',
  'if-none-match',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'traceparent',
  'x-admin-key',
  'x-expected-deployment-id',
]
const EXPOSED_HEADERS = 'allow, etag, mcp-protocol-version, mcp-session-id, retry-after, x-as-of'
const HEADER_NAMES = /^[\w-]+(?: *, *[\w-]+)*$/
/** Maximum characters of the header names that a preflight may add: an authenticator of the host may read any. */
const NAMES_LENGTH = 1_024
const MAX_AGE_S = 600

function allowedHeaders(requested: string | null): string {
  const isUsable = requested !== null && requested.length <= NAMES_LENGTH && HEADER_NAMES.test(requested)
  return [...new Set([...ALLOWED_HEADERS, ...(isUsable ? requested.toLowerCase().split(/ *, */) : [])])].join(', ')
}

/**
 * @param isAllowed Whether pages of this origin may read responses. It must compare whole origins.
 * @param credentials Whether such a page may send cookies.
 */
export function createCors(
  isAllowed: (origin: string, request: Request) => boolean,
  { credentials }: { credentials: boolean },
): Cors {
  const allowedOrigin = (request: Request): string | undefined => {
    const origin = request.headers.get('origin')
    return origin !== null && isAllowed(origin, request) ? origin : undefined
  }

  function mark<A extends HttpReply>(request: Request, reply: A): A {
    const origin = allowedOrigin(request)
    const headers = { ...reply.headers, vary: 'Origin' }
    if (origin === undefined) return { ...reply, headers }
    const allowed = { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS }
    const cookies = credentials ? { 'access-control-allow-credentials': 'true' } : {}
    return { ...reply, headers: { ...headers, ...allowed, ...cookies } }
  }

  return {
    preflight(request, methods) {
      const { method, headers } = request
      if (method !== 'OPTIONS' || !headers.has('access-control-request-method')) return undefined
      if (allowedOrigin(request) === undefined) return undefined
      const reply = emptyReply(204)
      return {
        ...reply,
        headers: {
          ...reply.headers,
          'access-control-allow-methods': methods.join(', '),
          'access-control-allow-headers': allowedHeaders(headers.get('access-control-request-headers')),
          'access-control-max-age': String(MAX_AGE_S),
        },
      }
    },
    mark,
  }
}

/** The rules for `origins` of the option, or `undefined` if there are none. */
export function corsOf(origins: readonly string[]): Cors | undefined {
  const named = new Set(origins)
  return named.size === 0 ? undefined : createCors((origin) => named.has(origin), { credentials: true })
}
