/** Carries fetch-style handlers as a route or a middleware of a Hono application. */
import { remoteAddressOf } from '../internal/http/guard.js'
import { BAD_REQUEST, call, type FetchHandler, NOT_ALLOWED, ownershipOf, pathOf, toResponse } from './handler.js'
import { type MountOptions, namesOf, readMountOptions } from './options.js'

export type { ConnectionInfo, FetchHandler, HttpReply } from './handler.js'
export type { HandlerErrorPlace, MountOptions } from './options.js'

/** The used part of a Hono context, so that no framework is imported. */
export interface HonoContext {
  readonly req: { readonly raw: Request; arrayBuffer?(): Promise<ArrayBuffer> }
  readonly env: unknown
  notFound(): Response | Promise<Response>
}

/** The request, with the body that Hono keeps if a middleware has read it by `c.req`. */
async function readable({ req }: HonoContext): Promise<Request> {
  const { method, url, headers, signal, bodyUsed } = req.raw
  const body = bodyUsed ? await req.arrayBuffer?.().catch(() => undefined) : undefined
  return body === undefined ? req.raw : new Request(url, { method, headers, signal, body })
}

/** A handler for a Hono route. */
export type HonoHandler = (c: HonoContext, next?: () => Promise<void>) => Promise<Response | undefined>

/**
 * Wraps `handler` for `app.use`, `app.all` or a sub-application. It sees the whole public path, so a router's `prefix`
 * is that whole path. Paths that the handler does not own go to `next()`, or to the application's not-found handler.
 *
 * @example
 * ```ts
 * import { toHonoHandler } from 'relayscope/hono'
 *
 * declare const app: { use(handler: ReturnType<typeof toHonoHandler>): void }
 * app.use(toHonoHandler(() => new Response('hello')))
 * ```
 */
export function toHonoHandler(handler: FetchHandler, options?: MountOptions): HonoHandler {
  const { guard, onError } = readMountOptions(handler, options)
  return async (c, next) => {
    const request = c.req.raw
    const path = pathOf(request)
    if (path === undefined) return toResponse(BAD_REQUEST)
    if (ownershipOf(handler, path) !== 'handler') return next ? void (await next()) : c.notFound()
    const refused = guard?.(namesOf(request))
    if (refused !== undefined) return toResponse(NOT_ALLOWED[refused])
    return call(handler, await readable(c), { remoteAddress: remoteAddressOf(c.env, request) ?? undefined }, (error) =>
      onError(error, { route: null, method: request.method, path }),
    )
  }
}
