/** Carries fetch-style handlers on `Deno.serve`. */
import { remoteAddressOf } from '../internal/http/guard.js'
import { BAD_REQUEST, call, type FetchHandler, NOT_ALLOWED, ownershipOf, pathOf, toResponse } from './handler.js'
import { type MountOptions, namesOf, readMountOptions } from './options.js'

export type { ConnectionInfo, FetchHandler, HttpReply } from './handler.js'
export type { HandlerErrorPlace, MountOptions } from './options.js'

/** The used part of `Deno.ServeHandlerInfo`, so that no `Deno` types are needed. */
export interface DenoServeInfo {
  readonly remoteAddr: object
}

/** A handler for `Deno.serve`. */
export type DenoHandler = (request: Request, info?: DenoServeInfo) => Promise<Response>

/**
 * `handler` for `Deno.serve`. Deno builds `request.url` from `Host` unread, so `Host` is looked at first: a malformed
 * one is 400 and reaches no handler.
 *
 * @example
 * ```ts
 * import { toDenoHandler } from 'relayscope/deno'
 *
 * declare const Deno: { serve(handler: ReturnType<typeof toDenoHandler>): unknown }
 * Deno.serve(toDenoHandler(() => new Response('hello')))
 * ```
 */
export function toDenoHandler(handler: FetchHandler, options?: MountOptions): DenoHandler {
  const { guard, onError } = readMountOptions(handler, options)
  return async (request, info) => {
    const path = pathOf(request)
    if (path === undefined || ownershipOf(handler, path) === 'none') return toResponse(BAD_REQUEST)
    const refused = guard?.(namesOf(request))
    if (refused !== undefined) return toResponse(NOT_ALLOWED[refused])
    return call(handler, request, { remoteAddress: remoteAddressOf(info, request) ?? undefined }, (error) =>
      onError(error, { route: null, method: request.method, path }),
    )
  }
}
