/** Listening and closing a server of ours on Node: bounded in every direction, and at an end when it is told to end. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  ANYTHING,
  boundsIn,
  checkBound,
  checkOptions,
  defineBounds,
  resolveBounds,
  type Shape,
  TEXT,
  TIMER_MAX_MS,
} from '../contract/options.js'
import { boundConnections } from './node-bounds.js'

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

/** A server that listens. */
export interface Listening {
  url: string
  port: number
  /**
   * Ends idle connections at once, lets answers under way out, and cuts off what is left after `closeTimeoutMs`.
   * Calling it twice is fine. @returns how many connections were cut off.
   */
  close(): Promise<{ cut: number }>
}

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

export const LISTEN_OPTIONS: Shape<ListenOptions> = { ...boundsIn(BOUNDS), host: TEXT, port: ANYTHING }

/** @throws TypeError for an option that there is not, RangeError for a bound that is not a positive whole number. */
function readOptions(options: ListenOptions) {
  checkOptions(options, LISTEN_OPTIONS)
  const { host = '127.0.0.1', port = 0 } = options
  return { host, port: checkBound('port', port, PORT_MAX, 0), ...resolveBounds(options, BOUNDS) }
}

/** Resolves once `server` listens; names the port that somebody else has. */
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
  // Asked for only here: the adapter itself loads where there is no Node.
  const { createServer } = await import('node:http')
  const server = createServer({
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: requestMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    keepAliveTimeout: keepAliveMs,
    // Whoever is served refuses a missing Host by an answer of its own.
    requireHostHeader: false,
  })
  // Over its bound Node drops lines without a word, and with them what a guard must see; 16 KiB bound them all.
  server.maxHeadersCount = 0
  server.maxRequestsPerSocket = requests
  const held = boundConnections(server, listener, bounds)
  server.on('request', held.listener)
  // By itself Node would answer it without an end.
  server.on('checkExpectation', held.listener)
  await opened(server, port, host.replace(/^\[(.*)\]$/, '$1'))
  const address = server.address() as AddressInfo
  const name = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host

  let closed: Promise<{ cut: number }> | undefined
  const close = () =>
    new Promise<{ cut: number }>((resolve) => {
      let cut = 0
      const grace = setTimeout(() => {
        cut = held.cut()
      }, closeTimeoutMs)
      server.close(() => {
        clearTimeout(grace)
        resolve({ cut })
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
