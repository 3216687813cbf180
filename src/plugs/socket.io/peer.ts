/** What is used of Socket.IO: a server of version 4.1 and later has it, whatever its types of events. */

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
