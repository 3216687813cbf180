/** Which host names and addresses are this machine's own, and what is known of where a request came from. */

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

// A proxy adds one of these, and its caller may be anywhere.
const FORWARDING = /^(?:forwarded|x-forwarded(?:-.*)?|via|x-real-ip|.*-client-ip|cf-connecting-ip|x-original-.*)$/

/** Whether one of these header names is added by proxies only. */
export function isForwarded(names: Iterable<string>): boolean {
  for (const name of names) if (FORWARDING.test(name.toLowerCase())) return true
  return false
}

/** What hosts pass beside a request; each of them has one of these. */
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
 * The socket's address of the caller, where the host passes it: `{ remoteAddress }`, the `info` of `Deno.serve`, the server
 * of `Bun.serve`, or the environment of a Hono application on one of these. `null` where it doesn't. Never from a header.
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
