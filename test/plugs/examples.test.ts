/** Boots the examples of the integration pages, and checks what they show of one client. */
import { get } from 'node:http'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { io } from 'socket.io-client'
import { describe, expect, it, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import type { Connection, Context } from '../../src/index.js'
import { run } from '../adapters/process.js'
import { CHROMIUM, isChromiumMissing } from '../chromium.js'
import { soon } from '../redis/wait-for.js'

/** Runs an example, and says how to look at it. */
async function start(name: string) {
  const file = fileURLToPath(new URL(`../../examples/${name}.mjs`, import.meta.url))
  const { port, close, end } = await run(process.execPath, [file], {
    env: { PORT: '0', SERVICE_ADMIN_KEY: '', CHROMIUM },
  })
  onTestFinished(close)
  const shown = async <T>(path: string, check: (items: T[]) => void) =>
    soon(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/ops/diagnostics${path}`)
      check(((await answer.json()) as { items: T[] }).items)
    })
  return { port, shown, end }
}

describe('examples/ws', () => {
  it('shows a client that comes and goes', async () => {
    const { port, shown } = await start('ws')
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ada/laptop/run-1`)
    const expected = { user_id: 'ada', client_id: 'laptop', instance_id: 'run-1' }
    await shown<Connection>('/connections', (items) =>
      expect(items).toMatchObject([{ ...expected, status: 'connected' }]),
    )
    socket.close(1000)
    await shown<Connection>('/connections', (items) =>
      expect(items).toMatchObject([{ ended_reason: 'normal_closure' }]),
    )
  })
})

describe('examples/event-streams', () => {
  it('shows a client that comes and goes', async () => {
    const { port, shown } = await start('event-streams')
    const client = get(`http://127.0.0.1:${port}/events?user=ada&client=laptop&instance=run-1`)
    client.on('error', () => {})
    onTestFinished(() => void client.destroy())
    await shown<Connection>('/connections', (items) =>
      expect(items).toMatchObject([{ user_id: 'ada', status: 'connected', metadata: { transport: 'event_stream' } }]),
    )
    client.destroy()
    await shown<Connection>('/connections', (items) =>
      expect(items).toMatchObject([{ ended_reason: 'connection_closed' }]),
    )
  })
})

describe('examples/mcp-sessions', () => {
  it('shows the call that a tool does not answer', async () => {
    const { port, shown } = await start('mcp-sessions')
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'legacy' } })
    onTestFinished(() => client.close())
    const requestInit = { headers: { 'x-user': 'ada', 'x-client': 'laptop' } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`), { requestInit }))
    client.callTool({ name: 'report' }).catch(() => {})
    await shown('/rpc/pending', (items) =>
      expect(items).toMatchObject([{ action: 'tools/call report', client_id: 'laptop', direction: 'to_server' }]),
    )
  })
})

describe('examples/acknowledgements', () => {
  it('names clients that do not answer, over Socket.IO and JSON-RPC', async () => {
    const { port, shown } = await start('acknowledgements')
    const auth = { user: 'ada', client: 'laptop', instance: 'run-1' }
    const client = io(`http://127.0.0.1:${port}`, { auth, transports: ['websocket'] })
    const socket = new WebSocket(`ws://127.0.0.1:${port}/rpc?user=ada&client=phone&instance=run-1`)
    const device = new WebSocket(`ws://127.0.0.1:${port}/devices?user=ada&client=lamp&instance=run-1`)
    onTestFinished(() => {
      client.disconnect()
      socket.terminate()
      device.terminate()
    })
    await shown<{ kind: string; subject: { client_id?: string } }>('/findings', (items) =>
      expect(items.map(({ kind, subject }) => `${kind} ${subject.client_id}`).sort()).toEqual([
        'client_not_answering lamp',
        'client_not_answering laptop',
        'client_not_answering phone',
      ]),
    )
    client.disconnect()
    await shown('/rpc/ended', (items) =>
      expect(items).toMatchObject([{ action: 'sync', connection_reason: 'client_namespace_disconnect' }]),
    )
  })
})

describe('examples/ws-commands', () => {
  const open = (port: number, instance = 'run-1') => new WebSocket(`ws://127.0.0.1:${port}/ada/laptop/${instance}`)
  const closed = (socket: WebSocket) => new Promise<number>((resolve) => socket.once('close', resolve))

  /** Takes every command as `work` says. */
  function serve(socket: WebSocket, work: (command_id: string) => void) {
    socket.on('message', (data) => {
      const { command_id } = JSON.parse(String(data)) as { command_id: string }
      socket.send(JSON.stringify({ type: 'ack', command_id }))
      work(command_id)
      socket.send(JSON.stringify({ type: 'result', command_id, ok: true }))
    })
  }
  const dispatch = (port: number) => fetch(`http://127.0.0.1:${port}/sync/ada/laptop`, { method: 'POST' })

  it('hands a command to the newest socket of its client, hears what became of it, and outlives nonsense', async () => {
    const { port, shown } = await start('ws-commands')
    const took: string[] = []
    const older = open(port)
    const superseded = closed(older)
    serve(older, () => took.push('older'))
    await shown<Connection>('/connections?status=connected', (items) => expect(items).toHaveLength(1))
    const newer = open(port, 'run-2')
    serve(newer, () => took.push('newer'))
    newer.on('open', () => newer.send('nonsense'))
    expect(await superseded).toBe(1008)
    expect((await dispatch(port)).status).toBe(202)
    const expected = { state: 'resulted', acknowledgement: { state: 'acknowledged', instance_id: 'run-2' } }
    await shown('/delivery/commands', (items) => expect(items).toMatchObject([expected]))
    expect(took).toEqual(['newer'])
  })

  it('closes its sockets on SIGTERM, those that do not answer too, and ends', async () => {
    const { port, shown, end } = await start('ws-commands')
    const socket = open(port)
    const code = closed(socket)
    const hanging = new WebSocket(`ws://127.0.0.1:${port}/ada/phone/run-1`)
    hanging.on('error', () => {})
    await shown<Connection>('/connections', (items) => expect(items).toHaveLength(2))
    hanging.pause()
    expect(await end()).toBe(0)
    expect(await code).toBe(1001)
    hanging.terminate()
  })
})

describe('examples/socket-io', () => {
  it('shows a client that comes, its room, and why it went', async () => {
    const { port, shown } = await start('socket-io')
    const auth = { user: 'ada', client: 'laptop', instance: 'run-1' }
    const socket = io(`http://127.0.0.1:${port}`, { auth, transports: ['websocket'] })
    const expected = { user_id: 'ada', client_id: 'laptop', status: 'connected', metadata: { rooms: ['all'] } }
    await shown<Connection>('/connections', (items) => expect(items).toMatchObject([expected]))
    socket.disconnect()
    const reason = 'client_namespace_disconnect'
    await shown<Connection>('/connections', (items) => expect(items).toMatchObject([{ ended_reason: reason }]))
  })
})

describe.skipIf(isChromiumMissing)('examples/playwright (needs chromium)', () => {
  it('shows a page that works on a task', async () => {
    const { shown } = await start('playwright')
    const expected = { user_id: 'ada', client_id: 'crawler', task_id: 'crawl-1', ownership: 'worker', status: 'active' }
    await shown<Context>('/contexts', (items) => expect(items).toMatchObject([expected]))
  })
})
