/** The WebSocket example of docs/feeding.md, unchanged: real sockets, and what the diagnostics show of them. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { WebSocket } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { CommandKey, Connection, Context, DeliveryStatus } from '../../src/index.js'
import { type Running, run } from '../adapters/process.js'
import { until } from './live-host-process.js'

const ROOT = new URL('../../', import.meta.url)
const fileOf = (path: string) => fileURLToPath(new URL(path, ROOT))
const missing = existsSync(fileOf('node_modules/ws')) ? undefined : 'ws, run npm ci'

type Join = (url: string, actions: Record<string, (payload: unknown) => Promise<unknown>>) => WebSocket

describe.skipIf(missing !== undefined)(
  `a WebSocket server that feeds${missing ? ` (skipped: ${missing})` : ''}`,
  () => {
    let relay: Running
    let join: Join
    beforeAll(async () => {
      relay = await run(process.execPath, [fileOf('examples/websocket/main.mjs')], {
        env: { PORT: '0', HEARTBEAT_MS: '30', SERVICE_ADMIN_KEY: '' },
      })
      Object.assign(globalThis, { WebSocket })
      join = (await import(fileOf('examples/websocket/page/client.mjs'))).join
    })
    afterAll(() => relay?.close())

    const at = (user: string, client: string) => `ws://127.0.0.1:${relay.port}/?user=${user}&client_id=${client}`
    const ask = async <T>(path: string) =>
      (await fetch(`http://127.0.0.1:${relay.port}/ops/diagnostics${path}`)).json() as Promise<T>
    const first = async <T>(path: string) => (await ask<{ items: T[] }>(path)).items[0]
    const connectionOf = (user: string, status: string) =>
      until(`${user} ${status}`, () => first<Connection>(`/connections?user_id=${user}&status=${status}`))
    const contextOf = (user: string, status: string) =>
      until(`the context of ${user}`, () => first<Context>(`/contexts?user_id=${user}&status=${status}`))

    /** Gives the client something to do, and waits for its end. */
    async function work(action: string, user: string, client: string) {
      const answer = await fetch(`http://127.0.0.1:${relay.port}/${action}/${user}/${client}`, { method: 'POST' })
      expect(answer.status).toBe(202)
      const { user_id, client_id, command_id } = (await answer.json()) as CommandKey
      const query = new URLSearchParams({ user_id, client_id, command_id })
      return until('the end of the command', async () => {
        const status = await ask<DeliveryStatus>(`/delivery/status?${query}`)
        return status.terminal ? status : undefined
      })
    }

    const closed = (socket: WebSocket) =>
      new Promise<{ code: number; reason: string }>((resolve) =>
        socket.addEventListener('close', ({ code, reason }) => resolve({ code, reason })),
      )

    it('connects, sends heartbeats, reports, delivers, receives acknowledgement and end, and disconnects', async () => {
      const socket = join(at('ada', 'laptop'), { sync: async () => 'done' })
      const { connection_id, last_seen_at } = await connectionOf('ada', 'connected')
      expect(await contextOf('ada', 'active')).toMatchObject({ client_id: 'laptop', ownership: 'user-owned' })
      const status = await work('sync', 'ada', 'laptop')
      expect(status).toMatchObject({
        attempts: { count: 1, confirmed: 1 },
        acknowledgement: { state: 'acknowledged' },
        terminal: { state: 'resulted' },
      })
      await until('a heartbeat', async () =>
        (await ask<Connection>(`/connections/${connection_id}`)).last_seen_at > last_seen_at ? true : undefined,
      )
      socket.close()
      await connectionOf('ada', 'disconnected')
      const { items } = await ask<{ items: object[] }>(`/connections/${connection_id}/history`)
      expect(items.at(-1)).toMatchObject({ event: 'disconnected', reason: 'socket_closed' })
      await contextOf('ada', 'closed')
    })

    it('settles as failed what the client could not do', async () => {
      const socket = join(at('bob', 'desk'), { sync: () => Promise.reject(new Error('no')) })
      await connectionOf('bob', 'connected')
      expect((await work('sync', 'bob', 'desk')).terminal).toMatchObject({ state: 'failed' })
      socket.close()
    })

    it('ends the socket of an instance that a newer one has replaced', async () => {
      const older = join(at('carol', 'phone'), {})
      await connectionOf('carol', 'connected')
      const end = closed(older)
      const newer = join(at('carol', 'phone'), {})
      expect(await end).toEqual({ code: 1008, reason: 'superseded' })
      newer.close()
    })

    it('returns an error code for an invalid or forbidden message, and continues', async () => {
      const dora = join(at('dora', 'tablet'), {})
      const fay = join(at('fay', 'tablet'), {})
      const said: { type: string; code: string }[] = []
      dora.addEventListener('message', ({ data }) => said.push(JSON.parse(String(data))))
      await contextOf('dora', 'active')
      const { context_id } = await contextOf('fay', 'active')
      dora.send('{"type":"constructor"}')
      dora.send('nonsense')
      dora.send(JSON.stringify({ type: 'report', context_id: ' ', status: 'active' }))
      dora.send(JSON.stringify({ type: 'report', context_id, status: 'active' }))
      await until('three refusals', async () => (said.length > 2 ? true : undefined))
      expect(said).toEqual([
        { type: 'refused', code: 'bad_message' },
        { type: 'refused', code: 'invalid_input' },
        { type: 'refused', code: 'identity_conflict' },
      ])
      expect((await work('sync', 'dora', 'tablet')).terminal).toMatchObject({ state: 'failed' })
      for (const socket of [dora, fay]) socket.close()
    })

    it('closes its sockets on SIGTERM, and ends when their ends are written', async () => {
      const ending = await run(process.execPath, [fileOf('examples/websocket/main.mjs')], { env: { PORT: '0' } })
      const socket = join(`ws://127.0.0.1:${ending.port}/?user=ada&client_id=laptop`, {})
      await new Promise((resolve) => socket.addEventListener('open', resolve))
      const end = closed(socket)
      expect(await ending.end()).toBe(0)
      expect(await end).toEqual({ code: 1001, reason: 'shutdown' })
    })

    it('closes the socket of a client that cannot be one', async () => {
      expect(await closed(join(at('eve', ''), {}))).toMatchObject({ code: 1011, reason: 'invalid_input' })
    })
  },
)
