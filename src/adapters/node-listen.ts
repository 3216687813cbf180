/** Starts and closes a Node server with limits on connections, requests and closing time. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  ANYTHING,
  boundRules,
  checkBound,
  checkOptions,
  defineBounds,
  resolveBounds,
  type Shape,
  TEXT,
  TIMER_MAX_MS,
} from '../contract/checks.js'
import { boundConnections } from './node-bounds.js'
import type { Listening, ListenOptions } from './options.js'

// How often sockets are looked at that take too long.
const CHECK_MS = 1_000

const BOUNDS = defineBounds({
  headersMs: [5_000, TIMER_MAX_MS],
  requestMs: [30_000, TIMER_MAX_MS],
  keepAliveMs: [5_000, TIMER_MAX_MS],
  stallMs: [10_000, TIMER_MAX_MS],
  connections: 512,
  requests: 1_000,
  pipelined: 16,
  closeTimeoutMs: [5_000, TIMER_MAX_MS],
})

const PORT_MAX = 65_535

export const LISTEN_OPTIONS: Shape<ListenOptions> = { ...boundRules(BOUNDS), host: TEXT, port: ANYTHING }

/** @throws TypeError for an option that there is not, RangeError for a bound that is not a positive whole number. */
function readOptions(options: ListenOptions) {
  checkOptions(options, LISTEN_OPTIONS)
  const { host = '127.0.0.1', port = 0 } = options
  return { host, port: checkBound('port', port, PORT_MAX, 0), ...resolveBounds(options, BOUNDS) }
}

/** Resolves once `server` listens; the error names a port that is in use. */
function opened(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: NodeJS.ErrnoException) => {
      const taken = cause.code === 'EADDRINUSE'
      reject(taken ? new Error(`port ${port} on ${host} is already in use`, { cause }) : cause)
    }
    server.once('error', refuse)
    server.listen(port, host, () => {
      server.off('error', refuse)
      // A connection that could not be accepted is its caller's loss, not the end of the process.
      server.on('error', () => {})
      resolve()
    })
  })
}

/**
 * Serves `listener`, one request of a connection after the other.
 *
 * @throws Error naming the port that is in use; TypeError and RangeError for unusable options.
 */
export async function listen(
  listener: (req: IncomingMessage, res: ServerResponse) => void,
  options: ListenOptions = {},
): Promise<Listening> {
  const { host, port, headersMs, requestMs, keepAliveMs, closeTimeoutMs, requests, ...bounds } = readOptions(options)
  // Imported here because the adapter module itself must load without Node.
  const { createServer } = await import('node:http')
  const server = createServer({
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    keepAliveTimeout: keepAliveMs,
    // The handler itself refuses a missing Host.
    requireHostHeader: false,
  })
  // Node silently drops header lines over its limit, and a guard must see them all; the 16 KiB header size bounds them.
  server.maxHeadersCount = 0
  server.maxRequestsPerSocket = requests
  const held = boundConnections(server, listener, bounds)
  server.on('request', held.listener)
  // Without a listener Node would leave the response open.
  server.on('checkExpectation', held.listener)
  await opened(server, port, host.replace(/^\[(.*)\]$/, '$1'))
  const address = server.address() as AddressInfo
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host

  let closed: Promise<{ aborted: number }> | undefined
  const close = () =>
    new Promise<{ aborted: number }>((resolve) => {
      let aborted = 0
      const grace = setTimeout(() => {
        aborted = held.cut()
      }, closeTimeoutMs)
      server.close(() => {
        clearTimeout(grace)
        resolve({ aborted })
      })
      held.release()
    })
  return {
    url: `http://${name}:${address.port}`,
    port: address.port,
    close() {
      closed ??= close()
      return closed
    },
  }
}
