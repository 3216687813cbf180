/** What of the Hono adapter only Hono can show: sub-applications, routes, `mount()`, and its not-found. */
import { Hono } from 'hono'
import { describe, expect, it } from 'vitest'
import { toHonoHandler } from '../../src/adapters/hono.js'
import { diagnostics, KEY } from './diagnostics.js'

const handler = toHonoHandler(diagnostics)
const ask = (app: Hono, path: string, init: RequestInit = {}) =>
  app.fetch(new Request(`http://localhost${path}`, { headers: { 'x-admin-key': KEY }, ...init }))

describe('toHonoHandler', () => {
  it.each([
    ['as a middleware', () => new Hono().use(handler)],
    ['as a middleware of its prefix', () => new Hono().use('/admin/*', handler)],
    ['as a route', () => new Hono().all('/admin/*', handler)],
    ['in a sub-application', () => new Hono().route('/admin', new Hono().all('/*', handler))],
    ['in an application with a base path', () => new Hono().basePath('/admin').all('/*', handler)],
    [
      'by mount(), which keeps the path when asked to',
      () => new Hono().mount('/admin', diagnostics, { replaceRequest: false }),
    ],
  ])('sees the whole public path %s', async (_, make) => {
    expect((await ask(make(), '/admin/capabilities')).status).toBe(200)
    expect((await ask(make(), '/admin/users/a%2Fb/summary')).status).toBe(404)
    expect((await ask(make(), '/admin')).status).toBe(200)
    expect((await ask(make(), '/admin/capabilities', { method: 'DELETE' })).status).toBe(405)
  })

  it('passes requests the router does not own to the next route', async () => {
    const app = new Hono().use(handler).get('/administrator', (c) => c.text('host'))
    expect(await (await ask(app, '/administrator')).text()).toBe('host')
    expect(await (await ask(app, '/nowhere')).text()).toBe('404 Not Found')
  })

  it('answers with the application’s not-found without a next handler', async () => {
    const response = await handler({
      req: { raw: new Request('http://localhost/elsewhere') },
      env: undefined,
      notFound: () => new Response('nothing here', { status: 404 }),
    })
    expect(response?.status).toBe(404)
    expect(await response?.text()).toBe('nothing here')
  })

  it('gives HEAD no body and keeps the length', async () => {
    const app = new Hono().use(handler)
    const [get, head] = [
      await ask(app, '/admin/capabilities'),
      await ask(app, '/admin/capabilities', { method: 'HEAD' }),
    ]
    expect(head.headers.get('content-length')).toBe(get.headers.get('content-length'))
    expect(await head.text()).toBe('')
  })

  it('passes the remote address to the handler when one of our adapters serves the application', async () => {
    const app = new Hono().use(toHonoHandler((_, { remoteAddress }) => new Response(remoteAddress ?? 'unknown')))
    const request = () => new Request('http://localhost/')
    expect(await (await app.fetch(request(), { remoteAddress: '192.0.2.1' })).text()).toBe('192.0.2.1')
    expect(await (await app.fetch(request())).text()).toBe('unknown')
  })

  it('returns 400 for an invalid Host before the handler is called', async () => {
    const app = new Hono().use(toHonoHandler(() => new Response('reached')))
    const response = await app.fetch(new Request('http://localhost/', { headers: { host: 'localhost/x?' } }))
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'bad_request' })
  })
})
