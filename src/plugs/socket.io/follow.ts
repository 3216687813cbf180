/** Follows the sockets of a Socket.IO server in all namespaces and writes them to the connection registry. */
import { guardErrorHook, guardHook } from '../../internal/async/hook.js'
import {
  checkOptions,
  checkParts,
  FUNCTION,
  LIST,
  required,
  resolveBounds,
  type Shape,
} from '../../internal/contract/checks.js'
import type { ConnectInput } from '../../internal/contract/connections.js'
import type { CallDirection } from '../../internal/contract/rpc.js'
import {
  CALL_OPTIONS,
  type FollowCallsOptions,
  followCalls,
  identifyLater,
  listenFirst,
  type ObservedCallTable,
} from '../follow/calls.js'
import {
  CONNECTION_OPTIONS,
  createConnectionFollower,
  type FollowConnectionsOptions,
  UNKNOWN,
} from '../follow/connections.js'
import { observe } from '../follow/messages.js'
import { FOLLOW_BOUNDS, type Follower, type Identity } from '../follow/writer.js'

// The namespaces that are listened to, held so that those which their server forgets are forgotten.

export interface Namespaces<S> {
  /** @param release Takes the listeners off `namespace`. */
  add(namespace: FollowedNamespace<S>, release: () => void): void
  /** Takes the listeners off all that are there. */
  release(): void
}

/** Held weakly: a server may drop a dynamic namespace with its last socket without notice. */
function createNamespaces<S>(): Namespaces<S> {
  type Held = WeakRef<FollowedNamespace<S>>
  const held = new Set<Held>()
  const releases = new WeakMap<FollowedNamespace<S>, () => void>()
  const dropped = new FinalizationRegistry<Held>((one) => held.delete(one))
  return {
    add(namespace, release) {
      const one = new WeakRef(namespace)
      held.add(one)
      releases.set(namespace, release)
      dropped.register(namespace, one)
    },
    release() {
      for (const one of held) {
        const namespace = one.deref()
        if (namespace) releases.get(namespace)?.()
      }
    },
  }
}

/** Options of `followSocketIo`. */
export interface FollowSocketIoOptions<S> extends FollowConnectionsOptions<S>, FollowCallsOptions {
  /**
   * Returns the owner of a socket: use what you have authenticated, never what the client claims. `null` is not
   * followed.
   */
  identify: (socket: S) => Identity | null | PromiseLike<Identity | null>
  /** The actions that a socket's client offers. @default those of `identify`, if any */
  actionsOf?: ((socket: S) => Actions | PromiseLike<Actions>) | undefined
  /** Namespaces that were made before, by name; the root and those made later are followed by themselves. @default none */
  namespaces?: readonly string[] | undefined
}

type Actions = NonNullable<ConnectInput['actions']>

const OPTIONS: Shape<FollowSocketIoOptions<unknown>> = {
  ...CONNECTION_OPTIONS,
  ...CALL_OPTIONS,
  actionsOf: FUNCTION,
  namespaces: LIST,
}

const SERVER: Shape<{ io: unknown }> = {
  io: required({
    expected: 'a Server of Socket.IO (on, off, of, sockets), not a namespace, a socket or an HTTP server',
    test(value) {
      const { on, off, of, sockets } = (value ?? {}) as Record<string, unknown>
      const root = (sockets ?? {}) as Record<string, unknown>
      return [on, off, of, root.on].every((method) => typeof method === 'function') && root.adapter !== undefined
    },
  }),
}

// The packets of the default parser: `2/namespace,7["event",…]` is an event that asks for acknowledgement 7, and `3/namespace,7[…]`
// is that. 5 and 6 are the same with binary parts, whose number comes before a dash.

const DIGIT_0 = 0x30
const DIGIT_9 = 0x39
const isDigit = (code: number) => code >= DIGIT_0 && code <= DIGIT_9

interface AckPacket {
  readonly kind: 'request' | 'reply'
  readonly namespace: string
  readonly id: number
  readonly action: string
}

/** Reads the beginning of a packet. Returns `undefined` for one without an acknowledgement. */
function readPacket(text: string): AckPacket | undefined {
  const type = text.charCodeAt(0) - DIGIT_0
  const isRequest = type === 2 || type === 5
  if (!isRequest && type !== 3 && type !== 6) return undefined
  let at = type > 3 ? text.indexOf('-') + 1 : 1
  let namespace = '/'
  if (text[at] === '/') {
    const end = text.indexOf(',', at)
    namespace = text.slice(at, end)
    at = end + 1
  }
  const from = at
  while (isDigit(text.charCodeAt(at))) at++
  if (at === from) return undefined
  const action = isRequest ? nameAfter(text, at) : ''
  return { kind: isRequest ? 'request' : 'reply', namespace, id: Number(text.slice(from, at)), action }
}

/** The name of an event, in `["name",…]` at `at`. */
function nameAfter(text: string, at: number): string {
  if (text.charCodeAt(at + 1) !== 0x22) return 'unknown'
  const end = text.indexOf('"', at + 2)
  return text.slice(at + 2, end)
}

/** Whether packets have the form that `readPacket` reads. */
function hasDefaultParser(io: unknown): boolean {
  try {
    const { encoder } = io as { encoder?: { encode?(packet: object): unknown } }
    const packet = { type: 2, nsp: '/', data: ['a'], id: 1 }
    return encoder?.encode === undefined || String(encoder.encode(packet)) === '21["a"]'
  } catch {
    return false
  }
}

/** Maximum room names listed, and their maximum length; further rooms are only counted. */
const ROOMS_MAX = 20
const ROOM_CHARS = 64

/** Metadata of a socket from Socket.IO itself. */
function metadataOf({ id, nsp, conn, rooms }: FollowedSocket) {
  const named: string[] = []
  let omitted = 0
  for (const room of rooms)
    if (room === id) continue
    else if (named.length < ROOMS_MAX && room.length <= ROOM_CHARS) named.push(room)
    else omitted++
  const { name: transport } = conn.transport
  return { transport, namespace: nsp.name, rooms: named, ...(omitted > 0 && { rooms_omitted: omitted }) }
}

/**
 * Follows every current and future socket of `io`: connected once `identify` has returned its owner, alive on each
 * Socket.IO pong, disconnected with its reason; rooms and transport are updated as they change. Several servers over
 * one shared store are one deployment, with or without an adapter. With `calls`, events that ask for an acknowledgement
 * are recorded, in both directions, until it comes. It only listens.
 *
 * @throws TypeError, RangeError for an invalid server or option.
 *
 * @example
 * followSocketIo(io, { connections, calls: rpc, identify: (socket) => socket.data.client })
 */
export function followSocketIo<S extends FollowedSocket>(
  io: FollowedSocketIoServer<S>,
  options: FollowSocketIoOptions<S>,
): Follower {
  checkParts({ io }, SERVER)
  checkOptions(options, OPTIONS)
  const { connections, identify, actionsOf, namespaces = [], onConnected, onSuperseded, onError } = options
  const { aliveOnMessage = false } = options
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'hook' })
  const calls = hasDefaultParser(io) || !options.calls ? followCalls(options, report) : undefined
  if (options.calls && !calls) failed(new TypeError('Calls are not followed: the server has a parser of its own'))
  /** The sockets of one client's link: one in each namespace. */
  const links = new Map<object, S[]>()
  const followed = createNamespaces<S>()

  function onDisconnect(this: S, reason: string): void {
    follower.leave(this, reason.replaceAll(' ', '_'))
  }
  function onHeartbeat(this: object): void {
    for (const socket of links.get(this) ?? []) look(socket)
  }
  /** Its link may live on without it, and a host that takes all listeners off a socket has taken ours, too. */
  function look(socket: S): void {
    if (socket.connected) follower.seen(socket)
    else follower.leave(socket, UNKNOWN)
  }
  function onSent(this: object, packet: EnginePacket): void {
    if (calls && packet.type === 'message') read(calls, this, packet.data, 'to_client')
  }
  function onReceived(this: object, packet: EnginePacket): void {
    if (packet.type !== 'message') return
    if (aliveOnMessage) onHeartbeat.call(this)
    if (calls) read(calls, this, packet.data, 'to_server')
  }
  /** Reads a packet that goes in `direction`. Nothing here throws. */
  function read(table: ObservedCallTable, conn: object, data: unknown, direction: CallDirection): void {
    const packet = typeof data === 'string' ? readPacket(data) : undefined
    const socket = packet && links.get(conn)?.find(({ nsp }) => nsp.name === packet.namespace)
    const link = socket && follower.linkOf(socket)
    if (link) observe(table, link, packet, direction)
  }
  function onUpgrade(this: object): void {
    for (const socket of links.get(this) ?? []) follower.changed(socket)
  }
  const follower = createConnectionFollower<S>({
    ...resolveBounds(options, FOLLOW_BOUNDS),
    connections,
    calls,
    metadataOf,
    // Socket.IO sends heartbeats itself and disconnects silent sockets.
    probe: look,
    release(socket) {
      socket.off('disconnect', onDisconnect)
      const { conn } = socket
      const others = links.get(conn)?.filter((other) => other !== socket) ?? []
      if (others.length > 0) {
        links.set(conn, others)
        return
      }
      links.delete(conn)
      conn.off('heartbeat', onHeartbeat)
      conn.off('upgrade', onUpgrade)
      conn.off('packetCreate', onSent)
      conn.off('packet', onReceived)
    },
    report,
    connected: guardHook(onConnected, failed),
    superseded: guardHook(onSuperseded, failed),
  })

  async function identityOf(socket: S): Promise<Identity | null> {
    const identity = await identify(socket)
    if (!identity || !actionsOf) return identity
    return { ...identity, actions: await actionsOf(socket) }
  }

  function onConnection(socket: S): void {
    // An earlier listener of the host may have disconnected it, and no further event follows.
    if (!socket.connected || follower.has(socket)) return
    const { conn } = socket
    const known = links.get(conn)
    links.set(conn, [...(known ?? []), socket])
    socket.on('disconnect', onDisconnect)
    if (!known) conn.on('heartbeat', onHeartbeat)
    if (!known) conn.on('upgrade', onUpgrade)
    if (!known && calls) conn.on('packetCreate', onSent)
    if (!known && (calls || aliveOnMessage)) conn.on('packet', onReceived)
    const learn = () => identityOf(socket)
    follower.follow(socket, calls ? () => identifyLater(learn) : learn)
  }

  function onNamespace(namespace: FollowedNamespace<S>): void {
    const { adapter } = namespace
    const onRoom = (_room: string, id: string): void => {
      const socket = namespace.sockets.get(id)
      if (socket) follower.changed(socket)
    }
    for (const event of ['join-room', 'leave-room'] as const) adapter.on(event, onRoom)
    for (const socket of namespace.sockets.values()) onConnection(socket)
    if (calls) listenFirst(namespace, onConnection)
    else namespace.on('connection', onConnection)
    followed.add(namespace, () => {
      namespace.off('connection', onConnection)
      for (const event of ['join-room', 'leave-room'] as const) adapter.off(event, onRoom)
    })
  }
  for (const namespace of new Set([io.sockets, ...namespaces.map((name) => io.of(name))])) onNamespace(namespace)
  io.on('new_namespace', onNamespace)

  return {
    close() {
      io.off('new_namespace', onNamespace)
      followed.release()
      return follower.close()
    },
  }
}

// The used part of a Socket.IO server, version 4.1 and later.

/** One link of a client, which its sockets in all namespaces share. */
export interface FollowedLink {
  readonly transport: { readonly name: string }
  on(event: 'heartbeat' | 'upgrade', listener: (this: never) => void): unknown
  on(event: 'packet' | 'packetCreate', listener: (this: never, packet: EnginePacket) => void): unknown
  off(event: 'heartbeat' | 'upgrade', listener: (this: never) => void): unknown
  off(event: 'packet' | 'packetCreate', listener: (this: never, packet: EnginePacket) => void): unknown
}

/** A packet of engine.io; one of type `message` has a packet of Socket.IO as its data. */
export interface EnginePacket {
  /** Its type, such as `message` or `ping`. */
  readonly type: string
  /** Its data: text, or bytes. */
  readonly data?: unknown
}

/** A socket in one namespace. */
export interface FollowedSocket {
  readonly id: string
  readonly connected: boolean
  readonly rooms: ReadonlySet<string>
  readonly nsp: { readonly name: string }
  readonly conn: FollowedLink
  on(event: 'disconnect', listener: (this: never, reason: string) => void): unknown
  off(event: 'disconnect', listener: (this: never, reason: string) => void): unknown
}

/**
 * A namespace; its adapter emits who joins and leaves a room. The type of its sockets is inferred from `sockets`, because
 * TypeScript infers `any` from the overloads of `on`.
 */
export interface FollowedNamespace<S> {
  readonly name: string
  readonly sockets: ReadonlyMap<string, S>
  readonly adapter: {
    on(event: 'join-room' | 'leave-room', listener: (room: string, id: string) => void): unknown
    off(event: 'join-room' | 'leave-room', listener: (room: string, id: string) => void): unknown
  }
  on(event: 'connection', listener: (socket: NoInfer<S>) => void): unknown
  off(event: 'connection', listener: (socket: NoInfer<S>) => void): unknown
}

/** A server; `sockets` is its root namespace. */
export interface FollowedSocketIoServer<S> {
  readonly sockets: FollowedNamespace<S>
  of(name: string): FollowedNamespace<NoInfer<S>>
  on(event: 'new_namespace', listener: (namespace: FollowedNamespace<NoInfer<S>>) => void): unknown
  off(event: 'new_namespace', listener: (namespace: FollowedNamespace<NoInfer<S>>) => void): unknown
}
