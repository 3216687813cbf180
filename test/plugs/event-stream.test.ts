/** `followEventStreams` against responses of a real server and clients that come, go and stop reading. */
import { EventEmitter, once } from 'node:events'
import { type ClientRequest, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Connection } from '../../src/index.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import {
  type FollowEventStreamOptions,
  type Follower,
  followEventStream,
  followEventStreams,
  type Identity,
} from '../../src/plugs/index.js'
import { soon } from '../redis/wait-for.js'
import { agree, createMemoryWorld, describeWorlds, keepContract, nameOf, type World } from './world.js'

/** Whose a response is, as its URL has it: `/user/client/instance`. */
function identityOf(url = ''): Identity {
  const [, user_id = '', client_id = '', instance_id = ''] = url.split('/')
  return { user_id, client_id, instance_id, client_type: 'web' }
}

/** A server of event streams, and clients of it. */
async function createPeer() {
  const open = new Set<ServerResponse>()
  const server = createServer((request, response) => {
    open.add(response)
    response.on('close', () => open.delete(response))
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(': hello\n\n')
    server.emit('stream', response, request)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    server,
    async join(path: string) {
      const client = get({ port, path, agent: false })
      client.on('error', () => {})
      const arrived = Promise.all([once(server, 'stream'), once(client, 'response')])
      const [[response], [reply]] = (await arrived) as [[ServerResponse], [IncomingMessage]]
      return { client, reply, response }
    },
    said: () => [...open].map(({ req }) => nameOf(identityOf(req.url))),
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
type Peer = Awaited<ReturnType<typeof createPeer>>

describeWorlds('event streams', (open) => {
  let world: World
  let peer: Peer
  let follower: Follower | undefined
  beforeEach(async () => {
    world = await open()
    peer = await createPeer()
  })
  afterEach(async () => {
    await follower?.close()
    await peer.close()
    await world.close()
  })

  const optionsOf = (
    options: Partial<FollowEventStreamOptions<ServerResponse>> = {},
  ): FollowEventStreamOptions<ServerResponse> => ({
    connections: world.facilities.connections,
    identify: ({ req }) => identityOf(req.url),
    onError: null,
    ...options,
  })
  function follow(options?: Partial<FollowEventStreamOptions<ServerResponse>>) {
    const streams = followEventStreams(optionsOf(options))
    follower = streams
    peer.server.on('stream', (response: ServerResponse) => streams.add(response))
    return streams
  }
  const connectionOf = async (client: string, status = 'connected') =>
    (await world.list<Connection>(`/connections?client_id=${client}&status=${status}`)).at(-1) as Connection

  it('shows clients that come, go and are ended, each with its reason', async () => {
    follow()
    const clients: ClientRequest[] = []
    for (let i = 0; i < 30; i++) clients.push((await peer.join(`/user-${i % 3}/client-${i}/one`)).client)
    await agree(world, peer.said)
    const { response } = await peer.join('/ada/laptop/one')
    for (const client of clients.slice(0, 10)) client.destroy()
    response.end()
    await soon(() => expect(peer.said()).toHaveLength(20))
    await agree(world, peer.said)
    await soon(async () => {
      expect((await connectionOf('client-0', 'disconnected'))?.ended_reason).toBe('connection_closed')
      expect((await connectionOf('laptop', 'disconnected'))?.ended_reason).toBe('response_ended')
    })
    await keepContract(world)
  })

  it('shows the bytes that wait, and that none do any more', async () => {
    follow({ heartbeatMs: 100 })
    const { reply, response } = await peer.join('/ada/laptop/one')
    reply.pause()
    const waiting = async () => (await connectionOf('laptop'))?.metadata
    await soon(async () => expect(await waiting()).toEqual({ transport: 'event_stream', waiting_bytes: 0 }))
    response.write(`data: ${'x'.repeat(16_000_000)}\n\n`)
    await soon(async () => expect((await waiting())?.waiting_bytes).toBeGreaterThan(1_000_000))
    reply.resume()
    await soon(async () => expect(await waiting()).toEqual({ transport: 'event_stream', waiting_bytes: 0 }))
  })

  it('keeps a silent response alive, and finds one whose listeners the host removed', async () => {
    follow({ heartbeatMs: 40 })
    const { client, response } = await peer.join('/ada/laptop/one')
    const seen = await soon(async () => {
      const { last_seen_at } = await connectionOf('laptop')
      expect(last_seen_at).toBeTruthy()
      return last_seen_at
    })
    await soon(async () => expect((await connectionOf('laptop')).last_seen_at > seen).toBe(true))
    response.removeAllListeners('close')
    client.destroy()
    await soon(async () => expect((await connectionOf('laptop', 'disconnected'))?.ended_reason).toBe('unknown'))
  })

  it('follows a single response until it closes, and removes its listeners', async () => {
    const { client, response } = await peer.join('/ada/laptop/one')
    const before = response.listenerCount('close')
    const first = followEventStream(response, optionsOf())
    await soon(async () => expect((await connectionOf('laptop')).instance_id).toBe('one'))
    expect(await first.close()).toEqual({ aborted: 0 })
    expect(response.listenerCount('close')).toBe(before)

    follower = followEventStream(response, optionsOf())
    await soon(async () => expect(await connectionOf('laptop')).toBeDefined())
    client.destroy()
    await soon(async () => {
      const ended = await world.list<Connection>('/connections?client_id=laptop&status=disconnected')
      expect(ended.map(({ ended_reason }) => ended_reason).sort()).toEqual(['connection_closed', 'reconnected'])
    })
    await soon(() => expect(response.listenerCount('close')).toBe(before))
  })

  it('calls onSuperseded when a newer instance takes over', async () => {
    const onSuperseded = vi.fn()
    const onConnected = vi.fn()
    follow({ onSuperseded, onConnected })
    const { response } = await peer.join('/ada/laptop/one')
    await soon(() => expect(onConnected).toHaveBeenCalledTimes(1))
    await peer.join('/ada/laptop/two')
    await soon(() => expect(onSuperseded).toHaveBeenCalledWith(response))
    expect((await connectionOf('laptop')).instance_id).toBe('two')
  })
})

describe('event streams whose host or store fails', () => {
  const createResponse = () => Object.assign(new EventEmitter(), { writableLength: 0, writableFinished: false })
  const { connections } = createMemoryFacilities()

  it('never throws into the host, and releases responses that it does not follow', async () => {
    const errors: string[] = []
    const answers: (() => unknown)[] = [
      () => {
        throw new Error('no session')
      },
      () => ({ user_id: 'ada' }),
      () => null,
    ]
    const streams = followEventStreams({
      connections: {
        ...connections,
        connect: async () => {
          throw new Error('store is down')
        },
      },
      identify: () => (answers.shift()?.() ?? null) as Identity,
      maxFollowed: 1,
      onError: (error) => errors.push((error as Error).message),
    })
    for (let i = 0; i < 3; i++) {
      const response = createResponse()
      streams.add(response)
      await vi.waitFor(() => expect(response.listenerCount('close')).toBe(0), 60_000)
    }
    expect(errors).toEqual(['no session', expect.stringContaining('client_id')])
    await streams.close()
  })

  it('leaves ended responses and those after close() as they are', async () => {
    const identify = vi.fn(() => null)
    const streams = followEventStreams({ connections, identify })
    const ended = { ...createResponse(), writableFinished: true, on: vi.fn(), off: vi.fn() }
    streams.add(ended)
    await streams.close()
    const late = createResponse()
    streams.add(late)
    followEventStream(ended, { connections, identify })
    expect([identify, ended.on, ended.off].map(({ mock }) => mock.calls.length)).toEqual([0, 0, 1])
    expect(late.listenerCount('close')).toBe(0)
  })

  it('throws a TypeError for other objects than responses of Node.js', () => {
    const options = { connections, identify: () => null }
    const streams = followEventStreams(options)
    const web = new Response() as never
    expect(() => streams.add(web)).toThrow('response of node:http')
    expect(() => followEventStream(web, options)).toThrow('response of node:http')
    expect(() => followEventStreams({ ...options, identfy: 1 } as never)).toThrow('Did you mean "identify"')
  })

  it('shows a stopped follower no more', async () => {
    const world = createMemoryWorld()
    const streams = followEventStreams({
      connections: world.facilities.connections,
      identify: () => identityOf('/a/b/c'),
    })
    const response = createResponse()
    streams.add(response)
    await soon(async () => expect(await world.list('/connections')).toHaveLength(1))
    expect(await streams.close()).toEqual({ aborted: 0 })
    response.emit('close')
    expect(await world.list('/connections?status=connected')).toHaveLength(1)
    await world.close()
  })
})
