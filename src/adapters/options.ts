/** What every adapter can be told beside its handler. */
import { createHostGuard, type HostGuard } from '../http/guard.js'

export interface MountOptions {
  /**
   * The names that `Host` and `Origin` may bear; anything else is 403. `loopback` stands for this machine's own names
   * (`127.0.0.0/8`, `[::1]`, `localhost`), with the port of the socket where the host tells it. What is served on
   * loopback without a key needs it: a web page's name may resolve to this machine. @default any
   */
  allowedHosts?: readonly string[] | undefined
}

/** @throws TypeError for an option that there is not, and for a list that no `Host` could be held against. */
export function readMountOptions(options: MountOptions = {}): { guard: HostGuard | undefined } {
  const unknown = Object.keys(options).find((key) => key !== 'allowedHosts')
  if (unknown !== undefined) throw new TypeError(`unknown option ${unknown}; there is allowedHosts`)
  const { allowedHosts } = options
  return { guard: allowedHosts === undefined ? undefined : createHostGuard(allowedHosts) }
}

/** The guard's arguments of a request whose headers are joined: two of a name are one that is invalid. */
export function namesOf({ headers }: Request): { hosts: string[]; origins: string[] } {
  const values = (name: string) => [headers.get(name) ?? []].flat()
  return { hosts: values('host'), origins: values('origin') }
}
