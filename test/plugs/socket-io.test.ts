/** `followSocketIo` against real servers and clients of Socket.IO: what is shown is what `io.fetchSockets()` says. */
import { createServer } from 'node:http'
import { createAdapter } from '@socket.io/redis-adapter'
import { Redis } from 'ioredis'
import { Server, type Socket as ServerSocket } from 'socket.io'
import { io as connect, type ManagerOptions, type Socket, type SocketOptions } from 'socket.io-client'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Connection } from '../../src/index.js'
import {
  type Follower,
  type FollowSocketIoOptions,
  followSocketIo,
  type Identity,
} from '../../src/plugs/socket.io/index.js'
import { describeRedis, type Server as Store, startServer } from '../redis/server.js'
import { soon } from '../redis/wait-for.js'
import {
  agree,
  createMemoryWorld,
  createRedisWorld,
  describeWorlds,
  keepContract,
  nameOf,
  type World,
} from './world.js'

/** Types of events, as a host that has some declares them. */
interface ServerEvents {
  said: (text: string) => void
}
interface ClientEvents {
  say: (text: string) => void
}
type Io = Server<ClientEvents, ServerEvents, Record<string, never>, { identity?: Identity }>
type Peer = Awaited<ReturnType<typeof createPeer>>

const identityOf = (i: number, instance_id = 'one'): Identity => ({
  user_id: `user-${i % 20}`,
  client_id: `client-${i}`,
  instance_id,
  client_type: 'mobile',
})

/** One server, whose sockets know whose they are, and clients of it. */
async function createPeer(setUp: (io: Io) => void = () => {}) {
  const http = createServer()
  const io: Io = new Server(http, { pingInterval: 200, pingTimeout: 10_000 })
  setUp(io)
  const know = (socket: ServerSocket<ClientEvents, ServerEvents, Record<string, never>, { identity?: Identity }>) => {
    socket.data.identity = socket.handshake.auth.identity
  }
  io.on('connection', know)
  io.on('new_namespace', (namespace) => namespace.on('connection', know))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as { port: number }
  const clients: Socket[] = []
  return {
    io,
    async join(identity: Identity, path = '', options: Partial<ManagerOptions & SocketOptions> = {}): Promise<Socket> {
      const client = connect(`http://127.0.0.1:${port}${path}`, {
        transports: ['websocket'],
        // More than a busy machine needs.
        timeout: 300_000,
        reconnection: false,
        forceNew: true,
        auth: { identity },
        ...options,
      })
      clients.push(client)
      await new Promise<void>((resolve, reject) => {
        client.once('connect', resolve)
        client.once('connect_error', reject)
      })
      return client
    },
    said: async (namespace = '/') =>
      (await io.of(namespace).fetchSockets()).map(({ data }) => nameOf(data.identity as Identity)),
    socketOf: (client_id: string) =>
      [...io.sockets.sockets.values()].find(({ data }) => data.identity?.client_id === client_id),
    async close() {
      for (const client of clients) client.disconnect()
      await io.close()
    },
  }
}

const follow = (
  { io }: Pick<Peer, 'io'>,
  connections: World['facilities']['connections'],
  options: Partial<FollowSocketIoOptions<ServerSocket>> = {},
): Follower =>
  followSocketIo(io as Server, {
    connections,
    identify: ({ data }) => data.identity ?? null,
    onError: null,
    ...options,
  })

const connectionOf = async (world: World, i: number, status = 'connected') =>
  (await world.list<Connection>(`/connections?client_id=client-${i}&status=${status}`)).at(-1) as Connection

describeWorlds('Socket.IO', (open) => {
  let world: World
  let peer: Peer
  let follower: Follower
  beforeEach(async () => {
    world = await open()
    peer = await createPeer()
    follower = follow(peer, world.facilities.connections)
  })
  afterEach(async () => {
    await follower.close()
    await peer.close()
    await world.close()
  })

  const ended = (i: number) =>
    soon(async () => {
      const connection = await connectionOf(world, i, 'disconnected')
      expect(connection?.ended_reason).not.toBeNull()
      return connection?.ended_reason
    })

  it('shows two hundred clients that come, go, crash, reconnect and are kicked as the server has them', async () => {
    const joined = await Promise.all(Array.from({ length: 200 }, (_, i) => peer.join(identityOf(i))))
    await agree(world, peer.said)
    expect(await world.list('/connections?status=connected')).toHaveLength(200)

    for (const client of joined.slice(0, 40)) client.disconnect()
    for (const client of joined.slice(40, 80)) client.io.engine.close()
    await soon(() => expect(peer.io.sockets.sockets.size).toBe(120))
    await agree(world, peer.said)
    expect(await ended(0)).toBe('client_namespace_disconnect')
    // A link that is cut is either, by what the system says first.
    expect(await ended(40)).toMatch(/^transport_(close|error)$/)

    await Promise.all([
      ...Array.from({ length: 40 }, (_, i) => peer.join(identityOf(i))),
      ...Array.from({ length: 40 }, (_, i) => peer.join(identityOf(40 + i, 'two'))),
    ])
    await agree(world, peer.said)
    expect((await connectionOf(world, 40)).instance_id).toBe('two')

    for (let i = 80; i < 120; i++) peer.socketOf(`client-${i}`)?.disconnect(true)
    await soon(() => expect(peer.io.sockets.sockets.size).toBe(160))
    await agree(world, peer.said)
    expect(await ended(80)).toBe('server_namespace_disconnect')
    const { by_status } = await world.ask<{ by_status: object }>('/connections/count')
    expect(by_status).toMatchObject({ connected: 160 })
  })
})

describe('a follower of Socket.IO', () => {
  let world: World
  let peer: Peer
  let follower: Follower | undefined
  beforeEach(async () => {
    world = createMemoryWorld()
    peer = await createPeer()
  })
  afterEach(async () => {
    await follower?.close()
    await peer.close()
    await world.close()
  })

  it('reports the current rooms, transport and namespace', async () => {
    follower = follow(peer, world.facilities.connections)
    await peer.join(identityOf(0), '', { transports: ['polling', 'websocket'] })
    const shown = (metadata: object) =>
      soon(async () => expect((await connectionOf(world, 0))?.metadata).toEqual(metadata))
    await shown({ transport: 'websocket', namespace: '/', rooms: [] })
    const socket = peer.socketOf('client-0')
    const { connection_id } = await connectionOf(world, 0)
    socket?.join(['hall', 'yard', 'x'.repeat(65)])
    await shown({ transport: 'websocket', namespace: '/', rooms: ['hall', 'yard'], rooms_omitted: 1 })
    socket?.leave('hall')
    await shown({ transport: 'websocket', namespace: '/', rooms: ['yard'], rooms_omitted: 1 })
    expect((await connectionOf(world, 0)).connection_id).toBe(connection_id)
  })

  it('follows every namespace, those made before by name, and those that a pattern makes', async () => {
    peer.io.of('/before')
    follower = follow(peer, world.facilities.connections, { namespaces: ['/before'] })
    peer.io.of('/after')
    peer.io.of(/^\/room-\d+$/)
    const paths = ['/', '/before', '/after', '/room-7']
    for (const [i, path] of paths.entries()) await peer.join(identityOf(i), path)
    await agree(world, async () => (await Promise.all(paths.map(peer.said))).flat())
    const shown = await world.list<Connection>('/connections')
    expect(shown.map(({ metadata }) => metadata.namespace).sort()).toEqual(paths.sort())
    await keepContract(world)
  })

  it('has those who were there before', async () => {
    await peer.join(identityOf(0))
    const { connections } = world.facilities
    // As a host has it: the types of its events and of its data are those of the socket that is identified.
    follower = followSocketIo(peer.io, { connections, identify: ({ data }) => data.identity ?? null, onError: null })
    await peer.join(identityOf(1))
    await agree(world, peer.said)
  })

  it('writes what its clients offer, and a sign of life at the pongs that Socket.IO asks for', async () => {
    follower = follow(peer, world.facilities.connections, { actionsOf: async () => ['sync'], heartbeatMs: 300 })
    await peer.join(identityOf(0))
    await agree(world, peer.said)
    const { actions, last_seen_at } = await connectionOf(world, 0)
    expect(actions).toEqual(['sync'])
    await soon(async () => expect((await connectionOf(world, 0)).last_seen_at > last_seen_at).toBe(true))
  })

  it('ignores sockets without an identity, and reports an identify() that fails', async () => {
    const errors: unknown[] = []
    follower = follow(peer, world.facilities.connections, {
      identify: ({ data }) => {
        if (data.identity.client_id === 'client-0') throw new Error('no such cookie')
        return data.identity.client_id === 'client-1' ? null : data.identity
      },
      onError: (error) => void errors.push(error),
    })
    const joined = await Promise.all([0, 1, 2].map((i) => peer.join(identityOf(i))))
    await agree(world, () => [nameOf(identityOf(2))])
    expect(errors).toEqual([new Error('no such cookie')])
    expect(joined.every(({ connected }) => connected)).toBe(true)
  })

  it('removes every listener when it is closed, and replaces nothing of the server’s', async () => {
    await peer.join(identityOf(0))
    const [socket] = [...peer.io.sockets.sockets.values()]
    const emitters = [peer.io.sockets, peer.io.sockets.adapter, socket, socket?.conn] as {
      eventNames(): string[]
      listenerCount(name: string): number
    }[]
    const counts = () => emitters.map((each) => each.eventNames().map((name) => [name, each.listenerCount(name)]))
    const own = () => emitters.map((each) => Object.keys(each))
    const [before, methods] = [counts(), own()]
    follower = follow(peer, world.facilities.connections)
    await agree(world, peer.said)
    expect(own()).toEqual(methods)
    await follower.close()
    expect(counts()).toEqual(before)
  })
})

describeRedis('two servers of Socket.IO with the Redis adapter', () => {
  let store: Store
  let world: World
  const closes: (() => Promise<unknown>)[] = []
  beforeEach(async () => {
    store = await startServer()
    world = await createRedisWorld(store.port)
  })
  afterEach(async () => {
    for (const close of closes.splice(0)) await close()
    await world.close()
    await store.stop()
  })

  async function node(connections: World['facilities']['connections']): Promise<Peer> {
    const links = [new Redis(store.port, '127.0.0.1'), new Redis(store.port, '127.0.0.1')]
    for (const link of links) link.on('error', () => {})
    const peer = await createPeer((io) => io.adapter(createAdapter(...(links as [Redis, Redis]))))
    const follower = follow(peer, connections)
    closes.push(follower.close, peer.close, async () => {
      for (const link of links) link.disconnect()
    })
    return peer
  }

  it('are one deployment over one shared store', async () => {
    const one = await node(world.facilities.connections)
    const two = await node((await world.another()).connections)
    const joined = await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 2 ? one : two).join(identityOf(i))))
    await agree(world, one.said)
    expect((await one.said()).length).toBe(60)
    const nodes = (await world.list<Connection>('/connections')).map(({ node_id }) => node_id)
    expect(new Set(nodes).size).toBe(2)

    // A client that reconnects to the other server, which disconnects it from the first; and one that any server
    // disconnects.
    for (let i = 0; i < 10; i++) {
      joined[i]?.disconnect()
      await (i % 2 ? two : one).join(identityOf(i, 'two'))
    }
    two.io.in((await two.io.fetchSockets()).slice(0, 20).map(({ id }) => id)).disconnectSockets(true)
    await soon(async () => expect((await one.said()).length).toBe(40))
    await agree(world, two.said)
  })
})
