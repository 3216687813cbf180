/** The Node adapter over TLS, on HTTP/1.1 and HTTP/2, alone and in frameworks. */
import { readFileSync, rmSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createSecureServer } from 'node:http2'
import { createServer, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { type FetchHandler, toNodeHandler } from '../../src/adapters/node.js'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { apiKeyAuth } from '../../src/internal/http/auth.js'
import { isOpensslMissing, selfSigned } from './self-signed.js'

let tls: { key: Buffer; cert: Buffer }
beforeAll(() => {
  if (isOpensslMissing) return
  const { folder, key, cert } = selfSigned()
  tls = { key: readFileSync(key), cert: readFileSync(cert) }
  rmSync(folder, { recursive: true })
})

const KEY = 'the-key-over-tls'
const router = createDiagnosticsRouter({ inspectors: {}, auth: apiKeyAuth(KEY), prefix: '/ops' })
const mount = toNodeHandler(router, { allowedHosts: ['loopback'] })
/** Returns the URL that it was given. */
const echo: FetchHandler = ({ url }) => new Response(url)

type Listener = (req: IncomingMessage, res: ServerResponse) => void

const hosts: Record<string, () => Listener> = {
  node: () => (req, res) => mount(req, res, () => toNodeHandler(echo)(req, res)),
  koa() {
    const app = new Koa()
    app.use((ctx, next) => {
      ctx.respond = false
      mount(ctx.req, ctx.res, () => {
        ctx.respond = true
      })
      return ctx.respond ? next() : undefined
    })
    app.use((ctx) => {
      ctx.body = ctx.req.url
    })
    return app.callback()
  },
  hono: () => toNodeHandler(new Hono().use(toHonoHandler(router)).all('*', (c) => c.text(c.req.url)).fetch) as Listener,
  express() {
    const app = express().use(toExpressMiddleware(router))
    return app.use((req, res) => void res.send(req.originalUrl))
  },
}

interface Answer {
  status: number | undefined
  text: string
}
type Ask = (port: number, path: string, key?: string) => Promise<Answer>

const textOf = async (stream: AsyncIterable<unknown>) => {
  let text = ''
  for await (const chunk of stream) text += chunk
  return text
}

const overHttp1: Ask = async (port, path, key = KEY) => {
  const options = { port, path, host: 'localhost', headers: { 'x-admin-key': key }, rejectUnauthorized: false }
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    request(options, resolve).on('error', reject).end(),
  )
  return { status: answer.statusCode, text: await textOf(answer) }
}

const overHttp2: Ask = async (port, path, key = KEY) => {
  const session = connect(`https://localhost:${port}`, { rejectUnauthorized: false })
  try {
    const stream = session.request({ ':path': path, 'x-admin-key': key })
    const headers = await new Promise<{ ':status'?: number }>((resolve, reject) => {
      stream.on('response', resolve).on('error', reject)
      session.on('error', reject)
    })
    return { status: headers[':status'], text: await textOf(stream) }
  } finally {
    session.destroy()
  }
}

interface Listening {
  listen(port: number, host: string, then: () => void): unknown
  address(): unknown
  close(): unknown
}
async function listen(server: Listening): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, 'localhost', resolve))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

async function isServed(port: number, ask: Ask): Promise<void> {
  expect((await ask(port, '/ops/capabilities')).status).toBe(200)
  expect((await ask(port, '/ops/capabilities', 'another')).status).toBe(403)
  expect(await ask(port, '/own?a=1')).toEqual({
    status: 200,
    text: expect.stringMatching(/^(https:\/\/localhost:\d+)?\/own\?a=1$/),
  })
}

describe.skipIf(isOpensslMissing)('over TLS (needs openssl)', () => {
  it.each(Object.keys(hosts))('serves the router on https.createServer in %s', async (name) => {
    const port = await listen(createServer({ ...tls }, hosts[name]?.()))
    await isServed(port, overHttp1)
  })

  // Express puts its own prototypes of HTTP/1 on every request, so HTTP/2 never works in it.
  it.each(['node', 'koa', 'hono'])('serves the router on http2.createSecureServer in %s', async (name) => {
    const port = await listen(createSecureServer({ ...tls, allowHTTP1: true }, hosts[name]?.() as never))
    await isServed(port, overHttp2)
    await isServed(port, overHttp1)
  })

  it('serves the router in Fastify with http2 and allowHTTP1', async () => {
    const app = Fastify({ http2: true, https: { ...tls, allowHTTP1: true } })
    app.addHook('onRequest', (request, reply, done) => {
      let isOurs = true
      mount(request.raw, reply.raw, () => {
        isOurs = false
      })
      if (isOurs) reply.hijack()
      else done()
    })
    app.get('/own', async ({ url }) => url)
    onTestFinished(() => app.close())
    const port = Number(new URL(await app.listen({ port: 0, host: 'localhost' })).port)
    await isServed(port, overHttp2)
    await isServed(port, overHttp1)
  })

  it('serves the router on HTTP/2 before an Express application, which gets HTTP/1.1', async () => {
    const app = hosts.express?.() as Listener
    const listener = (req: never, res: never) => mount(req, res, () => app(req, res))
    const port = await listen(createSecureServer({ ...tls, allowHTTP1: true }, listener as never))
    await isServed(port, overHttp1)
    expect((await overHttp2(port, '/ops/capabilities')).status).toBe(200)
  })
})
