/** Follows the sockets of a WebSocket server and writes them to the connection registry. */
import { guardErrorHook, guardHook } from '../../async/hook.js'
import {
  checkOptions,
  checkParts,
  FLAG,
  FUNCTION,
  required,
  resolveBounds,
  type Shape,
  withMethods,
} from '../../contract/checks.js'
import type { Connection } from '../../contract/connections.js'
import { createConnectionFollower, type FollowedConnections, UNKNOWN } from '../follow/connections.js'
import { FOLLOW_BOUNDS, FOLLOW_OPTIONS, type Follower, type FollowOptions, type Identity } from '../follow/writer.js'

// The close codes of WebSocket as the names that a registry keeps for why a connection went.

/** As RFC 6455 and its registry name them. */
const NAMES: Readonly<Record<number, string>> = {
  1000: 'normal_closure',
  1001: 'going_away',
  1002: 'protocol_error',
  1003: 'unsupported_data',
  1005: 'no_status_received',
  1006: 'abnormal_closure',
  1007: 'invalid_payload',
  1008: 'policy_violation',
  1009: 'message_too_big',
  1010: 'mandatory_extension',
  1011: 'internal_error',
  1012: 'service_restart',
  1013: 'try_again_later',
  1014: 'bad_gateway',
  1015: 'tls_handshake',
}

/** A code of a library or an application has no name but its number. */
const reasonOf = (code: number): string => NAMES[code] ?? `close_${code}`

/** The used part of a `ws` socket or a compatible one. */
export interface FollowedWebSocket {
  /** As in a browser: 3 is closed. Without it, only the `close` event counts. */
  readonly readyState?: number | undefined
  ping(): void
  on(event: 'close', listener: (this: never, code: number) => void): unknown
  on(event: 'ping' | 'pong', listener: (this: never) => void): unknown
  off(event: 'close', listener: (this: never, code: number) => void): unknown
  off(event: 'ping' | 'pong', listener: (this: never) => void): unknown
}

/**
 * The part of a server that is used: a `WebSocketServer` of `ws` has it. The types of sockets and requests are inferred from
 * `clients` and `shouldHandle`, because TypeScript infers `any` from the overloads of `on`. For a server without them, annotate
 * the parameters of `identify`.
 */
export interface FollowedWebSocketServer<S, R> {
  /** The sockets that are already connected. */
  readonly clients?: Iterable<S> | undefined
  /** Only its type is used. */
  shouldHandle?(request: R): unknown
  on(event: 'connection', listener: (socket: NoInfer<S>, request: NoInfer<R>) => void): unknown
  off(event: 'connection', listener: (socket: NoInfer<S>, request: NoInfer<R>) => void): unknown
}

/** Options of `followWebSockets`. */
export interface FollowWebSocketsOptions<S, R> extends FollowOptions {
  /** The connection registry, of either composition. */
  connections: FollowedConnections
  /**
   * Returns the owner of a socket: use what you have authenticated, never what the client claims. `null` is not
   * followed. `request` is the upgrade request, `undefined` for a socket that was open before.
   */
  identify: (socket: S, request: R | undefined) => Identity | null | PromiseLike<Identity | null>
  /** Whether a socket that has been silent for `heartbeatMs` is pinged; else the host's own pings must do. @default true */
  ping?: boolean | undefined
  /**
   * Called with a socket and its connection once that is written, and again if the store had lost it or a newer
   * instance has disconnected: from then on this instance is the current one.
   */
  onConnected?: ((socket: S, connection: Connection) => void) | undefined
  /** Called with a socket that is still open when a newer instance of its client has taken over; a host may close it. */
  onSuperseded?: ((socket: S) => void) | undefined
}

const OPTIONS: Shape<FollowWebSocketsOptions<unknown, unknown>> = {
  ...FOLLOW_OPTIONS,
  connections: required(withMethods('connect', 'heartbeat', 'disconnect', 'currentInstance')),
  identify: required(FUNCTION),
  ping: FLAG,
  onConnected: FUNCTION,
  onSuperseded: FUNCTION,
}

// A server of HTTP and one of Socket.IO emit `connection` too, but for other sockets.
const SERVER: Shape<{ server: unknown }> = {
  server: required({
    expected: 'a WebSocketServer (on, off, clients), not the HTTP server that it is attached to',
    test(value) {
      const { on, off, clients, listen, readyState } = (value ?? {}) as Record<string, unknown>
      if (typeof on !== 'function' || typeof off !== 'function') return false
      if (clients === undefined) return listen === undefined && readyState === undefined
      return typeof (clients as Iterable<unknown> | null)?.[Symbol.iterator] === 'function'
    },
  }),
}

const CLOSED = 3

/**
 * Follows every current and future socket of `server`: connected once `identify` has returned its owner, alive on each
 * pong, disconnected with its close code. It only listens. Store failures never reach the host: a state that cannot be
 * written now is written later, as it is then.
 *
 * @throws TypeError, RangeError for an invalid server or option.
 *
 * @example
 * followWebSockets(server, { connections: facilities.connections, identify: (socket, request) => clientOf(request) })
 */
export function followWebSockets<S extends FollowedWebSocket, R>(
  server: FollowedWebSocketServer<S, R>,
  options: FollowWebSocketsOptions<S, R>,
): Follower {
  checkParts({ server }, SERVER)
  checkOptions(options, OPTIONS)
  const { connections, identify, ping = true, onConnected, onSuperseded, onError } = options
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'hook' })

  // One shared listener that uses `this`: a closure per socket would be most of its cost.
  function onClose(this: S, code: number): void {
    follower.leave(this, reasonOf(code))
  }
  function onSign(this: S): void {
    follower.seen(this)
  }
  const follower = createConnectionFollower<S>({
    ...resolveBounds(options, FOLLOW_BOUNDS),
    connections,
    metadataOf: () => ({ transport: 'websocket' }),
    probe(socket) {
      // A host that takes all listeners off a socket has taken ours, too.
      if (socket.readyState === CLOSED) follower.leave(socket, UNKNOWN)
      else if (ping) socket.ping()
    },
    release(socket) {
      socket.off('close', onClose)
      socket.off('pong', onSign)
      socket.off('ping', onSign)
    },
    report,
    connected: guardHook(onConnected, failed),
    superseded: guardHook(onSuperseded, failed),
    now: () => performance.now(),
  })

  function onConnection(socket: S, request: R | undefined): void {
    socket.on('close', onClose)
    socket.on('pong', onSign)
    socket.on('ping', onSign)
    follower.follow(socket, () => identify(socket, request))
  }
  for (const socket of server.clients ?? []) onConnection(socket, undefined)
  server.on('connection', onConnection)

  return {
    close() {
      server.off('connection', onConnection)
      return follower.close()
    },
  }
}
