/**
 * Checks `Host` and `Origin` against DNS rebinding: a web page whose host name resolves to this machine sends requests
 * from loopback, and only these headers tell where they come from.
 */
import { invalidOption } from '../contract/checks.js'

// Which host names and addresses are loopback, and where a request came from.

const IPV4_LOOPBACK = /^127(?:\.(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){3}$/
const MAPPED_LOOPBACK = /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/

/** Whether `host`, as handed to `listen()`, binds loopback only: `127.0.0.0/8`, `::1` or `localhost`. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  return bare.toLowerCase() === 'localhost' || bare === '::1' || IPV4_LOOPBACK.test(bare)
}

/** Whether a socket's remote address is this machine, in any spelling: IPv4, IPv6, or IPv4 mapped into IPv6. */
export function isLoopbackAddress(address: string): boolean {
  if (IPV4_LOOPBACK.test(address)) return true
  if (!/^[0-9a-f:.]+$/i.test(address) || !URL.canParse(`http://[${address}]`)) return false
  const { hostname } = new URL(`http://[${address}]`)
  return hostname === '[::1]' || MAPPED_LOOPBACK.test(hostname)
}

// A proxy adds one of these headers, and its caller may be anywhere.
const FORWARDING = /^(?:forwarded|x-forwarded(?:-.*)?|via|x-real-ip|.*-client-ip|cf-connecting-ip|x-original-.*)$/

/** Whether one of these header names is only added by proxies. */
export function isForwarded(names: Iterable<string>): boolean {
  for (const name of names) if (FORWARDING.test(name.toLowerCase())) return true
  return false
}

/** What hosts pass as the second argument; each host passes one of these. */
interface HostInfo {
  /** Our adapters. */
  remoteAddress?: unknown
  /** Deno. */
  remoteAddr?: { hostname?: unknown } | null
  /** The Node server of Hono. */
  incoming?: { socket?: { remoteAddress?: unknown } | null } | null
  /** Bun: its server, as it is or as the environment of a Hono application holds it. */
  requestIP?: unknown
  server?: { requestIP?: unknown } | null
}

function addressByBun(server: { requestIP?: unknown } | null | undefined, request: Request): unknown {
  if (typeof server?.requestIP !== 'function') return undefined
  try {
    return server.requestIP(request)?.address
  } catch {
    return undefined
  }
}

/**
 * Returns the caller's socket address if the host passes it: `{ remoteAddress }`, the `info` of `Deno.serve`, the
 * server of `Bun.serve`, or the environment of a Hono application on one of these. Otherwise `null`. Never read from a
 * header.
 */
export function remoteAddressOf(info: unknown, request: Request): string | null {
  if (info === null || typeof info !== 'object') return null
  const { remoteAddress, remoteAddr, incoming, server } = info as HostInfo
  const address =
    remoteAddress ??
    remoteAddr?.hostname ??
    incoming?.socket?.remoteAddress ??
    addressByBun(info, request) ??
    addressByBun(server, request)
  return typeof address === 'string' ? address : null
}

export type GuardRefusal = 'bad_host' | 'bad_origin'

/** The checked parts of a request. */
interface Named {
  /** The `Host` values, one per header; more than one is refused. */
  hosts: readonly string[]
  /** The values of `Origin`. */
  origins: readonly string[]
  /** The port on which the request arrived, if known. */
  port?: number | undefined
}

export type HostGuard = (named: Named) => GuardRefusal | undefined

/** Stands for `127.0.0.0/8`, `[::1]` and `localhost`, with the port of the socket if known. */
export const LOOPBACK_NAMES = 'loopback'

const NAME = /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]]+)(?::(\d{1,5}))?$/i
const ORIGIN = /^(https?):\/\/([^/?#@]+)$/i
const DEFAULT_PORTS: Record<string, string> = { http: '80', https: '443' }

/**
 * Creates a guard that allows `Host` values in `allowed`: `loopback`, a name (`ops.example.org`, any port), or a name
 * with a port (`ops.example.org:8443`). An `Origin` must be allowed too; a request without `Origin` comes from a
 * program, or from a page of the `Host` that was checked.
 *
 * @throws TypeError for any other entry, and for an empty list.
 */
export function createHostGuard(allowed: readonly string[]): HostGuard {
  if (!Array.isArray(allowed) || allowed.length === 0 || !allowed.every((entry) => NAME.test(entry)))
    throw new TypeError(invalidOption('allowedHosts', 'host names with or without a port, or "loopback"', allowed))
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

// Which paths are spelled otherwise than in their one way, so that a guard in front may have read another path.

const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?=\/|$)/i
// Letters, digits, "-", ".", "_", "~": encoding them changes nothing of a path but its look (RFC 3986, 2.3).
const ENCODED_UNRESERVED = /%(?:2[de]|3[0-9]|[46][1-9a-f]|[57][0-9a]|5f|7e)/i

/** Whether `path` has a segment `.` or `..`, in any encoding: URL parsers resolve it, guards that read text do not. */
export const hasDotSegment = (path: string): boolean => DOT_SEGMENT.test(path)

/** Whether `path` has an empty segment before its last one. */
export const hasEmptySegment = (path: string): boolean => path.includes('//')

/** Whether `path` has another spelling than the shortest one. */
export const isRespelled = (path: string): boolean =>
  hasEmptySegment(path) || hasDotSegment(path) || ENCODED_UNRESERVED.test(path)
