/** Options of the adapters. */
import { guardErrorHook } from '../internal/async/hook.js'
import { ANYTHING, checkOptions, HOOK, type Shape, shown } from '../internal/contract/checks.js'
import { createHostGuard, type HostGuard } from '../internal/http/guard.js'
import type { FetchHandler } from './handler.js'

/** Options of every adapter. */
export interface MountOptions {
  /**
   * Allowed values of `Host` and `Origin`; others get 403. `loopback` stands for this machine's own names
   * (`127.0.0.0/8`, `[::1]`, `localhost`), with the port of the socket if known. Set it when serving on loopback
   * without a key: a web page's host name may resolve to this machine. @default any
   */
  allowedHosts?: readonly string[] | undefined
  /**
   * Called with the error behind a 500 response and the request path. Not called after the client has disconnected. A
   * diagnostics router never throws; it has its own hook. `null` disables it. @default console.error with the path and
   * stack
   */
  onError?: ((error: unknown, place: HandlerErrorPlace) => void) | null | undefined
}

export interface ListenOptions {
  /** The address that it binds. @default '127.0.0.1' */
  host?: string | undefined
  /** Where it listens. @default 0, a free port */
  port?: number | undefined
  /** From the connection to the last header. @default 5000 */
  headersMs?: number | undefined
  /** From the connection to the last byte of the body. @default 30000 */
  requestMs?: number | undefined
  /** Between two requests of one connection. @default 5000 */
  keepAliveMs?: number | undefined
  /** How long a connection may take nothing while bytes wait for it. @default 10000 */
  stallMs?: number | undefined
  /**
   * Maximum open connections; beyond it the longest idle one is closed, then one that does not read, then one that has
   * pipelined requests. @default 512
   */
  connections?: number | undefined
  /** Maximum requests per connection, which then closes: Node's `maxRequestsPerSocket`. @default 1000 */
  requests?: number | undefined
  /** Maximum pipelined requests per connection; a connection that exceeds it is closed. @default 16 */
  pipelined?: number | undefined
  /** Time for pending responses when the server closes, in milliseconds. @default 5000 */
  closeTimeoutMs?: number | undefined
}

/** A listening server. Declared here so that its declaration needs no Node types. */
export interface Listening {
  /** Base URL of the server. */
  url: string
  /** Port of the server. */
  port: number
  /**
   * Closes idle connections immediately, finishes pending responses, and destroys connections that remain after
   * `closeTimeoutMs`. May be called twice. @returns how many connections were destroyed.
   */
  close(): Promise<{ aborted: number }>
}

/** Where a handler failed. */
export interface HandlerErrorPlace {
  /** A handler's routes are not known here. */
  route: null
  /** HTTP method of the request. */
  method: string
  /** Without its query. */
  path: string
}

export type ReportError = (error: unknown, place: HandlerErrorPlace) => void

export const MOUNT_OPTIONS: Shape<MountOptions> = { allowedHosts: ANYTHING, onError: HOOK }

/** @throws TypeError for an invalid handler, an unknown option, or host names that no `Host` can match. */
export function readMountOptions(
  handler: FetchHandler,
  options: MountOptions = {},
): { guard: HostGuard | undefined; onError: ReportError } {
  if (typeof handler !== 'function')
    throw new TypeError(`Invalid handler: expected a function, like a router, got ${shown(handler)}`)
  checkOptions(options, MOUNT_OPTIONS)
  const { allowedHosts } = options
  const guard = allowedHosts === undefined ? undefined : createHostGuard(allowedHosts)
  return { guard, onError: guardErrorHook(options.onError) }
}

/** The `Host` and `Origin` values of a request. Repeated headers are joined and therefore invalid. */
export function namesOf({ headers }: Request): { hosts: string[]; origins: string[] } {
  const values = (name: string) => [headers.get(name) ?? []].flat()
  return { hosts: values('host'), origins: values('origin') }
}
