/** What the Deno adapter makes of `Deno.serve`'s information, without Deno. */
import { describe, expect, it } from 'vitest'
import { toDenoHandler } from '../../src/adapters/deno.js'

const telling = toDenoHandler((_, { remoteAddress }) => new Response(remoteAddress ?? 'unknown'))
const request = (headers: Record<string, string> = {}) => new Request('http://localhost/x', { headers })

describe('toDenoHandler', () => {
  it('passes the address of a TCP peer to the handler, and none for a Unix socket', async () => {
    const tcp = { remoteAddr: { transport: 'tcp', hostname: '192.0.2.1', port: 1 } }
    const unix = { remoteAddr: { transport: 'unix', path: '/run/x' } }
    expect(await (await telling(request(), tcp)).text()).toBe('192.0.2.1')
    expect(await (await telling(request(), unix)).text()).toBe('unknown')
    expect(await (await telling(request())).text()).toBe('unknown')
  })

  it.each([
    'a, b',
    'localhost/admin?',
    'localhost#',
    'user@host',
    '[::1',
    'x:99999',
    '',
    'a b',
    'é',
  ])('answers 400 to the Host "%s" before it reads the URL', async (host) => {
    const unread = Object.defineProperty(request(), 'headers', { value: { get: () => host } })
    Object.defineProperty(unread, 'url', {
      get: () => {
        throw new Error('the URL was read')
      },
    })
    expect((await telling(unread)).status).toBe(400)
  })

  it.each([
    'localhost',
    'localhost:8000',
    '127.0.0.1:1',
    '[::1]:8000',
    'a_b.example',
  ])('accepts the Host "%s"', async (host) => {
    expect((await telling(request({ host }))).status).toBe(200)
  })
})
