/** The calls that `followMcp` sees between servers and clients of the MCP SDK, in one process and over streamable HTTP. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { InMemoryTransport, McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Connection, PendingCall } from '../../src/index.js'
import type { EndedCall } from '../../src/internal/contract/rpc.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { type Follower, followMcp, followMcpSessions } from '../../src/plugs/index.js'
import { soon } from '../redis/wait-for.js'
import { describeWorlds, type World } from './world.js'

const identityOf = (client_id: string) => ({
  user_id: 'ada',
  client_id,
  instance_id: 'run-1',
  client_type: 'console' as const,
})

/** A server with tools that end, fail, and wait until they are released or cancelled. */
function createServer() {
  const server = new McpServer({ name: 'tools', version: '1' })
  const waiting: (() => void)[] = []
  const text = (value: string) => [{ type: 'text' as const, text: value }]
  server.registerTool('now', {}, () => ({ content: text('noon') }))
  server.registerTool('broken', {}, () => ({ content: text('no'), isError: true }))
  server.registerTool('slow', {}, async () => {
    await new Promise<void>((resolve) => waiting.push(resolve))
    return { content: text('done') }
  })
  return {
    server,
    release() {
      for (const resolve of waiting.splice(0)) resolve()
    },
  }
}

const createClient = () =>
  new Client({ name: 'test', version: '1' }, { capabilities: { roots: {} }, versionNegotiation: { mode: 'legacy' } })

describeWorlds('calls of MCP sessions', (open) => {
  let world: World
  let follower: Follower
  const ends: (() => Promise<unknown>)[] = []
  beforeEach(async () => {
    world = await open()
  })
  afterEach(async () => {
    await follower?.close()
    for (const end of ends.splice(0)) await end()
    await world.close()
  })
  const pending = () => world.list<PendingCall>('/rpc/pending?observed=true')
  // On a busy machine the quick ones may take more than a second: then they are listed.
  const QUICK = ['initialize', 'tools/call now']
  const ended = async () =>
    (await world.list<EndedCall>('/rpc/ended?observed=true'))
      .filter(({ action }) => !QUICK.includes(action))
      .map(({ action, outcome }) => `${action} ${outcome}`)
      .sort()

  it.each(['before', 'after'])('shows calls of both sides, added %s the server connects', async (when) => {
    const { server, release } = createServer()
    const [here, there] = InMemoryTransport.createLinkedPair()
    const { connections, rpc } = world.facilities
    const follow = () => {
      follower = followMcp(here, { connections, calls: rpc, identify: () => identityOf('laptop') })
    }
    if (when === 'before') follow()
    await server.connect(here)
    if (when === 'after') follow()
    const client = createClient()
    client.setRequestHandler('roots/list', () => new Promise(() => {}))
    await client.connect(there)
    ends.push(() => client.close())

    await client.callTool({ name: 'now' })
    await client.callTool({ name: 'broken' })
    const trace_id = '4bf92f3577b34da6a3ce929d0e0e4736'
    const traceparent = `00-${trace_id}-00f067aa0ba902b7-01`
    const slow = client.callTool({ name: 'slow', _meta: { traceparent, tracestate: 'a=1' } }, { timeout: 3_600_000 })
    const cancel = new AbortController()
    const cancelled = client.callTool({ name: 'slow' }, { signal: cancel.signal })
    cancelled.catch(() => {})
    server.server.listRoots({}, { timeout: 3_600_000 }).catch(() => {})
    await soon(async () => {
      expect((await pending()).map(({ action, direction }) => `${action} ${direction}`).sort()).toEqual([
        'roots/list to_client',
        'tools/call slow to_server',
        'tools/call slow to_server',
      ])
    })
    const traced = { action: 'tools/call slow', trace: traceparent, trace_id }
    expect(await world.list(`/rpc/pending?trace_id=${trace_id}`)).toMatchObject([traced])
    cancel.abort()
    release()
    await slow
    await soon(async () =>
      expect(await ended()).toEqual([
        'tools/call broken failed',
        'tools/call slow cancelled',
        'tools/call slow succeeded',
      ]),
    )
    expect(await world.list(`/rpc/ended?trace_id=${trace_id}`)).toMatchObject([traced])
    await client.close()
    await soon(async () => {
      expect(await pending()).toEqual([])
      expect(await world.list('/rpc/ended?outcome=unanswered')).toMatchObject([
        { action: 'roots/list', connection_reason: 'transport_closed' },
      ])
      expect(await world.list('/connections')).toMatchObject([
        { client_id: 'laptop', ended_reason: 'transport_closed', metadata: { transport: 'mcp' } },
      ])
    })
  })

  it('shows several sessions over streamable HTTP, each with its own calls', async () => {
    const { connections, rpc } = world.facilities
    const sessions = followMcpSessions<WebStandardStreamableHTTPServerTransport, string>({
      connections,
      calls: rpc,
      identify: (_transport, client) => identityOf(client ?? ''),
    })
    follower = sessions
    const transports = new Map<string, WebStandardStreamableHTTPServerTransport>()
    const releases: (() => void)[] = []
    async function handle(request: Request): Promise<Response> {
      const known = transports.get(request.headers.get('mcp-session-id') ?? '')
      if (known) return known.handleRequest(request)
      const transport = new WebStandardStreamableHTTPServerTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        onsessioninitialized(id) {
          transports.set(id, transport)
          sessions.add(transport, request.headers.get('x-client') ?? '')
        },
      })
      const { server, release } = createServer()
      releases.push(release)
      await server.connect(transport)
      return transport.handleRequest(request)
    }
    const names = ['laptop', 'phone', 'tablet']
    const clients = await Promise.all(
      names.map(async (name) => {
        const transport = new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), {
          requestInit: { headers: { 'x-client': name } },
          fetch: (url, init) => handle(new Request(url, init)),
        })
        const client = createClient()
        await client.connect(transport)
        ends.push(() => client.close())
        return { client, transport }
      }),
    )
    const calls = clients.map(({ client }) => client.callTool({ name: 'slow' }))
    for (const call of calls) call.catch(() => {})
    await soon(async () => {
      const found = await pending()
      expect(found.map(({ client_id }) => client_id).sort()).toEqual(names)
      expect(found).toMatchObject(names.map(() => ({ action: 'tools/call slow', direction: 'to_server' })))
    })
    await clients[1]?.transport.terminateSession()
    await soon(async () => {
      const left = await world.list<Connection>('/connections?status=disconnected')
      expect(left).toMatchObject([{ client_id: 'phone', ended_reason: 'transport_closed' }])
      expect(await world.list('/rpc/ended?outcome=unanswered')).toMatchObject([{ client_id: 'phone' }])
    })
    for (const release of releases) release()
    await soon(async () => expect(await pending()).toEqual([]))
  })
})

describe('transports of MCP', () => {
  const { connections, rpc } = createMemoryFacilities()
  const createTransport = () => ({
    start: async () => {},
    send: vi.fn(async (_message: unknown) => {}),
    onmessage: vi.fn((_message: unknown) => {}),
    onclose: vi.fn(),
  })
  const options = { connections, calls: rpc, identify: () => identityOf('laptop') }

  it('are as they were after leave() and close()', async () => {
    const transport = createTransport()
    const before = { ...transport }
    const sessions = followMcpSessions(options)
    sessions.add(transport)
    expect(transport.send).not.toBe(before.send)
    await transport.send({ method: 'x', id: 1 })
    transport.onmessage('not a message')
    expect(before.send).toHaveBeenCalledWith({ method: 'x', id: 1 })
    expect(before.onmessage).toHaveBeenCalledWith('not a message')
    sessions.leave(transport)
    expect(transport).toEqual(before)
    sessions.add(transport)
    await sessions.close()
    expect(transport).toEqual(before)
    sessions.add(transport)
    expect(transport).toEqual(before)
  })

  it('restores a method of a class and a handler that is passed on', async () => {
    class Outer {
      inner = createTransport()
      get onmessage() {
        return this.inner.onmessage
      }
      set onmessage(handler) {
        this.inner.onmessage = handler
      }
      async start() {}
      async send(message: unknown) {
        await this.inner.send(message)
      }
    }
    const transport = new Outer()
    const { onmessage } = transport
    const follower = followMcp(transport, options)
    expect(transport.onmessage).not.toBe(onmessage)
    await transport.send({ method: 'x' })
    expect(transport.inner.send).toHaveBeenCalledTimes(1)
    await follower.close()
    expect(transport.onmessage).toBe(onmessage)
    expect(Object.keys(transport)).toEqual(['inner', 'onclose'].filter((name) => Object.hasOwn(transport, name)))
    expect(Object.hasOwn(transport, 'send')).toBe(false)
  })

  it('restores a transport once it has closed, and those that identify() does not name', async () => {
    const [closing, unknown] = [createTransport(), createTransport()]
    const [before, former] = [{ ...closing }, { ...unknown }]
    followMcp(closing, options)
    closing.onclose()
    expect(before.onclose).toHaveBeenCalledTimes(1)
    expect(closing).toEqual(before)
    followMcp(unknown, { ...options, identify: () => null })
    await vi.waitFor(() => expect(unknown).toEqual(former), 60_000)
  })

  it('keeps calls with progress by another token than their id', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setInterval', 'setTimeout', 'clearTimeout', 'clearInterval'] })
    try {
      const observe = vi.fn(async () => 0)
      const transport = createTransport()
      const follower = followMcp(transport, { ...options, calls: { observe }, keepMs: 10_000 })
      const call = (id: number, progressToken: string | number) =>
        transport.onmessage({
          jsonrpc: '2.0',
          id,
          method: 'tools/call',
          params: { name: `tool-${id}`, _meta: { progressToken } },
        })
      await vi.advanceTimersByTimeAsync(0)
      call(1, 'a')
      call(2, 'b')
      for (let i = 0; i < 5; i++) {
        await vi.advanceTimersByTimeAsync(4_000)
        // 2 is an id and no token.
        for (const progressToken of ['a', 2])
          await transport.send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken } })
      }
      const ended = () =>
        observe.mock.calls
          .flatMap(([report]: unknown[]) => (report as { calls: { action: string; end?: object }[] }).calls)
          .filter(({ end }) => end)
      expect(ended()).toMatchObject([{ action: 'tools/call tool-2', end: { outcome: 'unanswered' } }])
      // The token of an earlier request is the id of a later one.
      call(4, 5)
      call(5, 5)
      for (let i = 0; i < 5; i++) {
        await vi.advanceTimersByTimeAsync(4_000)
        await transport.send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 5 } })
      }
      expect(ended().map(({ action }) => action)).toEqual(
        expect.arrayContaining(['tools/call tool-1', 'tools/call tool-4']),
      )
      expect(ended().map(({ action }) => action)).not.toContain('tools/call tool-5')
      await follower.close()
    } finally {
      vi.useRealTimers()
    }
  })

  it('throws a TypeError for other objects than transports', () => {
    expect(() => followMcp({} as never, options)).toThrow('transport of an MCP server')
    expect(() => followMcpSessions({ connections, identify: () => null } as never)).toThrow('"calls"')
  })
})
