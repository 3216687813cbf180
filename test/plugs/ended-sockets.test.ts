/** Sockets that a host ends without an event, and a server that removes its namespaces: nothing of either is leaked. */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server, type ServerOptions, type Socket } from 'socket.io'
import { Manager } from 'socket.io-client'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { Connection } from '../../src/index.js'
import { type FollowSocketIoOptions, followSocketIo, type Identity } from '../../src/plugs/socket.io/index.js'
import { followWebSockets } from '../../src/plugs/ws/index.js'
import { collectGarbage } from '../garbage.js'
import { soon } from '../redis/wait-for.js'
import { createMemoryWorld, type World } from './world.js'

const identityOf = (client_id: string): Identity => ({
  user_id: 'ada',
  client_id,
  instance_id: 'one',
  client_type: 'web',
})

describe('a socket that its host has ended', () => {
  let world: World
  beforeEach(() => {
    world = createMemoryWorld()
  })
  afterEach(() => world.close())

  const shown = async (status = 'connected') =>
    (await world.list<Connection>(`/connections?status=${status}`)).map(({ client_id, ended_reason }) => [
      client_id,
      ended_reason,
    ])

  /** A server, its plug, and a way to open a link of two namespaces. */
  async function start(setUp: (io: Server) => void, given: Partial<FollowSocketIoOptions<Socket>> = {}) {
    const http = createServer()
    const io = new Server(http, { pingInterval: 50, pingTimeout: 10_000 })
    io.of('/other')
    setUp(io)
    const errors: unknown[] = []
    const follower = followSocketIo(io, {
      connections: world.facilities.connections,
      identify: ({ nsp, handshake: { auth } }) => (nsp.name === '/' ? identityOf(auth.client) : null),
      heartbeatMs: 100,
      maxFollowed: 1,
      namespaces: ['/other'],
      onError: (error) => void errors.push(error),
      ...given,
    })
    http.listen(0, '127.0.0.1')
    await once(http, 'listening')
    onTestFinished(async () => {
      await follower.close()
      await io.close()
    })
    const join = (client: string, path = '/') => {
      const { port } = http.address() as AddressInfo
      const manager = new Manager(`http://127.0.0.1:${port}`, { transports: ['websocket'], reconnection: false })
      onTestFinished(() => void manager._close())
      return { manager, socket: manager.socket(path, { auth: { client } }) }
    }
    return { io, join, errors }
  }

  it('is not shown where a listener of the host’s came first, though its link lives on', async () => {
    const ended: string[] = []
    const { io, join, errors } = await start((server) =>
      server.on('connection', (socket) => {
        if (socket.handshake.auth.client !== 'banned') return
        socket.disconnect()
        ended.push(socket.id)
      }),
    )
    const { manager } = join('banned')
    const other = manager.socket('/other')
    await soon(() => expect([ended.length, other.connected]).toEqual([1, true]))
    join('good')
    await soon(async () => expect(await shown()).toEqual([['good', null]]))
    expect(io.sockets.sockets.size).toBe(1)
    expect(errors).toEqual([])
    expect(await shown('disconnected')).toEqual([])
  })

  it('is ended where its listeners were taken off before, and its place is free', async () => {
    const { join, errors } = await start(() => {}, {
      maxFollowed: 2,
      onConnected: (socket) => {
        if (socket.handshake.auth.client === 'good') return
        socket.removeAllListeners()
        socket.disconnect()
      },
    })
    // One whose link lives on, and is asked for signs of life; and one that has gone with its link.
    for (const client of ['first', 'second']) {
      const { manager } = join(client)
      if (client === 'first') manager.socket('/other')
      await soon(async () => expect(await shown('disconnected')).toContainEqual([client, 'unknown']))
    }
    join('good')
    await soon(async () => expect(await shown()).toEqual([['good', null]]))
    expect(errors).toEqual([])
  })

  it('is ended where its listeners were taken off before, of ws', async () => {
    const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
    await once(server, 'listening')
    const errors: unknown[] = []
    const follower = followWebSockets(server, {
      connections: world.facilities.connections,
      identify: (_socket, request) => identityOf(request?.url?.slice(1) ?? ''),
      heartbeatMs: 50,
      maxFollowed: 1,
      onConnected: (socket, { client_id }) => {
        if (client_id === 'good') return
        socket.removeAllListeners()
        socket.terminate()
      },
      onError: (error) => void errors.push(error),
    })
    onTestFinished(async () => {
      await follower.close()
      for (const socket of server.clients) socket.terminate()
      server.close()
    })
    const join = (client: string) => {
      const { port } = server.address() as AddressInfo
      new WebSocket(`ws://127.0.0.1:${port}/${client}`).on('error', () => {})
    }
    join('first')
    await soon(async () => expect(await shown('disconnected')).toEqual([['first', 'unknown']]))
    join('good')
    await soon(async () => expect(await shown()).toEqual([['good', null]]))
    expect(errors).toEqual([])
  })
})

it('keeps no namespace that its server has forgotten', async () => {
  const world = createMemoryWorld()
  const http = createServer()
  const options: Partial<ServerOptions> = { cleanupEmptyChildNamespaces: true }
  const io = new Server(http, options)
  io.of(/^\/document-\d+$/)
  const made: WeakRef<object>[] = []
  io.on('new_namespace', (namespace) => made.push(new WeakRef(namespace)))
  const follower = followSocketIo(io, {
    connections: world.facilities.connections,
    identify: () => null,
    onError: null,
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const { port } = http.address() as AddressInfo
  const manager = new Manager(`http://127.0.0.1:${port}`, { transports: ['websocket'], reconnection: false })
  const stays = manager.socket('/document-0')
  await once(stays as never, 'connect')
  for (let i = 1; i <= 20; i++) {
    const socket = manager.socket(`/document-${i}`)
    await once(socket as never, 'connect')
    socket.disconnect()
  }
  const alive = () => made.filter((one) => one.deref() !== undefined).length
  await soon(async () => {
    await collectGarbage()
    // The lasting namespace, and the last one, which may still be referenced.
    expect([made.length, alive() <= 2]).toEqual([21, true])
  })
  // Who is still there is let go of by name.
  const lasting = made[0]?.deref() as { listenerCount(name: string): number }
  expect(lasting.listenerCount('connection')).toBe(1)
  await follower.close()
  expect(lasting.listenerCount('connection')).toBe(0)
  manager._close()
  await io.close()
  await world.close()
})
