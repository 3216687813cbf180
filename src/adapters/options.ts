/** What every adapter can be told beside its handler. */
import { guardErrorHook } from '../async/hook.js'
import { ANYTHING, checkOptions, HOOK, type Shape, shown } from '../contract/checks.js'
import { createHostGuard, type HostGuard } from '../http/guard.js'
import type { FetchHandler } from './handler.js'

export interface MountOptions {
  /**
   * The names that `Host` and `Origin` may bear; anything else is 403. `loopback` stands for this machine's own names
   * (`127.0.0.0/8`, `[::1]`, `localhost`), with the port of the socket where the host tells it. What is served on
   * loopback without a key needs it: a web page's name may resolve to this machine. @default any
   */
  allowedHosts?: readonly string[] | undefined
  /**
   * Told what the handler threw behind a 500, and on which path. Not what is thrown once the client has left. A router of ours
   * throws nothing: it has a hook of its own. `null` for nobody. @default console.error, with the path and the stack
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
   * Open at once; beyond it the one that is idle for longest makes room, then one that takes nothing, then one that has
   * sent requests ahead. @default 512
   */
  connections?: number | undefined
  /** Requests of one connection, with the last of which it closes: Node's `maxRequestsPerSocket`. @default 1000 */
  requests?: number | undefined
  /** Requests of one connection that may wait for their answers; one that sends more is cut off. @default 16 */
  pipelined?: number | undefined
  /** For what is under way when the server is closed. @default 5000 */
  closeTimeoutMs?: number | undefined
}

/** A server that listens. Here and not beside `listen`, so that the declarations of it need no types of Node. */
export interface Listening {
  url: string
  port: number
  /**
   * Ends idle connections at once, lets answers under way out, and cuts off what is left after `closeTimeoutMs`.
   * Calling it twice is fine. @returns how many connections were cut off.
   */
  close(): Promise<{ aborted: number }>
}

/** Where a handler failed. */
export interface HandlerErrorPlace {
  /** A handler's routes are not known here. */
  route: null
  method: string
  /** Without its query. */
  path: string
}

export type ReportError = (error: unknown, place: HandlerErrorPlace) => void

export const MOUNT_OPTIONS: Shape<MountOptions> = { allowedHosts: ANYTHING, onError: HOOK }

/** @throws TypeError for what is no handler, an option that there is not, and a list that no `Host` could be held against. */
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

/** The guard's arguments of a request whose headers are joined: two of a name are one that is invalid. */
export function namesOf({ headers }: Request): { hosts: string[]; origins: string[] } {
  const values = (name: string) => [headers.get(name) ?? []].flat()
  return { hosts: values('host'), origins: values('origin') }
}
