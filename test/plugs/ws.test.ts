/** `followWebSockets` against real servers and clients of `ws`: what is shown is what the server says of its clients. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Connection } from '../../src/index.js'
import {
  type Follower,
  type FollowWebSocketsOptions,
  followWebSockets,
  type Identity,
} from '../../src/plugs/ws/index.js'
import { soon } from '../redis/wait-for.js'
import { agree, createMemoryWorld, describeWorlds, keepContract, nameOf, type World } from './world.js'

type Options = Partial<FollowWebSocketsOptions<WebSocket, { url?: string }>>

/** Whose a socket is, as its URL has it: `/user/client/instance`. */
function identityOf(url: string | undefined): Identity {
  const [, user_id = '', client_id = '', instance_id = ''] = (url ?? '').split('/')
  return { user_id, client_id, instance_id, client_type: 'web' }
}

/** A server that knows the URLs of its sockets, and clients of it. */
async function createPeer() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const urls = new WeakMap<WebSocket, string>()
  server.on('connection', (socket, request) => urls.set(socket, request.url ?? ''))
  const { port } = server.address() as AddressInfo
  const clients: WebSocket[] = []
  return {
    server,
    urlOf: (socket: WebSocket) => urls.get(socket) ?? '',
    async join(path: string): Promise<WebSocket> {
      const client = new WebSocket(`ws://127.0.0.1:${port}${path}`)
      clients.push(client)
      client.on('error', () => {})
      await once(client, 'open')
      return client
    },
    /** What the server says: whose its clients are. */
    said: () => [...server.clients].map((socket) => nameOf(identityOf(urls.get(socket)))),
    /** The server's end of a client. */
    socketOf: (path: string) => [...server.clients].find((socket) => urls.get(socket) === path) as WebSocket,
    async close() {
      for (const client of clients) client.terminate()
      for (const socket of server.clients) socket.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
type Peer = Awaited<ReturnType<typeof createPeer>>

const follow = ({ server }: Pick<Peer, 'server'>, { facilities }: World, options: Options = {}): Follower =>
  followWebSockets(server, {
    connections: facilities.connections,
    identify: (_socket, request) => identityOf(request?.url),
    onError: null,
    ...options,
  })

const pathOf = (i: number, instance = 'one') => `/user-${i % 20}/client-${i}/${instance}`

describeWorlds('WebSockets', (open) => {
  let world: World
  let peer: Peer
  let follower: Follower
  beforeEach(async () => {
    world = await open()
    peer = await createPeer()
  })
  afterEach(async () => {
    await follower?.close()
    await peer.close()
    await world.close()
  })

  const connectionOf = async (path: string, status = 'connected') => {
    const { user_id, client_id } = identityOf(path)
    const query = `user_id=${user_id}&client_id=${client_id}&status=${status}`
    return (await world.list<Connection>(`/connections?${query}`)).at(-1) as Connection
  }
  const ended = (path: string) =>
    soon(async () => {
      const connection = await connectionOf(path, 'disconnected')
      expect(connection?.ended_reason).not.toBeNull()
      return connection?.ended_reason
    })

  it('shows two hundred clients that come, go, crash, reconnect and are kicked as the server has them', async () => {
    follower = follow(peer, world)
    const joined = await Promise.all(Array.from({ length: 200 }, (_, i) => peer.join(pathOf(i))))
    await agree(world, peer.said)
    expect(await world.list('/connections?status=connected')).toHaveLength(200)

    for (const client of joined.slice(0, 40)) client.close(1000)
    for (const client of joined.slice(40, 80)) client.terminate()
    await soon(() => expect(peer.server.clients.size).toBe(120))
    await agree(world, peer.said)
    expect(await ended(pathOf(0))).toBe('normal_closure')
    expect(await ended(pathOf(40))).toBe('abnormal_closure')

    // As the program that they were, as a new one while the old one's socket has not closed yet, and for the first time.
    await Promise.all([
      ...Array.from({ length: 40 }, (_, i) => peer.join(pathOf(i))),
      ...Array.from({ length: 40 }, (_, i) => peer.join(pathOf(40 + i, 'two'))),
    ])
    await agree(world, peer.said)
    expect((await connectionOf(pathOf(40))).instance_id).toBe('two')

    for (let i = 80; i < 120; i++) peer.socketOf(pathOf(i)).close(4001, 'kicked')
    for (let i = 120; i < 160; i++) peer.socketOf(pathOf(i)).terminate()
    await soon(() => expect(peer.server.clients.size).toBe(120))
    await agree(world, peer.said)
    expect([await ended(pathOf(80)), await ended(pathOf(120))]).toEqual(['close_4001', 'abnormal_closure'])
    const { by_status } = await world.ask<{ by_status: object }>('/connections/count')
    expect(by_status).toMatchObject({ connected: 120 })
  })

  it('ends the instance before with the new one, and has it again when that goes', async () => {
    const told: string[] = []
    const connected: string[] = []
    follower = follow(peer, world, {
      onConnected: (_socket, { instance_id, status }) => void connected.push(`${instance_id} ${status}`),
      onSuperseded: (socket) => void told.push(peer.urlOf(socket)),
    })
    await peer.join(pathOf(0))
    await agree(world, peer.said)
    const { connection_id } = await connectionOf(pathOf(0))
    const newer = await peer.join(pathOf(0, 'two'))
    await agree(world, () => [nameOf(identityOf(pathOf(0, 'two')))])
    const { items } = await world.ask<{ items: object[] }>(`/connections/${connection_id}/history`)
    expect(items.at(-1)).toMatchObject({ event: 'superseded', reason: 'new_instance' })
    await soon(() => expect(told).toEqual([pathOf(0)]))
    newer.close()
    await agree(world, peer.said)
    expect(await connectionOf(pathOf(0))).toMatchObject({ instance_id: 'one', superseded_count: 1 })
    expect(connected).toEqual(['one connected', 'two connected', 'one connected'])
    await keepContract(world)
  })

  it('asks who is silent for a sign of life, and writes it', async () => {
    follower = follow(peer, world, { heartbeatMs: 20 })
    await peer.join(pathOf(0))
    await agree(world, peer.said)
    const { connection_id, last_seen_at } = await connectionOf(pathOf(0))
    await soon(async () => {
      const now = await world.ask<Connection>(`/connections/${connection_id}`)
      expect(now.last_seen_at > last_seen_at).toBe(true)
    })
  })
})

describe('a follower of WebSockets', () => {
  let world: World
  let peer: Peer
  beforeEach(async () => {
    world = createMemoryWorld()
    peer = await createPeer()
  })
  afterEach(async () => {
    await peer.close()
    await world.close()
  })

  it('has those who were there before, where the host knows them', async () => {
    await peer.join(pathOf(0))
    await soon(() => expect(peer.server.clients.size).toBe(1))
    follow(peer, world, { identify: (socket, request) => identityOf(request?.url ?? peer.urlOf(socket)) })
    await peer.join(pathOf(1))
    await agree(world, peer.said)
  })

  it('ignores sockets without an identity, and reports an identify() that fails', async () => {
    const errors: [string, string][] = []
    const answers: Record<string, () => Identity | null | Promise<Identity | null>> = {
      '/missing': () => null,
      '/throws': () => {
        throw new Error('no such cookie')
      },
      '/rejects': () => Promise.reject(new Error('no such session')),
      '/nonsense': () => 'ada' as never,
      '/nameless': () => ({ user_id: 'ada', client_id: 'desk' }) as never,
      '/blank': () => ({ ...identityOf(pathOf(0)), user_id: ' ' }),
      '/large': () => ({ ...identityOf(pathOf(0)), metadata: { large: 'x'.repeat(70_000) } }),
    }
    follow(peer, world, {
      identify: (_socket, request) => (answers[request?.url ?? ''] ?? (() => identityOf(request?.url)))(),
      onError: (error, { step }) => void errors.push([step, (error as Error).message]),
    })
    const paths = Object.keys(answers)
    const joined = await Promise.all(paths.map((path) => peer.join(path)))
    await peer.join(pathOf(1))
    await agree(world, () => [nameOf(identityOf(pathOf(1)))])
    await soon(() => expect(errors).toHaveLength(6))
    expect(errors.sort()).toEqual([
      ['identify', 'identify must return null or an object with instance_id as a string'],
      ['identify', 'identify must return null or an object with user_id, client_id, instance_id'],
      ['identify', 'no such cookie'],
      ['identify', 'no such session'],
      ['write', expect.stringMatching(/^invalid_input: user_id: /)],
      ['write', expect.stringMatching(/^payload_too_large/)],
    ])
    expect(joined.map(({ readyState }) => readyState)).toEqual(paths.map(() => WebSocket.OPEN))
    // No listener is left on sockets that are not followed.
    for (const path of paths) expect(peer.socketOf(path).listenerCount('pong')).toBe(0)
  })

  it('writes nothing for a socket that closed before it was identified', async () => {
    let answer: (identity: Identity) => void = () => {}
    follow(peer, world, {
      identify: (_socket, request) =>
        request?.url === pathOf(0) ? new Promise<Identity>((resolve) => (answer = resolve)) : identityOf(request?.url),
    })
    const gone = await peer.join(pathOf(0))
    await peer.join(pathOf(1))
    gone.close()
    await soon(() => expect(peer.server.clients.size).toBe(1))
    answer(identityOf(pathOf(0)))
    await agree(world, peer.said)
    expect(await world.list('/connections')).toHaveLength(1)
  })

  it('gives a client to the later of its two sockets, whichever was identified first', async () => {
    let answer: (identity: Identity) => void = () => {}
    const told: string[] = []
    follow(peer, world, {
      identify: (_socket, request) =>
        request?.url === pathOf(0) ? new Promise<Identity>((resolve) => (answer = resolve)) : identityOf(request?.url),
      onSuperseded: (socket) => void told.push(peer.urlOf(socket)),
    })
    await peer.join(pathOf(0))
    await peer.join(pathOf(0, 'two'))
    await agree(world, () => [nameOf(identityOf(pathOf(0, 'two')))])
    answer(identityOf(pathOf(0)))
    await soon(() => expect(told).toEqual([pathOf(0)]))
    await agree(world, () => [nameOf(identityOf(pathOf(0, 'two')))])
    expect(await world.list('/connections')).toHaveLength(1)
  })

  it('reports a hook that fails, and continues', async () => {
    const errors: unknown[] = []
    follow(peer, world, {
      onConnected: () => {
        throw new Error('no such mailbox')
      },
      onError: (error, place) => void errors.push([error, place]),
    })
    await peer.join(pathOf(0))
    await agree(world, peer.said)
    await soon(() => expect(errors).toEqual([[new Error('no such mailbox'), { step: 'hook' }]]))
  })

  it('writes no sign of life twice in half its time', async () => {
    let beats = 0
    const { connections } = world.facilities
    follow(peer, world, {
      connections: {
        ...connections,
        heartbeat: (id) => {
          beats++
          return connections.heartbeat(id)
        },
      },
    })
    await peer.join(pathOf(0))
    await agree(world, peer.said)
    const socket = peer.socketOf(pathOf(0))
    for (let i = 0; i < 20; i++) {
      socket.ping()
      await once(socket, 'pong')
    }
    expect(beats).toBe(0)
  })

  it('takes every listener away when it is closed', async () => {
    const counts = () => [
      peer.server.listenerCount('connection'),
      ...[...peer.server.clients].flatMap((socket) => socket.eventNames().map((name) => socket.listenerCount(name))),
    ]
    await peer.join(pathOf(0))
    await soon(() => expect(peer.server.clients.size).toBe(1))
    const before = counts()
    const follower = follow(peer, world, { identify: (socket) => identityOf(peer.urlOf(socket)) })
    await agree(world, peer.said)
    expect(counts()).not.toEqual(before)
    expect(await follower.close()).toEqual({ aborted: 0 })
    expect(counts()).toEqual(before)
  })

  it('says by name which option it cannot use', () => {
    const good = { connections: world.facilities.connections, identify: () => null }
    const wrong = (options: object) => () => followWebSockets(peer.server, { ...good, ...options })
    expect(wrong({ connections: {} })).toThrow(
      'Invalid option "connections": expected an object with connect(), heartbeat()',
    )
    expect(wrong({ identify: undefined })).toThrow('Missing required option "identify" (function)')
    expect(wrong({ heartbeatMs: 0 })).toThrow(RangeError)
    expect(wrong({ unheardOf: 1 })).toThrow('Unknown option "unheardOf". Valid options: ')
  })

  it('follows so many and no more, and says so', async () => {
    const errors: unknown[] = []
    follow(peer, world, { maxFollowed: 2, onError: (error) => void errors.push(error) })
    for (let i = 0; i < 3; i++) await peer.join(pathOf(i))
    await agree(world, () => [0, 1].map((i) => nameOf(identityOf(pathOf(i)))))
    expect(errors).toMatchObject([{ code: 'capacity_exceeded' }])
  })
})
