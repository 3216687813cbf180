/** Runs fetch-style handlers on `node:http`, and on hosts that expose its request and response objects. */
import { valuesOf } from '../internal/http/guard.js'
import { BAD_REQUEST, type FetchHandler, NOT_ALLOWED, ownershipOf, TOO_MANY_HEADERS } from './handler.js'
import { sendResponse, writeResponse } from './node-answer.js'
import { hasLostHeaders, type NodeRequest, type NodeResponse, readHosts, readTarget } from './node-request.js'
import { type MountOptions, readMountOptions } from './options.js'

/** A request listener for `node:http`. */
export type NodeHandler = (req: NodeRequest, res: NodeResponse, next?: () => void) => void

/**
 * Wraps `handler` as a listener for `http.createServer`, `http2.createServer`, Connect, Fastify or Koa. The handler sees
 * the whole public path. `request.signal` aborts when the client disconnects. An ambiguous target or `Host` gets 400, or
 * goes to `next` if only its spelling is wrong; a handler that throws or rejects gets 500.
 *
 * @example
 * ```ts
 * import { createServer } from 'node:http'
 * import { toNodeHandler } from 'relayscope/node'
 *
 * createServer(toNodeHandler(() => new Response('hello'))).listen(8080, '127.0.0.1')
 * ```
 */
export function toNodeHandler(handler: FetchHandler, options?: MountOptions): NodeHandler {
  const { guard, onError } = readMountOptions(handler, options)
  return (req, res, next) => {
    const exchange = { req, res }
    if (hasLostHeaders(req)) return void writeResponse(exchange, TOO_MANY_HEADERS)
    const target = readTarget(req)
    if (target === undefined) return void writeResponse(exchange, BAD_REQUEST)
    const owner = ownershipOf(handler, target.path)
    if (next !== undefined && owner !== 'handler') return next()
    if (owner === 'none') return void writeResponse(exchange, BAD_REQUEST)
    const refused = guard?.({
      hosts: readHosts(req),
      origins: valuesOf(req.rawHeaders, 'origin'),
      port: req.socket.localPort,
    })
    if (refused !== undefined) return void writeResponse(exchange, NOT_ALLOWED[refused])
    sendResponse(handler, exchange, target.url, (error) =>
      onError(error, { route: null, method: req.method ?? 'GET', path: target.path }),
    )
  }
}
