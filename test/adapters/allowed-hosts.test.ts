/** Holds the option `allowedHosts` on every adapter: a foreign name is 403 before the handler is asked. */
import express from 'express'
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { toDenoHandler } from '../../src/adapters/deno.js'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { toNodeHandler } from '../../src/adapters/node.js'
import { toProblem } from '../../src/internal/http/problem.js'
import { serve } from './server.js'
import { exchange, requestText } from './wire.js'

const LOOPBACK = { allowedHosts: ['loopback'] }

const adapters: [
  name: string,
  ask: (handler: FetchHandler, headers: (port: number) => string[]) => Promise<unknown>,
][] = [
  ['node:http', over((handler) => toNodeHandler(handler, LOOPBACK))],
  ['Express', over((handler) => express().use(toExpressMiddleware(handler, LOOPBACK)))],
  ['Hono', inProcess((handler) => new Hono().use(toHonoHandler(handler, LOOPBACK)).fetch)],
  ['Deno', inProcess((handler) => toDenoHandler(handler, LOOPBACK))],
]

function over(make: (handler: FetchHandler) => Parameters<typeof serve>[0]) {
  return async (handler: FetchHandler, headers: (port: number) => string[]) => {
    const port = await serve(make(handler))
    const answer = await exchange(port, requestText(port, 'GET /x', headers(port)))
    return [answer?.status, answer?.body]
  }
}

function inProcess(make: (handler: FetchHandler) => (request: Request) => Response | Promise<Response>) {
  return async (handler: FetchHandler, headers: (port: number) => string[]) => {
    const given = headers(80).map((text) => text.split(': ') as [string, string])
    const response = await make(handler)(new Request('http://localhost/x', { headers: given }))
    return [response.status, await response.text()]
  }
}

describe.each(adapters)('allowedHosts on %s', (_name, ask) => {
  const refusals: [string, (port: number) => string[], 'bad_host' | 'bad_origin'][] = [
    ['a foreign Host', (port) => [`Host: evil.test:${port}`], 'bad_host'],
    ['a foreign Origin', (port) => [`Host: localhost:${port}`, 'Origin: http://evil.test'], 'bad_origin'],
    ['the Origin null', (port) => [`Host: 127.0.0.1:${port}`, 'Origin: null'], 'bad_origin'],
  ]

  it.each(refusals)('answers 403 to %s without calling the handler', async (_what, headers, code) => {
    const handler = () => {
      throw new Error('asked')
    }
    expect(await ask(handler, headers)).toEqual([403, JSON.stringify(toProblem(code))])
  })

  it('accepts loopback names, and requests of its own pages', async () => {
    const handler = () => new Response('in')
    expect(await ask(handler, (port) => [`Host: localhost:${port}`])).toEqual([200, 'in'])
    const own = (port: number) => [`Host: 127.0.0.1:${port}`, `Origin: http://127.0.0.1:${port}`]
    expect(await ask(handler, own)).toEqual([200, 'in'])
  })
})

describe('an invalid list', () => {
  it('is refused at construction, and so is an unknown option', () => {
    const handler = () => new Response()
    for (const make of [toNodeHandler, toExpressMiddleware, toHonoHandler, toDenoHandler]) {
      expect(() => make(handler, { allowedHosts: [] })).toThrow(TypeError)
      expect(() => make(handler, { allowedHost: ['x'] } as never)).toThrow(TypeError)
    }
  })
})

describe('more header lines than Node shows', () => {
  it('are answered with 431, since a second Host may be among the dropped ones', async () => {
    const port = await serve(toNodeHandler(() => new Response('in'), LOOPBACK))
    const lines = Array.from({ length: 1_200 }, () => 'a:')
    const hidden = [`Host: 127.0.0.1:${port}`, ...lines, 'Host: evil.test', 'Origin: http://evil.test']
    const answer = await exchange(port, requestText(port, 'GET /x', hidden))
    expect([answer?.status, answer?.body]).toEqual([431, JSON.stringify(toProblem('too_many_headers'))])
  })
})
