/** Writes a handler's response to a Node response with backpressure. Used by `node.ts`. */
import { type FetchHandler, HANDLER_FAILED, type HttpReply } from './handler.js'
import {
  hasResponseEnded,
  type NodeRequest,
  type NodeResponse,
  onResponseEnd,
  parsedBody,
  readHeaders,
  signalOf,
  toRequest,
} from './node-request.js'

// A `Request` that creates its costly parts on first read, for handlers with `reply`.

class LazyRequest {
  readonly method: string
  readonly url: string
  readonly #req: NodeRequest
  readonly #res: NodeResponse
  readonly #parsed: Uint8Array | undefined
  #headers: Headers | undefined
  #signal: AbortSignal | undefined
  #whole: Request | undefined

  constructor(req: NodeRequest, res: NodeResponse, url: string) {
    this.method = req.method ?? 'GET'
    this.url = url
    this.#req = req
    this.#res = res
    this.#parsed = parsedBody(req)
  }

  get headers(): Headers {
    this.#headers ??= readHeaders(this.#req, this.#parsed)
    return this.#headers
  }

  get signal(): AbortSignal {
    this.#signal ??= signalOf(this.#req, this.#res)
    return this.#signal
  }

  get whole(): Request {
    this.#whole ??= toRequest(this.#req, this.#res, this.url, this.signal, this.#parsed)
    return this.#whole
  }
}

// All other members are delegated to a full Request.
Object.setPrototypeOf(LazyRequest.prototype, Request.prototype)
for (const [name, { get, value }] of Object.entries(Object.getOwnPropertyDescriptors(Request.prototype))) {
  if (Object.hasOwn(LazyRequest.prototype, name)) continue
  if (get)
    Object.defineProperty(LazyRequest.prototype, name, {
      get(this: LazyRequest): unknown {
        return Reflect.get(this.whole, name)
      },
    })
  else
    Object.defineProperty(LazyRequest.prototype, name, {
      value(this: LazyRequest, ...given: unknown[]): unknown {
        return Reflect.apply(value, this.whole, given)
      },
    })
}

/**
 * The request that `req` is. Its members are those of any `Request`; only `new Request(request)` and `fetch(request)`
 * do not know it, and take its `clone()`.
 */
function lazyRequest(req: NodeRequest, res: NodeResponse, url: string): Request {
  return new LazyRequest(req, res, url) as unknown as Request
}

/** A `Reply` whose headers are Node's: several cookies are not joined. */
interface Answer extends Omit<HttpReply, 'headers'> {
  headers: Record<string, string | string[]>
}

/** A request and its response. */
interface Exchange {
  req: NodeRequest
  res: NodeResponse
}

/** Resolves when the response takes more, or will never do so. */
function drained(exchange: Exchange): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      exchange.res.off('drain', done)
      forget()
      resolve()
    }
    exchange.res.on('drain', done)
    const forget = onResponseEnd(exchange, done)
  })
}

/** Reads the body with a reader instead of its iterator, which lets a pending `next` continue after `return`. */
function toAnswer({ status, headers, body }: Response): Answer {
  const plain: Answer['headers'] = Object.fromEntries(headers)
  const cookies = headers.getSetCookie()
  if (cookies.length > 0) plain['set-cookie'] = cookies
  if (body === null) return { status, headers: plain, body }
  const reader = body.getReader()
  const chunks: AsyncIterator<Uint8Array, unknown> = {
    next: () => reader.read() as Promise<IteratorResult<Uint8Array, undefined>>,
    return: async () => ({ done: true, value: await reader.cancel() }),
  }
  return { status, headers: plain, body: chunks }
}

/** Cancels a body that will not be read, so that its producer can release resources. */
function abandon(body: HttpReply['body']): void {
  if (body !== null && typeof body !== 'string') new Promise((resolve) => resolve(body.return?.())).catch(() => {})
}

/** Writes `chunks` only as fast as the client takes them. */
async function pump(
  exchange: Exchange,
  chunks: AsyncIterator<Uint8Array, unknown>,
  length: string | undefined,
): Promise<void> {
  const { res } = exchange
  for (;;) {
    const { done, value } = await chunks.next()
    if (hasResponseEnded(exchange)) return
    if (done) return void res.end()
    if (length !== undefined && value.byteLength === Number(length)) return void res.end(value)
    if (!res.write(value)) await drained(exchange)
  }
}

export function writeResponse(exchange: Exchange, { status, headers, body }: Answer): Promise<void> | void {
  const { res } = exchange
  const { method } = exchange.req
  if (hasResponseEnded(exchange)) return abandon(body)
  if (res.headersSent) return void res.destroy()
  if (typeof body === 'string') {
    const length = Buffer.byteLength(body)
    res.writeHead(status, { ...headers, 'content-length': String(length) })
    // Text of one byte per character, which most JSON is, leaves unchanged: encoding costs three times a copy.
    return void res.end(method === 'HEAD' ? '' : body, length === body.length ? 'latin1' : 'utf8')
  }
  if (body === null || method === 'HEAD') {
    res.writeHead(status, headers)
    res.end()
    return abandon(body)
  }
  onResponseEnd(exchange, () => abandon(body))
  const length = headers['content-length'] as string | undefined
  res.writeHead(status, headers)
  // Known to be short, the head travels with the body; otherwise the first chunk may be long in coming.
  if (length === undefined) res.flushHeaders?.()
  // Not awaited: an async frame would keep the request and response alive as long as the body.
  return pump(exchange, body, length)
}

/** Sends the handler's response to the request at `url`, or the fixed 500 if the handler fails. */
export function sendResponse(
  handler: FetchHandler,
  exchange: Exchange,
  url: string,
  onError: (error: unknown) => void,
): void {
  const { req, res } = exchange
  const info = { remoteAddress: req.socket.remoteAddress }
  const answer = async () => {
    if (!handler.reply) return writeResponse(exchange, toAnswer(await handler(toRequest(req, res, url), info)))
    const given = await handler.reply(lazyRequest(req, res, url), info)
    return writeResponse(exchange, given instanceof Response ? toAnswer(given) : given)
  }
  answer().catch((error: unknown) => {
    if (!hasResponseEnded(exchange)) onError(error)
    return writeResponse(exchange, HANDLER_FAILED)
  })
}
