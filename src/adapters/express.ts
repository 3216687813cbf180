/** Carries fetch-style handlers in an Express application, or any Connect-style chain. */
import type { FetchHandler } from './handler.js'
import { toNodeHandler } from './node-handler.js'
import type { NodeRequest, NodeResponse } from './node-request.js'
import type { MountOptions } from './options.js'

export type { ConnectionInfo, FetchHandler, HttpReply } from './handler.js'
export type { HandlerErrorPlace, MountOptions } from './options.js'

/** An Express middleware, by shape: no framework is imported. */
export type ExpressMiddleware = (req: NodeRequest, res: NodeResponse, next: () => void) => void

/**
 * Wraps `handler` as Express middleware. It sees the whole public path (`req.originalUrl`) wherever the middleware is
 * mounted, so a router's `prefix` is that whole path. Paths that the handler does not own go to `next()`.
 *
 * @example
 * ```ts
 * import { toExpressMiddleware } from 'relayscope/express'
 *
 * declare const app: { use(middleware: ReturnType<typeof toExpressMiddleware>): void }
 * app.use(toExpressMiddleware(() => new Response('hello')))
 * ```
 */
export function toExpressMiddleware(handler: FetchHandler, options?: MountOptions): ExpressMiddleware {
  return toNodeHandler(handler, options)
}
