/** Which host names are this machine's own. */

const IPV4_LOOPBACK = /^127(?:\.(?:0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])){3}$/

/** Whether `host`, as handed to `listen()`, binds loopback only: `127.0.0.0/8`, `::1` or `localhost`. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.startsWith('[') && host.endsWith(']') ? host.slice(1, -1) : host
  return bare.toLowerCase() === 'localhost' || bare === '::1' || IPV4_LOOPBACK.test(bare)
}
