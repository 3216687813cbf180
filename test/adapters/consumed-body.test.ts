/** Bodies that something before the adapter has read. */
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { gzipSync } from 'node:zlib'
import express, { type Middleware } from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { toNodeHandler } from '../../src/adapters/node.js'
import { readJson } from '../../src/internal/http/body.js'
import type { ProblemError } from '../../src/internal/http/problem.js'
import { serve } from './server.js'

const BODY = '{"a":1,"b":["ü",{}]}'
const READ = { status: 200, text: BODY }
const CONSUMED = { status: 500, text: 'body_consumed' }

const answer: FetchHandler = async (request) => {
  try {
    return Response.json(await readJson(request))
  } catch (error) {
    return new Response((error as ProblemError).code, { status: 500 })
  }
}
// The adapter gives a handler with `reply` another kind of request.
const replying: FetchHandler = Object.assign(answer.bind(undefined), { reply: answer })

type Listener = (req: IncomingMessage, res: ServerResponse) => void

async function ask(listener: Listener, body: BodyInit = BODY, headers: Record<string, string> = {}) {
  const port = await serve(listener)
  const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body }
  const response = await fetch(`http://127.0.0.1:${port}/`, init)
  return { status: response.status, text: await response.text() }
}

const chunksOf = async (req: IncomingMessage) => Buffer.concat(await req.toArray())

/** A middleware that reads the stream itself, and leaves on the request what `leave` returns. */
const reading = (handler: FetchHandler, leave: (bytes: Buffer) => object): Listener => {
  const mount = toNodeHandler(handler)
  return async (req, res) => mount(Object.assign(req, leave(await chunksOf(req))), res)
}

describe.each([
  ['a Request', answer],
  ['a request made on first read', replying],
])('a body that was read before, for a handler of %s', (_, handler) => {
  const mounted = (...parsers: Middleware[]) => express().use(...parsers, toExpressMiddleware(handler))

  it.each([
    ['express.json()', () => mounted(express.json())],
    ['express.text()', () => mounted(express.text({ type: '*/*' }))],
    ['express.raw()', () => mounted(express.raw({ type: '*/*' }))],
    ['several parsers', () => mounted(express.urlencoded(), express.text(), express.json(), express.raw())],
    ['a parser of other types', () => mounted(express.urlencoded(), express.text())],
  ])('is the one that %s left', async (_, make) => {
    expect(await ask(make())).toEqual(READ)
    expect(await ask(make(), '{}')).toEqual({ ...READ, text: '{}' })
  })

  it('is the one that a parser has decompressed', async () => {
    expect(await ask(mounted(express.json()), gzipSync(BODY), { 'content-encoding': 'gzip' })).toEqual(READ)
  })

  it.each([
    ['bytes', (bytes: Buffer) => ({ body: bytes })],
    ['text', (bytes: Buffer) => ({ body: bytes.toString() })],
    ['a list', (bytes: Buffer) => ({ body: JSON.parse(`[${bytes}]`) }), `[${BODY}]`],
    ['an object without a prototype', (bytes: Buffer) => ({ body: { __proto__: null, ...JSON.parse(`${bytes}`) } })],
    ['the raw bytes, with another body', (bytes: Buffer) => ({ rawBody: bytes, body: { other: true } })],
  ])('is what a middleware left as %s', async (_, leave, text = BODY) => {
    expect(await ask(reading(handler, leave))).toEqual({ status: 200, text })
  })

  it.each([
    ['nothing', () => ({})],
    ['null', () => ({ body: null })],
    ['an empty object that is not what was sent', () => ({ body: {} })],
    ['an object that is not JSON', () => ({ body: new Map() })],
    ['JSON that cannot be written', () => ({ body: { a: 1n } })],
    ['a number', () => ({ body: 1 })],
  ])('is body_consumed where %s was left', async (_, leave) => {
    expect(await ask(reading(handler, leave))).toEqual(CONSUMED)
  })

  it('is not JSON where a form was parsed', async () => {
    const text: FetchHandler = async (request) => new Response(await request.text().catch((error) => error.message))
    const app = express().use(express.urlencoded(), toExpressMiddleware(text))
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await ask(app, 'a=1', form)).text).toMatch(/was read before/)
  })

  it('is body_consumed where a part was read', async () => {
    const mount = toNodeHandler(handler)
    const listener: Listener = async (req, res) => {
      await once(req, 'readable')
      req.read(3)
      mount(req, res)
    }
    expect(await ask(listener)).toEqual(CONSUMED)
  })

  it('is read where nothing was read, and empty where nothing was sent', async () => {
    expect(await ask(toNodeHandler(handler))).toEqual(READ)
    expect(
      await ask(
        reading(handler, () => ({})),
        '',
      ),
    ).toEqual({ status: 500, text: 'invalid_json' })
  })

  it('is what Koa or Fastify parsed, once it is on the Node request', async () => {
    const mount = toNodeHandler(handler)
    const koa = new Koa().use(async (ctx) => {
      ctx.respond = false
      mount(Object.assign(ctx.req, { body: JSON.parse(`${await chunksOf(ctx.req)}`) }), ctx.res)
    })
    expect(await ask(koa.callback())).toEqual(READ)
    const fastify = Fastify()
    fastify.post('/', (request, reply) => {
      reply.hijack()
      mount(Object.assign(request.raw, { body: request.body }), reply.raw)
    })
    await fastify.ready()
    expect(await ask((req, res) => fastify.routing(req, res))).toEqual(READ)
  })
})

describe('a Request whose body was read before', () => {
  const post = () =>
    new Request('http://localhost/', { method: 'POST', headers: { 'content-type': 'application/json' }, body: BODY })

  it('is body_consumed, whether it was read whole, in part or is being read', async () => {
    const whole = post()
    await whole.text()
    const part = post()
    const reader = part.body?.getReader()
    await reader?.read()
    reader?.releaseLock()
    const locked = post()
    locked.body?.getReader()
    for (const request of [whole, part, locked])
      await expect(readJson(request)).rejects.toMatchObject({
        code: 'body_consumed',
        cause: { message: expect.stringMatching(/was read before.*Mount/) },
      })
  })

  it.each(['json', 'text', 'arrayBuffer'] as const)('is what Hono keeps after c.req.%s()', async (method) => {
    const app = new Hono()
    app.use(async (c, next) => {
      await c.req[method]()
      await next()
    })
    app.use(toHonoHandler(answer))
    const response = await app.fetch(post())
    expect([response.status, await response.text()]).toEqual([200, BODY])
  })

  it('is body_consumed in Hono where the raw request was read', async () => {
    const app = new Hono()
    app.use(async (c, next) => {
      await c.req.raw.text()
      await next()
    })
    app.use(toHonoHandler(answer))
    expect(await (await app.fetch(post())).text()).toBe('body_consumed')
  })
})
