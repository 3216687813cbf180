/**
 * Which names a service answers to. A web page whose own name resolves to this machine may read whatever answers it
 * (DNS rebinding): its requests arrive from loopback, and only `Host` and `Origin` tell where they come from.
 */
import { isLoopbackHost } from './loopback.js'

export type GuardRefusal = 'bad_host' | 'bad_origin'

/** What is looked at of a request. */
interface Named {
  /** The values of `Host`, each of its own: two are refused. */
  hosts: readonly string[]
  /** The values of `Origin`. */
  origins: readonly string[]
  /** The port that the request came in by, where it is known. */
  port?: number | undefined
}

export type HostGuard = (named: Named) => GuardRefusal | undefined

/** In place of a name: `127.0.0.0/8`, `[::1]` and `localhost`, with the port of the socket where that is known. */
export const LOOPBACK_NAMES = 'loopback'

const NAME = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?$/i
const ORIGIN = /^(https?):\/\/([^/?#@]+)$/i
const DEFAULT_PORTS: Record<string, string> = { http: '80', https: '443' }

/**
 * A guard that lets in who names one of `allowed`: `loopback`, a name (`ops.example.org`, whatever its port), or a name
 * and its port (`ops.example.org:8443`). An `Origin` must name one of them too; a request without `Origin` comes from a
 * program, or from a page that `Host` has spoken for.
 *
 * @throws TypeError for an entry that is none of these, and for an empty list.
 */
export function createHostGuard(allowed: readonly string[]): HostGuard {
  if (!Array.isArray(allowed) || allowed.length === 0 || !allowed.every((entry) => NAME.test(entry)))
    throw new TypeError('allowedHosts must be a list of host names, each with or without its port, or "loopback"')
  const hasLoopback = allowed.includes(LOOPBACK_NAMES)
  const entries = new Set(allowed.filter((entry) => entry !== LOOPBACK_NAMES).map((entry) => entry.toLowerCase()))

  function isAllowed(authority: string, scheme: string, port: number | undefined): boolean {
    const [, name, given = DEFAULT_PORTS[scheme]] = NAME.exec(authority.toLowerCase()) ?? []
    if (name === undefined) return false
    if (entries.has(name) || entries.has(`${name}:${given}`)) return true
    const isOwnPort = port === undefined || given === String(port)
    return hasLoopback && isLoopbackHost(name) && isOwnPort
  }

  return ({ hosts: [host, ...hosts], origins, port }) => {
    if (host === undefined || hosts.length > 0 || !isAllowed(host, 'http', port)) return 'bad_host'
    const isOwn = (origin: string) => {
      const [, scheme, authority] = ORIGIN.exec(origin) ?? []
      return scheme !== undefined && isAllowed(authority as string, scheme.toLowerCase(), port)
    }
    return origins.every(isOwn) ? undefined : 'bad_origin'
  }
}

/** The values of `name`, which is in lower case, among headers as they stood on the wire: names and values in turn. */
export function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && (rawHeaders[i - 1] as string).toLowerCase() === name)
}
