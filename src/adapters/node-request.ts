/** Reads a `Request` off Node's request and response objects: target, `Host`, headers, body. Serves `node.ts`. */
import { BodyConsumedError } from '../internal/http/body-consumed.js'
import { valuesOf } from '../internal/http/guard.js'
import { isHost } from './handler.js'

// When the client can get nothing more of a response: its own end, or that of its connection.

/** The used part of a socket. */
export interface NodeSocket {
  readonly remoteAddress?: string | undefined
  readonly localPort?: number | undefined
  /** The server that has accepted it. */
  readonly server?: object | null | undefined
  readonly encrypted?: boolean | undefined
  readonly destroyed: boolean
  on(event: string, listener: () => void): unknown
}

interface Exchange {
  req: { readonly socket: NodeSocket }
  res: {
    readonly destroyed: boolean
    on(event: string, listener: () => void): unknown
    off(event: string, listener: () => void): unknown
  }
}

// One listener a socket, however many requests are pipelined on it.
const ofSockets = new WeakMap<NodeSocket, Set<() => void>>()

function listenersOf(socket: NodeSocket): Set<() => void> {
  const known = ofSockets.get(socket)
  if (known) return known
  const listeners = new Set<() => void>()
  ofSockets.set(socket, listeners)
  socket.on('close', () => {
    for (const listener of listeners) listener()
  })
  return listeners
}

/**
 * Calls `act` once the response has ended or its connection has closed. Node does not notify a response that is queued
 * behind another one of its connection.
 *
 * @returns a function that removes the listener.
 */
export function onResponseEnd({ req, res }: Exchange, act: () => void): () => void {
  const listeners = listenersOf(req.socket)
  const forget = () => {
    listeners.delete(ended)
    res.off('close', ended)
  }
  const ended = () => {
    forget()
    act()
  }
  listeners.add(ended)
  res.on('close', ended)
  return forget
}

/** Whether nothing more of `res` can reach the client. */
export const hasResponseEnded = ({ req, res }: Exchange): boolean => res.destroyed || req.socket.destroyed

/** The used part of `IncomingMessage`. */
export interface NodeRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** The whole public target, where a framework has stripped a mount path off `url`. */
  readonly originalUrl?: string | undefined
  readonly httpVersionMajor: number
  readonly httpVersionMinor: number
  readonly rawHeaders: string[]
  readonly socket: NodeSocket
  readonly readableEnded: boolean
  readonly readableDidRead?: boolean | undefined
  /** What a parser that has read the body left: JSON, text or bytes. */
  readonly body?: unknown
  /** The bytes or text that such a parser has read. */
  readonly rawBody?: unknown
  readonly destroyed: boolean
  /** A chunk is what `data` brings; the other events bring nothing that is read. */
  on(event: string, listener: (chunk: Uint8Array) => void): unknown
  pause(): unknown
  resume(): unknown
}

/** The used part of `ServerResponse`. */
export interface NodeResponse {
  readonly headersSent: boolean
  readonly writableEnded: boolean
  readonly writableFinished: boolean
  readonly destroyed: boolean
  writeHead(status: number, headers: Record<string, string | string[]>): unknown
  flushHeaders?(): void
  write(chunk: Uint8Array): boolean
  end(): unknown
  end(chunk: Uint8Array): unknown
  end(text: string, encoding: 'latin1' | 'utf8'): unknown
  destroy(): unknown
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

// Origin-form with URI characters only: parsers disagree on backslashes, fragments and raw bytes over 0x7e.
const TARGET = /^\/[\x21\x22\x24-\x5b\x5d-\x7e]*$/

interface Target {
  url: string
  /** As it was sent. */
  path: string
}

/** The one reading of a request's target, or `undefined`. Concatenated: resolving could change the host. */
export function readTarget(req: NodeRequest): Target | undefined {
  const target = req.originalUrl ?? req.url
  if (target === undefined || !TARGET.test(target)) return undefined
  const host = readHost(req)
  if (host === undefined) return undefined
  const { href } = new URL(`${req.socket.encrypted ? 'https' : 'http'}://${host}${target}`)
  return { url: href, path: target.split('?', 1)[0] as string }
}

/**
 * The `Host` values of a request. HTTP/2 has `:authority` instead, or both, which must be equal (RFC 9113, 8.3.1): two
 * that differ are two hosts.
 */
export function readHosts({ rawHeaders, httpVersionMajor }: NodeRequest): string[] {
  const hosts = valuesOf(rawHeaders, 'host')
  return httpVersionMajor < 2 ? hosts : [...new Set([...valuesOf(rawHeaders, ':authority'), ...hosts])]
}

function readHost(req: NodeRequest): string | undefined {
  const [host, ...others] = readHosts(req)
  // HTTP/1.0 has no Host; responses do not depend on the placeholder.
  if (host === undefined) return req.httpVersionMajor === 1 && req.httpVersionMinor === 0 ? 'localhost' : undefined
  return others.length === 0 && isHost(host) ? host : undefined
}

// Node's default limit of header lines; 0 means unlimited.
const HEADER_LINES = 1_000

/** Whether Node may have dropped header lines, such as a second `Host` or an `Origin`. */
export function hasLostHeaders({ rawHeaders, socket }: NodeRequest): boolean {
  const { server } = socket
  const set = server && 'maxHeadersCount' in server ? server.maxHeadersCount : undefined
  const lines = typeof set === 'number' ? set : HEADER_LINES
  return lines > 0 && rawHeaders.length >= lines * 2
}

/** Reads the headers; those that describe the sent body are left out if `parsed` replaces it. */
export function readHeaders({ rawHeaders }: NodeRequest, parsed: Uint8Array | undefined): Headers {
  const headers = new Headers()
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    // Pseudo headers of HTTP/2 are no headers (RFC 9113, 8.3).
    if (!name.startsWith(':')) headers.append(name, rawHeaders[i + 1] as string)
  }
  if (parsed) for (const name of ['content-encoding', 'content-length', 'transfer-encoding']) headers.delete(name)
  return headers
}

const JSON_TYPE = /^application\/(?:[^;]+\+)?json *(?:;|$)/i

/** The text of a parsed JSON body, unless it may be what a parser sets for a body that it did not read. */
function jsonOf(body: object, { rawHeaders }: NodeRequest): string | undefined {
  const isPlain = Array.isArray(body) || [Object.prototype, null].includes(Object.getPrototypeOf(body))
  if (!isPlain || !JSON_TYPE.test(valuesOf(rawHeaders, 'content-type')[0] ?? '')) return undefined
  const text = JSON.stringify(body)
  const isSent = text !== '{}' || valuesOf(rawHeaders, 'content-length')[0] === '2'
  return isSent ? text : undefined
}

/**
 * Returns the body that a parser has read and left on `req`, or `undefined`: nothing was read yet, or nothing that is
 * the body was left.
 */
export function parsedBody(req: NodeRequest): Uint8Array | undefined {
  if (!hasBeenRead(req)) return undefined
  try {
    for (const body of [req.rawBody, req.body]) {
      if (body instanceof Uint8Array) return body
      const text = typeof body === 'object' && body !== null ? jsonOf(body, req) : body
      if (typeof text === 'string') return new TextEncoder().encode(text)
    }
  } catch {
    // A getter of the host threw, or the value is not JSON.
  }
  return undefined
}

const hasBeenRead = (req: NodeRequest): boolean => req.readableDidRead ?? req.readableEnded

/**
 * The request body as a pull stream: nothing is read before it is requested. Errors if something else has read from it.
 */
function readBody(req: NodeRequest, res: NodeResponse): ReadableStream<Uint8Array> {
  let open = true
  let listening = false
  const once = (end: () => void) => () => {
    if (open) end()
    open = false
  }
  function listen(controller: ReadableStreamDefaultController<Uint8Array>): void {
    listening = true
    const cut = once(() => controller.error(new TypeError('the request body was cut short')))
    const close = once(() => controller.close())
    if (hasBeenRead(req)) once(() => controller.error(new BodyConsumedError()))()
    else if (req.readableEnded) close()
    else if (req.destroyed) cut()
    req.on('end', close)
    req.on('close', cut)
    req.on('data', (chunk: Uint8Array) => {
      if (!open) return
      req.pause()
      controller.enqueue(chunk)
    })
    // After the response the rest of the body is drained, so that the connection can be reused.
    res.on('finish', () => {
      cut()
      req.resume()
    })
  }
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        if (!listening) listen(controller)
        if (open) req.resume()
      },
      cancel() {
        open = false
        req.resume()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Returns a signal that aborts when the client disconnects before the response is complete. */
export function signalOf(req: NodeRequest, res: NodeResponse): AbortSignal {
  const disconnected = new AbortController()
  const check = () => {
    // A response of HTTP/2 is called finished when its stream closes, whether or not it has ended.
    if (!res.writableEnded || !res.writableFinished) disconnected.abort()
  }
  if (hasResponseEnded({ req, res })) check()
  else onResponseEnd({ req, res }, check)
  return disconnected.signal
}

// A Request holds the signal passed to it by a weak reference: if that is collected, listeners on `request.signal`
// never fire. So the Request is kept as long as its response.
const requests = new WeakMap<NodeResponse, Request>()

// The Fetch standard forbids these to scripts; a handler must see them all the same, to refuse them.
const FORBIDDEN_METHODS = new Set(['CONNECT', 'TRACE', 'TRACK'])

function makeRequest(
  req: NodeRequest,
  res: NodeResponse,
  url: string,
  signal: AbortSignal,
  parsed: Uint8Array | undefined,
): Request {
  const method = req.method ?? 'GET'
  const headers = readHeaders(req, parsed)
  if (FORBIDDEN_METHODS.has(method))
    return Object.defineProperty(new Request(url, { headers, signal }), 'method', { value: method })
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers, signal })
  return new Request(url, {
    method,
    headers,
    signal,
    body: parsed ?? readBody(req, res),
    duplex: 'half',
  } as RequestInit)
}

/** The whole `Request` for any handler. */
export function toRequest(
  req: NodeRequest,
  res: NodeResponse,
  url: string,
  signal: AbortSignal = signalOf(req, res),
  parsed: Uint8Array | undefined = parsedBody(req),
): Request {
  const request = makeRequest(req, res, url, signal, parsed)
  requests.set(res, request)
  return request
}
