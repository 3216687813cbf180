/** A router without a key answers direct requests of its own machine only, on every host, whatever address is bound. */
import { createServer, request as httpRequest, type RequestListener, type Server } from 'node:http'
import { networkInterfaces } from 'node:os'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { toDenoHandler } from '../../src/adapters/deno.js'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { startNodeServer, toNodeHandler } from '../../src/adapters/node.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { resolveAdminAuth } from '../../src/internal/http/auth.js'

const createRouter = () =>
  createDiagnosticsRouter({
    inspectors: {},
    auth: resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} }),
    onError: null,
  })

/** An address by which other machines reach this one. */
const LAN = Object.values(networkInterfaces())
  .flatMap((of) => of ?? [])
  .find(({ internal, family }) => !internal && family === 'IPv4')?.address

function ask(host: string, port: number, headers: Record<string, string> = {}): Promise<[number, string]> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ host, port, path: '/capabilities', headers: { host: 'localhost', ...headers } })
    sent.on('error', reject).on('response', (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk
      })
      response.on('end', () => resolve([response.statusCode as number, text]))
    })
    sent.end()
  })
}

const warned = vi.spyOn(console, 'warn').mockImplementation(() => {})
afterAll(() => warned.mockRestore())

async function listenOn(server: Server): Promise<number> {
  await new Promise<void>((resolve) => void server.listen(0, '::', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as { port: number }).port
}

const HOSTS: [name: string, start: () => Promise<number>][] = [
  [
    'startNodeServer',
    async () => {
      const server = await startNodeServer(createRouter(), { host: '::' })
      onTestFinished(async () => void (await server.close()))
      return server.port
    },
  ],
  ['Express', () => listenOn(createServer(express().use(toExpressMiddleware(createRouter()))))],
  [
    'Hono behind our adapter of Node',
    async () => {
      const app = new Hono().use(toHonoHandler(createRouter()))
      return listenOn(createServer(toNodeHandler((request, info) => app.fetch(request, info))))
    },
  ],
  [
    'Fastify',
    async () => {
      const mount = toNodeHandler(createRouter())
      const app = Fastify({
        serverFactory: (handle: RequestListener) => createServer((req, res) => mount(req, res, () => handle(req, res))),
      })
      await app.listen({ port: 0, host: '::' })
      onTestFinished(() => app.close())
      return (app.server.address() as { port: number }).port
    },
  ],
]

describe.each(HOSTS)('a keyless router on all interfaces with %s', (_, start) => {
  it('answers a loopback address', async () => {
    const port = await start()
    expect((await ask('127.0.0.1', port))[0]).toBe(200)
    expect((await ask('::1', port))[0]).toBe(200)
  })

  const applies = LAN ? '' : ' (does not apply: this machine has no other address)'
  it.runIf(LAN)(`refuses an address that other machines reach, even if Host is localhost${applies}`, async () => {
    const port = await start()
    const [status, text] = await ask(LAN as string, port)
    expect([status, JSON.parse(text)]).toEqual([403, expect.objectContaining({ code: 'admin_key_required' })])
    expect(JSON.parse(text).title).toContain('set SERVICE_ADMIN_KEY')
  })

  it.each(['Forwarded', 'X-Forwarded-For', 'X-Real-IP', 'Via'])('refuses %s, which a proxy adds', async (name) => {
    const port = await start()
    const [status, text] = await ask('127.0.0.1', port, { [name]: '127.0.0.1' })
    expect([status, JSON.parse(text).code]).toEqual([403, 'admin_key_required'])
  })

  it('passes the address, and logs no warning', async () => {
    warned.mockClear()
    await ask('127.0.0.1', await start())
    expect(warned).not.toHaveBeenCalled()
  })
})

describe('a keyless router behind a runtime that passes the address', () => {
  const request = () => new Request('http://localhost/capabilities', { headers: { host: 'localhost' } })
  const bun = (address: string) => ({ requestIP: (of: Request) => (of.url ? { address, port: 1 } : null) })
  const deno = (hostname: string) => ({ remoteAddr: { transport: 'tcp', hostname, port: 1 } })
  const honoWith = (env: object) => new Hono().use(toHonoHandler(createRouter())).fetch(request(), env)

  it.each<[string, (address: string) => Response | Promise<Response>]>([
    ['toDenoHandler', (address) => toDenoHandler(createRouter())(request(), deno(address))],
    ['Deno.serve', (address) => createRouter()(request(), deno(address))],
    ['Bun.serve', (address) => createRouter()(request(), bun(address))],
    ['Hono on Deno', (address) => honoWith(deno(address))],
    ['Hono on Bun', (address) => honoWith(bun(address))],
    ['Hono on Bun, the server in an object', (address) => honoWith({ server: bun(address) })],
    ['the Node server of Hono', (address) => honoWith({ incoming: { socket: { remoteAddress: address } } })],
    ['a call with the address', (address) => createRouter()(request(), { remoteAddress: address })],
  ])('%s', async (_, askFrom) => {
    warned.mockClear()
    for (const [address, status] of [
      ['127.0.0.1', 200],
      ['::1', 200],
      ['::ffff:127.0.0.1', 200],
      ['192.0.2.7', 403],
      ['::ffff:192.0.2.7', 403],
      ['2001:db8::1', 403],
    ] as const)
      expect([address, (await askFrom(address)).status]).toEqual([address, status])
    expect(warned).not.toHaveBeenCalled()
  })

  it('checks only Host without an address, and warns once', async () => {
    warned.mockClear()
    const router = createRouter()
    const from = (host: string) => router(new Request('http://localhost/capabilities', { headers: { host } }))
    expect((await from('evil.example')).status).toBe(403)
    expect(warned).not.toHaveBeenCalled()
    expect([(await from('localhost:80')).status, (await from('127.0.0.1')).status]).toEqual([200, 200])
    expect(warned).toHaveBeenCalledOnce()
    expect(warned.mock.calls[0]?.[0]).toContain('SERVICE_ADMIN_KEY')
  })

  it('answers an in-process call by its URL, without a warning', async () => {
    warned.mockClear()
    const router = createRouter()
    expect((await router(new Request('http://localhost/capabilities'))).status).toBe(200)
    expect((await router(new Request('http://relay.example/capabilities'))).status).toBe(403)
    expect(warned).not.toHaveBeenCalled()
  })
})
