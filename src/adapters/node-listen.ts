/** Starts and closes a Node server with limits on connections, requests and closing time. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
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
} from '../internal/contract/checks.js'
import type { FetchHandler } from './handler.js'
import { toNodeHandler } from './node-handler.js'
import { type Listening, type ListenOptions, MOUNT_OPTIONS, type MountOptions } from './options.js'

// Bounds the connections of a Node server, including pipelined requests and clients that do not read.

interface ConnectionBounds {
  /**
   * Maximum open connections. Beyond it the longest idle one is closed, then one that does not read, then one that has
   * pipelined requests.
   */
  connections: number
  /** Maximum pipelined requests per connection; a connection that exceeds it is closed. */
  pipelined: number
  /** How long a connection may take nothing while bytes wait for it. */
  stallMs: number
}

type Listener = (req: IncomingMessage, res: ServerResponse) => void

interface Connection {
  /** Requests without a complete response: the first is being served, the others wait. */
  waiting: (() => void)[]
}

interface BoundConnections {
  /** Serves the requests of a connection one at a time, so that at most one response is buffered. */
  listener: Listener
  /** Destroys every connection that has no request under way, and from now on each one once it has been answered. */
  release(): void
  /** Destroys the remaining connections. @returns how many there were. */
  cut(): number
}

/** Holds the connections of `server` within `bounds`. */
function boundConnections(server: Server, listener: Listener, bounds: ConnectionBounds): BoundConnections {
  const { connections, pipelined, stallMs } = bounds
  // In the order in which they last became idle, so that the first idle one is so for longest.
  const open = new Map<Socket, Connection>()
  let releasing = false

  const isIdle = ([, { waiting }]: [Socket, Connection]) => waiting.length === 0
  const isStalled = ([socket]: [Socket, Connection]) => socket.writableLength > 0
  const isAhead = ([, { waiting }]: [Socket, Connection]) => waiting.length > 1

  server.on('connection', (socket: Socket) => {
    if (open.size >= connections) {
      const [evicted] = [...open].find(isIdle) ?? [...open].find(isStalled) ?? [...open].find(isAhead) ?? [socket]
      open.delete(evicted)
      evicted.destroy()
      if (evicted === socket) return
    }
    open.set(socket, { waiting: [] })
    socket.on('close', () => open.delete(socket))
  })

  server.setTimeout(stallMs, (socket: Socket) => {
    const waits = (open.get(socket)?.waiting.length ?? 0) > 0
    // It waits for us, and not we for it.
    if (waits && socket.writableLength === 0) socket.setTimeout(stallMs)
    else socket.destroy()
  })

  function answered(socket: Socket, connection: Connection): void {
    const { waiting } = connection
    waiting.shift()
    if (releasing) socket.destroySoon()
    if (releasing || socket.destroyed) return
    if (waiting.length === 0) {
      open.delete(socket)
      open.set(socket, connection)
      // In the next event-loop round, so that new requests of other connections go first.
    } else setImmediate(() => socket.destroyed || waiting[0]?.())
  }

  return {
    listener(req, res) {
      const { socket } = req
      const connection = open.get(socket)
      // Node has already parsed further requests from the same chunk.
      if (connection === undefined || socket.destroyed) return
      const { waiting } = connection
      if (waiting.length === pipelined) return void socket.destroy()
      waiting.push(() => listener(req, res))
      res.on('close', () => answered(socket, connection))
      if (waiting.length === 1) listener(req, res)
    },
    release() {
      releasing = true
      for (const entry of open) if (isIdle(entry)) entry[0].destroy()
    },
    cut() {
      const remaining = open.size
      for (const socket of [...open.keys()]) socket.destroy()
      return remaining
    },
  }
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

const LISTEN_OPTIONS: Shape<ListenOptions> = { ...boundRules(BOUNDS), host: TEXT, port: ANYTHING }

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
 * @internal
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

// Serves a fetch-style handler with a Node HTTP server.

/** Options of `startNodeServer`. */
export interface NodeServerOptions extends ListenOptions, MountOptions {}

/** A server that is listening. */
export type NodeServer = Listening

const OPTIONS: Shape<NodeServerOptions> = { ...LISTEN_OPTIONS, ...MOUNT_OPTIONS }

/**
 * Serves `handler`, bounded in every direction: slow senders, readers that take nothing, requests that pile up on a
 * connection, and connections themselves.
 *
 * @throws Error naming the port that is in use; TypeError and RangeError for unusable options.
 * @example
 * ```ts
 * import { startNodeServer } from 'relayscope/node'
 *
 * const server = await startNodeServer(() => new Response('hello'), { allowedHosts: ['loopback'] })
 * console.log(server.url)
 * await server.close()
 * ```
 */
export async function startNodeServer(handler: FetchHandler, options: NodeServerOptions = {}): Promise<NodeServer> {
  checkOptions(options, OPTIONS)
  const { allowedHosts, onError, ...rest } = options
  return listen(toNodeHandler(handler, { allowedHosts, onError }), rest)
}
