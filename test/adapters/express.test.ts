/** What of the Express adapter only Express can show: sub-applications, sub-paths, and bodies that a parser has read. */
import express, { type Application } from 'express'
import { describe, expect, it } from 'vitest'
import { toExpressMiddleware } from '../../src/adapters/express.js'
import type { FetchHandler } from '../../src/adapters/handler.js'
import { diagnostics, KEY } from './diagnostics.js'
import { serve } from './server.js'
import { exchange, requestText } from './wire.js'

const WITH_KEY = [`X-Admin-Key: ${KEY}`]
const mount = toExpressMiddleware(diagnostics)

const statusOf = async (app: Application, line: string) => {
  const port = await serve(app)
  return (await exchange(port, requestText(port, line, WITH_KEY)))?.status
}

describe('toExpressMiddleware', () => {
  it.each([
    ['at the root', () => express().use(mount)],
    ['at its own prefix', () => express().use('/admin', mount)],
    ['in a router', () => express().use('/admin', express.Router().use(mount))],
    ['in a sub-application', () => express().use('/admin', express().use(mount))],
    ['twice', () => express().use('/admin', mount).use(mount)],
  ])('sees the whole public path when mounted %s', async (_, make) => {
    expect(await statusOf(make(), 'GET /admin/capabilities')).toBe(200)
    expect(await statusOf(make(), 'GET /admin/users/alice/summary?')).toBe(200)
    expect(await statusOf(make(), 'GET /admin')).toBe(200)
  })

  it.each([
    '/%61dmin/capabilities',
    '/public/../admin/capabilities',
    '/./admin/capabilities',
    '/public/%2e%2E/admin/capabilities',
    '//admin/capabilities',
    '/admin//capabilities',
    '/admin/%63apabilities',
  ])('passes %s on, so that no response bypasses a login guard before the prefix', async (path) => {
    const app = express()
      .use('/admin', (_req, res) => void res.send('log in first'))
      .use(mount)
      .use((_req, res) => void res.send('host'))
    const port = await serve(app)
    const answer = await exchange(port, requestText(port, `GET ${path}`, WITH_KEY))
    expect(['host', 'log in first']).toContain(answer?.body)
  })

  it.each([
    '/administrator/capabilities',
    '/admin-public/x',
    '/ADMIN/capabilities',
    '/',
  ])('passes %s on', async (path) => {
    const app = express()
      .use(mount)
      .use((_req, res) => void res.send('host'))
    const port = await serve(app)
    expect(await exchange(port, requestText(port, `GET ${path}`))).toMatchObject({ status: 200, body: 'host' })
  })

  it.each([
    '/admin//capabilities',
    '//admin/capabilities',
    '//evil.test/admin/capabilities',
    '/\\evil.test/x',
  ])('never answers %s with another route’s answer', async (path) => {
    const status = await statusOf(express().use('/admin', mount).use(mount), `GET ${path}`)
    expect([400, 404]).toContain(status)
  })

  it('answers requests whether or not express.json() has read their body', async () => {
    const reading: FetchHandler = async (request) => new Response(`[${await request.text()}]`)
    const app = express().use(express.json()).use('/admin', mount).use(toExpressMiddleware(reading))
    const port = await serve(app)
    const body = '{"a":1}'
    const json = ['Content-Type: application/json', `Content-Length: ${body.length}`]
    const ask = (line: string, headers: string[]) => exchange(port, requestText(port, line, headers, body))
    expect((await ask('GET /admin/capabilities', [...WITH_KEY, ...json]))?.status).toBe(200)
    expect((await ask('POST /admin/capabilities', [...WITH_KEY, ...json]))?.status).toBe(405)
    expect((await ask('POST /read', json))?.body).toBe(`[${body}]`)
    expect((await ask('POST /read', ['Content-Type: text/x', `Content-Length: ${body.length}`]))?.body).toBe(
      `[${body}]`,
    )
  })

  it('reports no handler errors to Express', async () => {
    let told = false
    const app = express()
      .use(toExpressMiddleware(() => Promise.reject(new Error('planted-secret')), { onError: null }))
      .use((_req, _res, next) => {
        told = true
        next()
      })
    const port = await serve(app)
    expect(await exchange(port, requestText(port, 'GET /'))).toMatchObject({
      status: 500,
      body: 'Internal Server Error\n',
    })
    expect(told).toBe(false)
  })
})
