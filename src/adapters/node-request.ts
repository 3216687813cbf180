/** Reads a `Request` off Node's request and response objects: target, `Host`, headers, body. Serves `node.ts`. */

import { isHost } from './handler.js'
import { hasResponseEnded, type NodeSocket, onResponseEnd } from './response-end.js'

/** What is read of an `IncomingMessage`. */
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
  readonly destroyed: boolean
  /** A chunk is what `data` brings; the other events bring nothing that is read. */
  on(event: string, listener: (chunk: Uint8Array) => void): unknown
  pause(): unknown
  resume(): unknown
}

/** What is used of a `ServerResponse`. */
export interface NodeResponse {
  readonly headersSent: boolean
  readonly writableFinished: boolean
  readonly destroyed: boolean
  writeHead(status: number, headers: Record<string, string | string[]>): unknown
  flushHeaders(): void
  write(chunk: Uint8Array): boolean
  end(): unknown
  end(chunk: Uint8Array): unknown
  end(text: string, encoding: 'latin1' | 'utf8'): unknown
  destroy(): unknown
  on(event: string, listener: () => void): unknown
  off(event: string, listener: () => void): unknown
}

// Origin-form, and only what a URI may hold: a backslash, a fragment or a raw byte over 0x7e is read
// differently by different parsers.
const TARGET = /^\/[\x21\x22\x24-\x5b\x5d-\x7e]*$/

export interface Target {
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

function readHost({ rawHeaders, httpVersionMajor, httpVersionMinor }: NodeRequest): string | undefined {
  let host: string | undefined
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if ((rawHeaders[i] as string).toLowerCase() !== 'host') continue
    if (host !== undefined) return undefined
    host = rawHeaders[i + 1] as string
  }
  // HTTP/1.0 has no Host; no answer depends on the one that stands in.
  if (host === undefined) return httpVersionMajor === 1 && httpVersionMinor === 0 ? 'localhost' : undefined
  return isHost(host) ? host : undefined
}

// Node's own bound on header lines, unless the server sets another; 0 is none.
const HEADER_LINES = 1_000

/** Whether Node may have dropped header lines: then a second `Host` or an `Origin` may be among what nobody sees. */
export function hasLostHeaders({ rawHeaders, socket }: NodeRequest): boolean {
  const { server } = socket
  const set = server && 'maxHeadersCount' in server ? server.maxHeadersCount : undefined
  const lines = typeof set === 'number' ? set : HEADER_LINES
  return lines > 0 && rawHeaders.length >= lines * 2
}

export function readHeaders({ rawHeaders }: NodeRequest): Headers {
  const headers = new Headers()
  for (let i = 0; i < rawHeaders.length; i += 2) headers.append(rawHeaders[i] as string, rawHeaders[i + 1] as string)
  return headers
}

/** The body as it arrives, pulled: nothing is read before somebody asks. A body that others have read is empty. */
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
    if (req.readableEnded) close()
    else if (req.destroyed) cut()
    req.on('end', close)
    req.on('close', cut)
    req.on('data', (chunk: Uint8Array) => {
      if (!open) return
      req.pause()
      controller.enqueue(chunk)
    })
    // Once answered, what is left must flow off, or the connection could carry no further request.
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

/** Aborts when the client goes away before it has its answer. */
export function signalOf(req: NodeRequest, res: NodeResponse): AbortSignal {
  const left = new AbortController()
  const check = () => {
    if (!res.writableFinished) left.abort()
  }
  if (hasResponseEnded({ req, res })) check()
  else onResponseEnd({ req, res }, check)
  return left.signal
}

// A Request follows the signal that it was made with by a weak reference: collected, it would never tell the listeners
// on its own `signal` that the client has left. So it lives as long as its response.
const requests = new WeakMap<NodeResponse, Request>()

// The Fetch standard forbids these to scripts; a handler must see them all the same, to refuse them.
const FORBIDDEN_METHODS = new Set(['CONNECT', 'TRACE', 'TRACK'])

function makeRequest(req: NodeRequest, res: NodeResponse, url: string, signal: AbortSignal): Request {
  const method = req.method ?? 'GET'
  const headers = readHeaders(req)
  if (FORBIDDEN_METHODS.has(method))
    return Object.defineProperty(new Request(url, { headers, signal }), 'method', { value: method })
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers, signal })
  return new Request(url, { method, headers, signal, body: readBody(req, res), duplex: 'half' } as RequestInit)
}

/** The whole `Request` for any handler. */
export function toRequest(req: NodeRequest, res: NodeResponse, url: string, signal: AbortSignal): Request {
  const request = makeRequest(req, res, url, signal)
  requests.set(res, request)
  return request
}
