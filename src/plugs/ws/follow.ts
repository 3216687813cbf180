/** Follows the sockets of a WebSocket server and writes them to the connection registry. */
import { guardErrorHook, guardHook } from '../../internal/async/hook.js'
import {
  checkOptions,
  checkParts,
  FLAG,
  missingOption,
  required,
  resolveBounds,
  type Shape,
  withMethods,
} from '../../internal/contract/checks.js'
import type { CallDirection } from '../../internal/contract/rpc.js'
import { CALL_OPTIONS, type FollowCallsOptions, followCalls, identifyLater, listenFirst } from '../follow/calls.js'
import {
  CONNECTION_OPTIONS,
  createConnectionFollower,
  type FollowConnectionsOptions,
  UNKNOWN,
} from '../follow/connections.js'
import { type CallMessage, type CallProtocol, observe, TEXT_MAX } from '../follow/messages.js'
import { FOLLOW_BOUNDS, type Follower, type Identity } from '../follow/writer.js'

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
export interface FollowWebSocketsOptions<S, R> extends FollowConnectionsOptions<S>, FollowCallsOptions {
  /**
   * Returns the owner of a socket: use what you have authenticated, never what the client claims. `null` is not
   * followed. `request` is the upgrade request, `undefined` for a socket that was open before.
   */
  identify: (socket: S, request: R | undefined) => Identity | null | PromiseLike<Identity | null>
  /** How messages are read: `jsonRpc`, or the host's own; required with `calls`. @default none */
  protocol?: CallProtocol | undefined
  /** Whether a socket that has been silent for `heartbeatMs` is pinged; else the host's own pings must do. @default true */
  ping?: boolean | undefined
}

const OPTIONS: Shape<FollowWebSocketsOptions<unknown, unknown>> = {
  ...CONNECTION_OPTIONS,
  ...CALL_OPTIONS,
  protocol: withMethods('read'),
  ping: FLAG,
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

/** A running follower of a WebSocket server. */
export interface WebSocketFollower<S, R> extends Follower {
  /** Follows a socket for which the server emits no `connection`. One that is followed already is left as it is. */
  add(socket: S, request?: R): void
}

/** The part of a socket that messages are read from. */
interface Talking {
  send(this: unknown, data: unknown, ...rest: unknown[]): unknown
  on(event: 'message', listener: (this: never, data: unknown, isBinary: boolean) => void): unknown
  off(event: 'message', listener: (this: never, data: unknown, isBinary: boolean) => void): unknown
}

/** The beginning of the text of a message; `undefined` if it has none. */
function textOf(data: unknown): string | undefined {
  if (typeof data === 'string') return data.length > TEXT_MAX ? data.slice(0, TEXT_MAX) : data
  // Buffers of Node.js; others are not text.
  if (!(data instanceof Uint8Array) || data.constructor === Uint8Array) return undefined
  return (data as unknown as { toString(encoding: string, from: number, to: number): string }).toString(
    'utf8',
    0,
    TEXT_MAX,
  )
}

/**
 * Follows every current and future socket of `server`: connected once `identify` has returned its owner, alive on each
 * pong, disconnected with its close code. With `calls`, the requests and replies in its messages are recorded. It only
 * listens; the `send` of each socket is wrapped for its calls. Store failures never reach the host: a state that cannot
 * be written now is written later, as it is then.
 *
 * @throws TypeError, RangeError for an invalid server or option.
 *
 * @example
 * followWebSockets(server, { connections, calls: rpc, protocol: jsonRpc, identify: (socket, request) => clientOf(request) })
 */
export function followWebSockets<S extends FollowedWebSocket, R>(
  server: FollowedWebSocketServer<S, R>,
  options: FollowWebSocketsOptions<S, R>,
): WebSocketFollower<S, R> {
  checkParts({ server }, SERVER)
  checkOptions(options, OPTIONS)
  const { connections, identify, protocol, ping = true, aliveOnMessage, onConnected, onSuperseded, onError } = options
  if (!options.calls !== !protocol)
    throw missingOption(protocol ? 'calls' : 'protocol', 'object: calls are followed with both options')
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'hook' })
  const calls = followCalls(options, report)
  /** Restores the `send` of each socket. */
  const undo = new Map<S, () => void>()
  // One shared listener that uses `this`: a closure per socket would be most of its cost.
  function onClose(this: S, code: number): void {
    follower.leave(this, reasonOf(code))
  }
  function onSign(this: S): void {
    follower.seen(this)
  }
  function onMessage(this: S, data: unknown, isBinary: boolean): void {
    if (aliveOnMessage) follower.seen(this)
    if (calls && !isBinary) read(this, data, 'to_server')
  }
  let hasFailed = false
  function read(socket: S, data: unknown, direction: CallDirection): void {
    const link = follower.linkOf(socket)
    if (!link || !calls) return
    try {
      const text = textOf(data)
      const found = text === undefined ? undefined : protocol?.read(text, direction)
      if (found === undefined) return
      if (!Array.isArray(found)) observe(calls, link, found as CallMessage, direction)
      else for (const message of found) observe(calls, link, message, direction)
    } catch (error) {
      if (!hasFailed) failed(error)
      hasFailed = true
    }
  }
  function listenTo(socket: S): void {
    const talking = socket as unknown as Talking
    if (calls || aliveOnMessage) talking.on('message', onMessage)
    if (!calls) return
    const isOwn = Object.hasOwn(talking, 'send')
    const { send } = talking
    const wrapped: Talking['send'] = function (data, ...rest) {
      read(socket, data, 'to_client')
      return send.call(this, data, ...rest)
    }
    talking.send = wrapped
    undo.set(socket, () => {
      // Another one may have wrapped it since: then this one only passes on.
      if (talking.send !== wrapped) return
      if (isOwn) talking.send = send
      else Reflect.deleteProperty(talking, 'send')
    })
  }
  const follower = createConnectionFollower<S>({
    ...resolveBounds(options, FOLLOW_BOUNDS),
    connections,
    calls,
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
      if (calls || aliveOnMessage) (socket as unknown as Talking).off('message', onMessage)
      undo.get(socket)?.()
      undo.delete(socket)
    },
    report,
    connected: guardHook(onConnected, failed),
    superseded: guardHook(onSuperseded, failed),
  })
  let isClosed = false
  function onConnection(socket: S, request: R | undefined): void {
    if (isClosed || follower.has(socket)) return
    socket.on('close', onClose)
    socket.on('pong', onSign)
    socket.on('ping', onSign)
    listenTo(socket)
    const learn = () => identify(socket, request)
    follower.follow(socket, calls ? () => identifyLater(learn) : learn)
  }
  for (const socket of server.clients ?? []) onConnection(socket, undefined)
  if (calls) listenFirst(server, onConnection)
  else server.on('connection', onConnection)
  return {
    add: (socket, request) => onConnection(socket, request),
    close() {
      isClosed = true
      server.off('connection', onConnection)
      return follower.close()
    },
  }
}
