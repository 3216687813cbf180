/** The acknowledgements that `followSocketIo` sees between real servers and clients of Socket.IO. */
import { createServer } from 'node:http'
import { Server, type Socket as ServerSocket } from 'socket.io'
import { io as connect, type Socket } from 'socket.io-client'
import { Decoder, Encoder } from 'socket.io-parser'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { EndedCall, ObservedCalls, PendingCall } from '../../src/internal/contract/rpc.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { type Follower, type FollowSocketIoOptions, followSocketIo } from '../../src/plugs/socket.io/index.js'
import { soon } from '../redis/wait-for.js'
import { describeWorlds, type World } from './world.js'

async function createPeer(options: object = {}) {
  const http = createServer()
  const io = new Server(http, options)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as { port: number }
  const clients: Socket[] = []
  return {
    io,
    /** Both ends of a new connection, whose client answers `sync` and not `hang`. */
    async join(client_id: string, namespace = '', more: object = {}) {
      const met = new Promise<ServerSocket>((resolve) => io.of(namespace || '/').once('connection', resolve))
      const client = connect(`http://127.0.0.1:${port}${namespace}`, {
        transports: ['websocket'],
        // More than a busy machine needs.
        timeout: 300_000,
        forceNew: true,
        auth: { client_id },
        ...more,
      })
      clients.push(client)
      client.on('sync', (...args: unknown[]) => (args.at(-1) as (answer: string) => void)('ok'))
      client.on('hang', () => {})
      return { client, socket: await met }
    },
    async close() {
      for (const client of clients) client.disconnect()
      await io.close()
    },
  }
}

const identify = ({ handshake: { auth } }: ServerSocket) => ({
  user_id: 'ada',
  client_id: String((auth as { client_id: string }).client_id),
  instance_id: 'run-1',
  client_type: 'web' as const,
})

let peer: Awaited<ReturnType<typeof createPeer>>
let follower: Follower | undefined
afterEach(async () => {
  await follower?.close()
  await peer.close()
})

describeWorlds('acknowledgements over Socket.IO', (open) => {
  let world: World
  beforeEach(async () => {
    world = await open()
    peer = await createPeer()
    const { connections, rpc } = world.facilities
    follower = followSocketIo(peer.io, { connections, calls: rpc, identify })
  })
  afterEach(async () => {
    await follower?.close()
    await world.close()
  })

  const pending = async () =>
    (await world.list<PendingCall>('/rpc/pending?observed=true'))
      .map(({ client_id, action, direction }) => `${client_id} ${action} ${direction}`)
      .sort()
  const actions = async () =>
    Object.fromEntries(
      ((await world.ask<{ observed: ObservedCalls | null }>('/rpc/summary')).observed?.actions ?? []).map((one) => [
        `${one.action} ${one.direction}`,
        one.succeeded,
      ]),
    )

  it('shows events that wait for their acknowledgement, of both sides and all namespaces, and counts the others', async () => {
    const laptop = await peer.join('laptop')
    const admin = await peer.join('ops', '/admin')
    const phone = await peer.join('phone', '', { transports: ['polling', 'websocket'] })
    laptop.socket.on('save', (_data, done) => done())
    laptop.socket.emit('plain', 1)
    laptop.socket.emit('hang', Buffer.from('binary'), () => {})
    admin.socket.emit('hang', () => {})
    laptop.client.emit('stuck', () => {})
    await laptop.client.emitWithAck('save', Buffer.from('binary'))
    await laptop.socket.emitWithAck('sync', Buffer.from('binary'), { other: new Uint8Array(3) })
    await phone.socket.emitWithAck('sync')
    await admin.socket.emitWithAck('sync')
    await peer.io.timeout(60_000).emitWithAck('sync', 'broadcast')
    peer.io.timeout(500).emit('hang', () => {})
    await soon(async () =>
      expect(await pending()).toEqual([
        'laptop hang to_client',
        'laptop hang to_client',
        'laptop stuck to_server',
        'ops hang to_client',
        'phone hang to_client',
      ]),
    )
    await soon(async () => expect(await actions()).toEqual({ 'save to_server': 1, 'sync to_client': 5 }))
    phone.client.disconnect()
    await soon(async () => {
      const [call] = await world.list<EndedCall>('/rpc/ended?outcome=unanswered')
      expect(call).toMatchObject({ client_id: 'phone', connection_reason: 'client_namespace_disconnect' })
    })
  })
})

function followed(options: Partial<FollowSocketIoOptions<ServerSocket>> = {}) {
  const observe = vi.fn(async () => 0)
  const onError = vi.fn()
  const { connections } = createMemoryFacilities()
  follower = followSocketIo(peer.io, { connections, calls: { observe }, identify, onError, ...options })
  return { observe, onError, connections }
}

it('does not follow the packets of another parser, and reports that once', async () => {
  class Other extends Encoder {
    override encode(packet: Parameters<Encoder['encode']>[0]) {
      return super.encode(packet).map((part) => (typeof part === 'string' ? `x${part}` : part))
    }
  }
  class OtherDecoder extends Decoder {
    override add(data: unknown) {
      super.add(typeof data === 'string' ? data.slice(1) : data)
    }
  }
  const parser = { Encoder: Other, Decoder: OtherDecoder }
  peer = await createPeer({ parser })
  const { onError } = followed()
  const { socket } = await peer.join('laptop', '', { parser })
  expect(await socket.emitWithAck('sync')).toBe('ok')
  expect(onError).toHaveBeenCalledOnce()
  expect(socket.conn.listenerCount('packetCreate')).toBe(0)
})

it('counts messages as signs of life with aliveOnMessage', async () => {
  peer = await createPeer()
  const { connections } = createMemoryFacilities()
  const heartbeat = vi.spyOn(connections, 'heartbeat')
  followed({ connections, calls: undefined, aliveOnMessage: true, heartbeatMs: 20 })
  const { client } = await peer.join('laptop')
  await soon(() => {
    client.emit('anything')
    expect(heartbeat).toHaveBeenCalled()
  })
})

it('leaves no listener behind when it is closed', async () => {
  peer = await createPeer()
  const { socket: before } = await peer.join('phone')
  const counts = ({ conn }: ServerSocket) => ['packet', 'packetCreate'].map((event) => conn.listenerCount(event))
  const untouched = counts(before)
  followed()
  const { socket } = await peer.join('laptop')
  expect(counts(socket)).toEqual(untouched.map((count) => count + 1))
  await follower?.close()
  expect([counts(before), counts(socket)]).toEqual([untouched, untouched])
})
