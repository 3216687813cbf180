/** Carries fetch-style handlers on `node:http`, and on every host that hands over its request and response objects. */
import { BAD_REQUEST, type FetchHandler, ownershipOf } from './handler.js'
import { carry, send } from './node-answer.js'
import { type NodeRequest, type NodeResponse, readTarget } from './node-request.js'

export type { NodeSocket } from './gone.js'
export type { ConnectionInfo, FetchHandler, Reply } from './handler.js'
export type { NodeRequest, NodeResponse } from './node-request.js'

export type NodeHandler = (req: NodeRequest, res: NodeResponse, next?: () => void) => void

/**
 * `handler` as a listener for `http.createServer`, Connect, Fastify or Koa; HTTP/1 only. The handler sees the
 * whole public path. `request.signal` aborts when the client goes away. A target or `Host` with more than one reading
 * is 400 and reaches no handler, or goes on to `next` where only its spelling is at fault; a handler that throws or rejects is 500.
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
    const exchange = { req, res }
    const target = readTarget(req)
    if (target === undefined) return void send(exchange, BAD_REQUEST)
    const owner = ownershipOf(handler, target.path)
    if (next !== undefined && owner !== 'handler') return next()
    if (owner === 'nobody') return void send(exchange, BAD_REQUEST)
    carry(handler, exchange, target.url)
  }
}
