/** Follows the transports of an MCP server: its sessions as connections, and the requests of both sides as calls. */
import type { CloseResult } from '../../internal/async/deadline.js'
import { guardErrorHook, guardHook } from '../../internal/async/hook.js'
import {
  checkOptions,
  checkParts,
  required,
  resolveBounds,
  type Shape,
  withMethods,
} from '../../internal/contract/checks.js'
import type { CallDirection } from '../../internal/contract/rpc.js'
import type { CallId, FollowedCalls } from '../follow/call-records.js'
import { CALL_OPTIONS, followCalls, identifyLater } from '../follow/calls.js'
import {
  CONNECTION_OPTIONS,
  createConnectionFollower,
  type FollowConnectionsOptions,
  UNKNOWN,
} from '../follow/connections.js'
import { type CallMessage, observe, readJsonRpc } from '../follow/messages.js'
import { FOLLOW_BOUNDS, type Follower, type Identity } from '../follow/writer.js'

/** The used part of a transport of the MCP SDK: one of stdio, or of one session of streamable HTTP. */
export interface FollowedMcpTransport {
  readonly sessionId?: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: messages have the types of the SDK, which is not imported
  send(message: any, ...rest: any[]): Promise<void>
  // biome-ignore lint/suspicious/noExplicitAny: as above
  onmessage?: ((message: any, ...rest: any[]) => void) | undefined
  onclose?: (() => void) | undefined
}

/** Options of `followMcpSessions` and `followMcp`. */
export interface FollowMcpOptions<T, R> extends FollowConnectionsOptions<T> {
  /** The correlator that observed calls are written to, of either composition. */
  calls: FollowedCalls
  /** How long a call without a reply or progress is kept, in milliseconds; then it ends as `unanswered`. @default 3600000 */
  keepMs?: number | undefined
  /**
   * Returns the owner of a session: use what you have authenticated, never what the client claims. `null` is not
   * followed. `request` is what was passed with the transport.
   */
  identify: (transport: T, request: R | undefined) => Identity | null | PromiseLike<Identity | null>
}

const OPTIONS: Shape<FollowMcpOptions<unknown, unknown>> = {
  ...CONNECTION_OPTIONS,
  keepMs: CALL_OPTIONS.keepMs,
  calls: required(withMethods('observe')),
}

const TRANSPORT: Shape<{ transport: unknown }> = {
  transport: required({ ...withMethods('send', 'start'), expected: 'a transport of an MCP server (send, start)' }),
}

/** A running follower of the sessions of an MCP server. */
export interface McpFollower<T, R> extends Follower {
  /** Follows a transport until it closes. One that is followed already is left as it is. @throws TypeError */
  add(transport: T, request?: R): void
  /** Stops following a transport, with the reason `unknown`, and restores it. */
  leave(transport: T): void
}

/** Maximum number of progress tokens that are kept, of a session and direction. */
const TOKENS_MAX = 200

interface Message {
  readonly method?: unknown
  readonly params?: {
    readonly _meta?: Readonly<Record<string, unknown>> | null | undefined
    readonly progressToken?: unknown
  } | null
}

/** One session: of each direction, ids of requests by their progress tokens. */
interface Session {
  readonly to_client: Map<unknown, CallId>
  readonly to_server: Map<unknown, CallId>
  undo(): void
}

/** Returns what a message says of a call, as JSON-RPC and with what MCP adds: progress and traces. */
function read(session: Session, message: Message, direction: CallDirection): CallMessage | undefined {
  const found = readJsonRpc(message)
  if (found?.kind === 'request' && found.id !== undefined) {
    const { progressToken: token, traceparent: trace } = message.params?._meta ?? {}
    const tokens = session[direction]
    // An earlier request may have had this token.
    tokens.delete(token)
    if (token !== undefined) tokens.set(token, found.id)
    if (tokens.size > TOKENS_MAX) tokens.delete(tokens.keys().next().value)
    return { ...found, trace }
  }
  if (!found || message.method !== 'notifications/progress') return found
  const tokens = direction === 'to_client' ? session.to_server : session.to_client
  return { kind: 'progress', id: tokens.get(message.params?.progressToken) }
}

/**
 * Follows each transport that is passed to `add`: connected once `identify` has returned the owner of its session, alive
 * while it is open, disconnected when it closes. Requests of the client, such as a call of a tool with its name,
 * and those of the server are recorded as calls. It wraps `send`, `onmessage` and `onclose` of that transport only.
 * Store failures never reach the host: a state that cannot be written now is written later, as it is then.
 *
 * @throws TypeError, RangeError for an invalid option.
 *
 * @example
 * const sessions = followMcpSessions({ connections, calls: rpc, identify: (transport, request) => userOf(request) })
 * sessions.add(transport, request)
 */
export function followMcpSessions<T extends FollowedMcpTransport, R = unknown>(
  options: FollowMcpOptions<T, R>,
): McpFollower<T, R> {
  return createMcpFollower(options)
}

/** `onEnd` is called with each transport that is not followed any longer. */
function createMcpFollower<T extends FollowedMcpTransport, R>(
  options: FollowMcpOptions<T, R>,
  onEnd?: (transport: T) => void,
): McpFollower<T, R> {
  checkOptions(options, OPTIONS)
  const { connections, identify, onConnected, onSuperseded, onError } = options
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'hook' })
  const calls = followCalls(options, report)
  const sessions = new Map<T, Session>()
  let hasFailed = false
  function look(transport: T, message: unknown, direction: CallDirection): void {
    const session = sessions.get(transport)
    const link = follower.linkOf(transport)
    if (!session || !link || !calls) return
    try {
      const found = read(session, message as Message, direction)
      if (found) observe(calls, link, found, direction)
    } catch (error) {
      if (!hasFailed) failed(error)
      hasFailed = true
    }
  }

  /** Wraps a member of `transport`; the result restores it. */
  function wrap<N extends 'send' | 'onmessage' | 'onclose'>(
    transport: FollowedMcpTransport,
    name: N,
    wrapped: NonNullable<FollowedMcpTransport[N]>,
  ): () => void {
    const isOwn = Object.hasOwn(transport, name)
    const before = transport[name]
    transport[name] = wrapped
    return () => {
      // Another one may have wrapped it since: then this one only passes on.
      if (transport[name] !== wrapped) return
      // A class may pass a handler on to another transport: the property is then not its own.
      if (isOwn || Object.hasOwn(transport, name) === false) transport[name] = before as typeof wrapped
      else Reflect.deleteProperty(transport, name)
    }
  }

  function listenTo(transport: T): void {
    const { send, onmessage, onclose } = transport
    const undo = [
      wrap(transport, 'send', function (this: unknown, message, ...rest) {
        look(transport, message, 'to_client')
        return send.call(this, message, ...rest)
      }),
      // The SDK calls a handler that a transport has when it connects, before its own.
      wrap(transport, 'onmessage', function (this: unknown, message, ...rest) {
        follower.seen(transport)
        look(transport, message, 'to_server')
        onmessage?.call(this, message, ...rest)
      }),
      wrap(transport, 'onclose', function (this: unknown) {
        follower.leave(transport, 'transport_closed')
        onclose?.call(this)
      }),
    ]
    sessions.set(transport, {
      to_client: new Map(),
      to_server: new Map(),
      undo() {
        for (const restore of undo) restore()
      },
    })
  }

  const follower = createConnectionFollower<T>({
    ...resolveBounds(options, FOLLOW_BOUNDS),
    connections,
    calls,
    metadataOf: () => ({ transport: 'mcp' }),
    // MCP has no sign of life of its own: a session counts as alive while its transport is open.
    probe: (transport) => follower.seen(transport),
    release(transport) {
      sessions.get(transport)?.undo()
      sessions.delete(transport)
      onEnd?.(transport)
    },
    report,
    connected: guardHook(onConnected, failed),
    superseded: guardHook(onSuperseded, failed),
  })
  let closing: Promise<CloseResult> | undefined
  return {
    add(transport, request) {
      checkParts({ transport }, TRANSPORT)
      if (closing || sessions.has(transport)) return
      listenTo(transport)
      follower.follow(transport, () => identifyLater(() => identify(transport, request)))
    },
    leave: (transport) => follower.leave(transport, UNKNOWN),
    close() {
      closing ??= follower.close()
      return closing
    },
  }
}

/**
 * Follows one transport as `followMcpSessions` does, until it closes: such as that of a server over stdio.
 *
 * @throws TypeError, RangeError for an invalid transport or option.
 *
 * @example
 * followMcp(transport, { connections, calls: rpc, identify: () => owner })
 */
export function followMcp<T extends FollowedMcpTransport>(
  transport: T,
  options: FollowMcpOptions<T, undefined>,
): Follower {
  checkParts({ transport }, TRANSPORT)
  // Once the end of its connection and calls is queued.
  const follower = createMcpFollower(options, () => queueMicrotask(() => void follower.close()))
  follower.add(transport)
  return follower
}
