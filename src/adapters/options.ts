/** What every adapter can be told beside its handler. */
import { guardErrorHook } from '../async/hook.js'
import { ANYTHING, checkOptions, HOOK, type Shape, shown } from '../contract/options.js'
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
    throw new TypeError(`handler must be a function, as a router is one, not ${shown(handler)}`)
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
