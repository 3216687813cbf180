/** Carries fetch-style handlers on `node:http`, and on every host that hands over its request and response objects. */
import { BAD_REQUEST, type FetchHandler, HANDLER_FAILED, type Reply } from './handler.js'
import { lazyRequest } from './lazy-request.js'
import { type NodeRequest, type NodeResponse, readTarget, signalOf, toRequest } from './node-request.js'

export type { ConnectionInfo, FetchHandler, Reply } from './handler.js'
export type { NodeRequest, NodeResponse } from './node-request.js'

export type NodeHandler = (req: NodeRequest, res: NodeResponse, next?: () => void) => void

function answer(res: NodeResponse, { status, headers, body }: Reply, method: string | undefined): void {
  if (res.destroyed) return
  if (res.headersSent) return void res.destroy()
  // Text of one byte per unit, which most JSON is, is copied as it stands for a third of what encoding it costs.
  const bytes = Buffer.from(body, Buffer.byteLength(body) === body.length ? 'latin1' : 'utf8')
  res.writeHead(status, { ...headers, 'content-length': String(bytes.length) })
  if (method === 'HEAD') res.end()
  else res.end(bytes)
}

/** Resolves when `res` takes more, or will never do so. */
function drained(res: NodeResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.off('drain', done)
      res.off('close', done)
      resolve()
    }
    res.on('drain', done)
    res.on('close', done)
  })
}

/** Cookies are the one header that must not be joined. */
function toNodeHeaders(headers: Headers): Record<string, string | string[]> {
  const plain: Record<string, string | string[]> = Object.fromEntries(headers)
  const cookies = headers.getSetCookie()
  if (cookies.length > 0) plain['set-cookie'] = cookies
  return plain
}

async function pump(
  res: NodeResponse,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  length: string | null,
): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read()
    if (res.destroyed) return
    if (done) return void res.end()
    if (length !== null && value.byteLength === Number(length)) return void res.end(value)
    if (!res.write(value)) await drained(res)
  }
}

/** Writes `response`, pulling its body only as fast as the client takes it. */
async function send(res: NodeResponse, response: Response, method: string | undefined): Promise<void> {
  const { body, status } = response
  if (method === 'HEAD' || body === null) {
    res.writeHead(status, toNodeHeaders(response.headers))
    res.end()
    await body?.cancel()
    return
  }
  const reader = body.getReader()
  // Unread chunks are held by whoever made the stream: it must learn that nobody is going to take them.
  const abandon = () => void reader.cancel().catch(() => {})
  res.on('close', abandon)
  if (res.destroyed) return abandon()
  const length = response.headers.get('content-length')
  res.writeHead(status, toNodeHeaders(response.headers))
  // Known to be short, the head travels with the body; otherwise the first chunk may be long in coming.
  if (length === null) res.flushHeaders()
  // Not awaited, here and by the caller: a frame that waits keeps the request and the response as long as the body.
  return pump(res, reader, length)
}

/**
 * `handler` as a listener for `http.createServer`, Connect, Fastify or Koa; HTTP/1 only. The handler sees the
 * whole public path. `request.signal` aborts when the client goes away. A target or `Host` with more than one reading
 * is 400 and reaches no handler; a handler that throws or rejects is 500.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { toNodeHandler } from 'relayscope/node'
 *
 * createServer(toNodeHandler(() => new Response('hello'))).listen(8080, '127.0.0.1')
 * ```
 */
export function toNodeHandler(handler: FetchHandler): NodeHandler {
  return (req, res, next) => {
    const target = readTarget(req)
    if (target === undefined) return answer(res, BAD_REQUEST, req.method)
    if (next !== undefined && handler.owns?.(target.pathname) === false) return next()
    const info = { remoteAddress: req.socket.remoteAddress }
    const carry = async () => {
      if (!handler.reply)
        return send(res, await handler(toRequest(req, res, target.url, signalOf(res)), info), req.method)
      const given = await handler.reply(lazyRequest(req, res, target.url), info)
      return given instanceof Response ? send(res, given, req.method) : answer(res, given, req.method)
    }
    carry().catch(() => answer(res, HANDLER_FAILED, req.method))
  }
}
