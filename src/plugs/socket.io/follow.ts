/** Follows the sockets of a Socket.IO server in all namespaces and writes them to the connection registry. */
import { guardErrorHook, guardHook } from '../../async/hook.js'
import {
  checkOptions,
  checkParts,
  FUNCTION,
  LIST,
  required,
  resolveBounds,
  type Shape,
  withMethods,
} from '../../contract/checks.js'
import type { ConnectInput, Connection } from '../../contract/connections.js'
import { createConnectionFollower, type FollowedConnections, UNKNOWN } from '../follow/connections.js'
import { FOLLOW_BOUNDS, FOLLOW_OPTIONS, type Follower, type FollowOptions, type Identity } from '../follow/writer.js'

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
export interface FollowSocketIoOptions<S> extends FollowOptions {
  /** The connection registry, of either composition. */
  connections: FollowedConnections
  /**
   * Returns the owner of a socket: use what you have authenticated, never what the client claims. `null` is not
   * followed.
   */
  identify: (socket: S) => Identity | null | PromiseLike<Identity | null>
  /** The actions that a socket's client offers. @default those of `identify`, if any */
  actionsOf?: ((socket: S) => Actions | PromiseLike<Actions>) | undefined
  /** Namespaces that were made before, by name; the root and those made later are followed by themselves. @default none */
  namespaces?: readonly string[] | undefined
  /**
   * Called with a socket and its connection once that is written, and again if the store had lost it or a newer
   * instance has disconnected: from then on this instance is the current one.
   */
  onConnected?: ((socket: S, connection: Connection) => void) | undefined
  /** Called with a socket that is still connected when a newer instance of its client has taken over; a host may disconnect it. */
  onSuperseded?: ((socket: S) => void) | undefined
}

type Actions = NonNullable<ConnectInput['actions']>

const OPTIONS: Shape<FollowSocketIoOptions<unknown>> = {
  ...FOLLOW_OPTIONS,
  connections: required(withMethods('connect', 'heartbeat', 'disconnect', 'currentInstance')),
  identify: required(FUNCTION),
  actionsOf: FUNCTION,
  namespaces: LIST,
  onConnected: FUNCTION,
  onSuperseded: FUNCTION,
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
 * one shared store are one deployment, with or without an adapter. It only listens.
 *
 * @throws TypeError, RangeError for an invalid server or option.
 *
 * @example
 * followSocketIo(io, { connections: facilities.connections, identify: (socket) => socket.data.client })
 */
export function followSocketIo<S extends FollowedSocket>(
  io: FollowedSocketIoServer<S>,
  options: FollowSocketIoOptions<S>,
): Follower {
  checkParts({ io }, SERVER)
  checkOptions(options, OPTIONS)
  const { connections, identify, actionsOf, namespaces = [], onConnected, onSuperseded, onError } = options
  const report = guardErrorHook(onError)
  const failed = (error: unknown) => report(error, { step: 'hook' })
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
  function onUpgrade(this: object): void {
    for (const socket of links.get(this) ?? []) follower.changed(socket)
  }
  const follower = createConnectionFollower<S>({
    ...resolveBounds(options, FOLLOW_BOUNDS),
    connections,
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
    },
    report,
    connected: guardHook(onConnected, failed),
    superseded: guardHook(onSuperseded, failed),
    now: () => performance.now(),
  })

  async function identityOf(socket: S): Promise<Identity | null> {
    const identity = await identify(socket)
    if (!identity || !actionsOf) return identity
    return { ...identity, actions: await actionsOf(socket) }
  }

  function onConnection(socket: S): void {
    // An earlier listener of the host may have disconnected it, and no further event follows.
    if (!socket.connected) return
    const { conn } = socket
    const known = links.get(conn)
    links.set(conn, [...(known ?? []), socket])
    socket.on('disconnect', onDisconnect)
    if (!known) conn.on('heartbeat', onHeartbeat)
    if (!known) conn.on('upgrade', onUpgrade)
    follower.follow(socket, () => identityOf(socket))
  }

  function onNamespace(namespace: FollowedNamespace<S>): void {
    const { adapter } = namespace
    const onRoom = (_room: string, id: string): void => {
      const socket = namespace.sockets.get(id)
      if (socket) follower.changed(socket)
    }
    for (const event of ['join-room', 'leave-room'] as const) adapter.on(event, onRoom)
    for (const socket of namespace.sockets.values()) onConnection(socket)
    namespace.on('connection', onConnection)
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
  off(event: 'heartbeat' | 'upgrade', listener: (this: never) => void): unknown
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
