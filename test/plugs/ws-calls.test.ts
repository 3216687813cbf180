/** The calls that `followWebSockets` sees in the messages of real servers and clients of `ws`. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import type { PendingCall } from '../../src/index.js'
import type { EndedCall } from '../../src/internal/contract/rpc.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import {
  type CallMessage,
  type FollowWebSocketsOptions,
  followWebSockets,
  jsonRpc,
  type WebSocketFollower,
} from '../../src/plugs/ws/index.js'
import { soon } from '../redis/wait-for.js'
import { createDice } from '../simulation/random.js'
import { describeWorlds, type World } from './world.js'

type Options = Partial<FollowWebSocketsOptions<WebSocket, IncomingMessage>>

const identityOf = (url = '') => {
  const [, user_id = '', client_id = '', instance_id = ''] = url.split('/')
  return { user_id, client_id, instance_id, client_type: 'web' as const }
}

async function createPeer() {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const clients: WebSocket[] = []
  return {
    server,
    /** Both ends of a new connection. */
    async join(path = '/ada/laptop/run-1') {
      const client = new WebSocket(`ws://127.0.0.1:${port}${path}`)
      clients.push(client)
      const [[socket]] = await Promise.all([once(server, 'connection'), once(client, 'open')])
      return { client, socket: socket as WebSocket }
    },
    async close() {
      for (const client of clients) client.terminate()
      for (const socket of server.clients) socket.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
type Peer = Awaited<ReturnType<typeof createPeer>>

const request = (id: unknown, method: string, params?: object) => JSON.stringify({ jsonrpc: '2.0', id, method, params })
const result = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result: null })
const failure = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_000, message: 'no' } })

let peer: Peer
let follower: WebSocketFollower<WebSocket, IncomingMessage>
beforeEach(async () => {
  peer = await createPeer()
})
afterEach(async () => {
  await follower?.close()
  await peer.close()
})

describeWorlds('calls over WebSockets', (open) => {
  let world: World
  beforeEach(async () => {
    world = await open()
  })
  afterEach(async () => {
    await follower.close()
    await world.close()
  })

  const follow = (options: Options = {}) => {
    const { connections, rpc } = world.facilities
    const identify = (_socket: WebSocket, from: IncomingMessage | undefined) => identityOf(from?.url)
    follower = followWebSockets(peer.server, { connections, calls: rpc, protocol: jsonRpc, identify, ...options })
  }
  const pending = () => world.list<PendingCall>('/rpc/pending?observed=true')
  const ended = () => world.list<EndedCall>('/rpc/ended?observed=true')

  it('shows requests of both sides that wait, and how the others ended', async () => {
    follow()
    const { client, socket } = await peer.join()
    socket.send(request(1, 'sync'))
    socket.send(request('1', 'render'))
    client.send(request(1, 'save'))
    await soon(async () => {
      expect((await pending()).map(({ action, direction }) => `${action} ${direction}`).sort()).toEqual([
        'render to_client',
        'save to_server',
        'sync to_client',
      ])
    })
    client.send(`[${failure('1')},${result(7)}]`)
    socket.send(result(1))
    await soon(async () => {
      expect(await pending()).toMatchObject([
        { action: 'sync', user_id: 'ada', client_id: 'laptop', instance_id: 'run-1', answered_since: 'later' },
      ])
      const outcomes = (await ended()).map(({ action, outcome }) => `${action} ${outcome}`).sort()
      expect(outcomes).toEqual(['render failed', 'save succeeded'])
    })
    client.terminate()
    await soon(async () => {
      expect(await pending()).toEqual([])
      expect(await world.list('/rpc/ended?outcome=unanswered')).toMatchObject([
        { action: 'sync', connection_reason: 'abnormal_closure' },
      ])
    })
    const { observed } = await world.ask<{ observed: { actions: object[] } | null }>('/rpc/summary')
    expect(observed?.actions.length ?? 0).toBeGreaterThan(0)
  })

  const findings = async () =>
    (await world.list<{ kind: string; subject: object }>('/findings')).map(({ kind, subject }) => ({
      kind,
      ...subject,
    }))

  it('has no finding in a healthy world of 10,000 random messages, and then names what is silent, passed over and lost', async () => {
    follow()
    const dice = createDice(7, 'healthy')
    const pairs = [
      await peer.join(),
      await peer.join('/ada/phone/run-1'),
      await peer.join('/ada/tablet/run-1'),
    ] as const
    let answered = 0
    for (const { client, socket } of pairs)
      for (const here of [client, socket])
        here.on('message', (data) => {
          const { id, method } = JSON.parse(String(data)) as { id?: number; method?: string }
          const reply = () => here.send(result(id))
          if (method === undefined) answered++
          else if (method === 'sync' && id !== undefined) dice.int(2) ? setImmediate(reply) : reply()
        })
    let requests = 0
    for (let i = 0; i < 5_000; i++) {
      const { client, socket } = dice.pick(pairs)
      const isRequest = dice.int(10) > 0
      requests += Number(isRequest)
      dice.pick([client, socket]).send(request(isRequest ? i : undefined, 'sync'))
      if (i % 50 === 49) await soon(() => expect(answered).toBe(requests))
    }
    const { observed } = await soon(async () => {
      const summary = await world.ask<{ observed: { actions: { succeeded: number }[] } | null }>('/rpc/summary')
      expect(summary.observed?.actions.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(requests)
      return summary
    })
    expect(observed?.actions).toHaveLength(2)
    // On a busy machine an answer may take more than a second: then it is listed.
    const bad = (await ended()).filter(({ outcome }) => outcome !== 'succeeded')
    expect([await findings(), await pending(), bad]).toEqual([[], [], []])

    const [laptop, phone, tablet] = pairs
    laptop.client.pause()
    laptop.socket.send(request('a', 'sync'))
    phone.socket.send(request('b', 'stuck'))
    phone.socket.send(request('c', 'sync'))
    tablet.socket.send(request('d', 'stuck'))
    await soon(async () => expect(await pending()).toHaveLength(3))
    tablet.client.close(1001)
    const [stuck] = await world.list<PendingCall>('/rpc/pending?action=stuck&client_id=phone')
    await soon(async () =>
      expect(await findings()).toEqual([
        { kind: 'call_not_answered', correlation_id: stuck?.correlation_id, user_id: 'ada', client_id: 'phone' },
        { kind: 'client_not_answering', user_id: 'ada', client_id: 'laptop' },
        { kind: 'calls_lost_with_connection', reason: 'going_away' },
      ]),
    )
  })

  it('follows a socket that is added, and each socket once', async () => {
    const bare = new WebSocketServer({ noServer: true })
    const { connections, rpc } = world.facilities
    const identify = (_socket: WebSocket, from: IncomingMessage | undefined) => identityOf(from?.url)
    follower = followWebSockets(bare, { connections, calls: rpc, protocol: jsonRpc, identify })
    const { socket } = await peer.join()
    for (let i = 0; i < 2; i++) follower.add(socket, { url: '/bob/phone/run-2' } as IncomingMessage)
    socket.send(request(1, 'sync'))
    await soon(async () => expect(await pending()).toMatchObject([{ user_id: 'bob', client_id: 'phone' }]))
    bare.close()
  })
})

/** A follower with a recorder of what it sees. */
function followed(options: Options = {}) {
  const { connections } = createMemoryFacilities()
  const observe = vi.fn(async () => 0)
  const onError = vi.fn()
  const identify = (_socket: WebSocket, from: IncomingMessage | undefined) => identityOf(from?.url)
  const given = { connections, calls: { observe }, protocol: jsonRpc, identify, onError, ...options }
  follower = followWebSockets(peer.server, given)
  const calls = () => observe.mock.calls.flatMap(([report]: unknown[]) => (report as { calls: object[] }).calls)
  return { calls, onError, connections, observe }
}

it('reads an own protocol, and continues after it throws', async () => {
  const read = vi.fn((text: string, direction: string): CallMessage | undefined => {
    if (text === 'bad') throw new Error('bad')
    const [kind, id, action] = text.split(' ')
    return kind === 'hello'
      ? undefined
      : ({ kind: kind as 'request', id, action, ok: direction === 'x' } as CallMessage)
  })
  const { calls, onError } = followed({ protocol: { read } })
  const { client, socket } = await peer.join()
  for (const text of ['hello', 'bad', 'bad', 'request 1 sync', 'request 2 stop', 'cancel 2']) socket.send(text)
  client.send('reply 1')
  client.send(Buffer.from('binary'), { binary: true })
  await soon(() => expect(calls()).toMatchObject([{ end: { outcome: 'cancelled' } }, { end: { outcome: 'failed' } }]))
  expect(read).toHaveBeenCalledWith('reply 1', 'to_server')
  expect(read).not.toHaveBeenCalledWith('binary', expect.anything())
  expect(onError).toHaveBeenCalledOnce()
  expect(onError).toHaveBeenCalledWith(new Error('bad'), { step: 'hook' })
})

it('counts messages as signs of life with aliveOnMessage', async () => {
  const { connections } = createMemoryFacilities()
  const heartbeat = vi.spyOn(connections, 'heartbeat')
  followed({ connections, aliveOnMessage: true, ping: false, heartbeatMs: 20 })
  const { client } = await peer.join()
  await soon(() => {
    client.send('anything')
    expect(heartbeat).toHaveBeenCalled()
  })
})

it('restores each socket when it is closed, and passes on what is sent through a wrapper of another', async () => {
  followed()
  const [one, other] = [await peer.join(), await peer.join('/ada/phone/run-2')]
  const wrapped = other.socket.send
  other.socket.send = function (this: WebSocket, ...args: unknown[]) {
    return Reflect.apply(wrapped, this, args)
  } as typeof wrapped
  await follower.close()
  expect(Object.hasOwn(one.socket, 'send')).toBe(false)
  expect(one.socket.listenerCount('message')).toBe(0)
  const got = once(other.client, 'message')
  other.socket.send('still there')
  expect(String((await got)[0])).toBe('still there')
})

it('refuses calls without a protocol, and a protocol without calls', () => {
  for (const options of [{ calls: undefined }, { protocol: undefined }])
    expect(() => followed(options)).toThrow(/^Missing required option "(calls|protocol)"/)
  expect(() => followed({ calls: {} as never })).toThrow('option "calls": expected an object with observe()')
  expect(() => followed({ keepMs: 0 })).toThrow(RangeError)
})

it('reads JSON-RPC, also of a message that is too long to parse', () => {
  const long = 'x'.repeat(70_000)
  const read = (text: string) => jsonRpc.read(text.slice(0, 65_536), 'to_client')
  const tool = { jsonrpc: '2.0', id: 5, method: 'tools/call', params: { name: 'search', arguments: { long } } }
  expect(read(request(1, 'sync'))).toEqual({ kind: 'request', id: 1, action: 'sync' })
  expect(read(request('a', 'tools/call', { name: 'search' }))).toMatchObject({ action: 'tools/call search' })
  expect(read(JSON.stringify(tool))).toEqual({ kind: 'request', id: 5, action: 'tools/call' })
  expect(read(`{"jsonrpc":"2.0","id":"a b","result":{"x":"${long}"}}`)).toEqual({ kind: 'reply', id: 'a b', ok: true })
  expect(read(`{"jsonrpc":"2.0","method":"sync","params":{"x":"${long}"},"id":1}`)).toBeUndefined()
  expect(read(`{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"${long}"}}`)).toEqual({
    kind: 'reply',
    id: 3,
    ok: false,
  })
  expect(read('{"id":"a\\"b","jsonrpc":"2.0","result":1}')).toEqual({ kind: 'reply', id: 'a"b', ok: true })
  expect(read('{"jsonrpc":"2.0","method":"sync","id":"x"}')).toEqual({ kind: 'request', id: 'x', action: 'sync' })
  expect(read(request(undefined, 'log'))).toEqual({ kind: 'notification', action: 'log' })
  expect(read(request(undefined, 'notifications/cancelled', { requestId: 4 }))).toEqual({ kind: 'cancel', id: 4 })
  expect(read(request(undefined, '$/cancelRequest', { id: 'x' }))).toEqual({ kind: 'cancel', id: 'x' })
  // A progress token is not an id.
  expect(read(request(undefined, 'notifications/progress', { progressToken: 4 }))).toEqual({
    kind: 'notification',
    action: 'notifications/progress',
  })
  const failed = (more: string) => read(`{"jsonrpc":"2.0","id":3,"result":{"content":[${more}],"isError":true}}`)
  expect(failed('')).toEqual({ kind: 'reply', id: 3, ok: false })
  expect(failed(`"${long}"`)).toEqual({ kind: 'reply', id: 3, ok: true })
  expect(read('{"jsonrpc":"2.0","id":3,"result":{"text":{"isError":true}}}')).toEqual({
    kind: 'reply',
    id: 3,
    ok: true,
  })
  expect(read(request(1, 'sync', { isError: true }))).toEqual({ kind: 'request', id: 1, action: 'sync' })
  for (const text of ['', 'hello', '{', '[1,null]', '{"id":1}', '{"id":null,"result":1}', 'null', `{"x":${long}`])
    expect([undefined, []]).toContainEqual(read(text))
})
