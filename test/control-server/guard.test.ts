/** Holds the guard of the control server: every check, and that each comes before the next. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createRequestGuard } from '../../src/control-server/server.js'
import { isLoopbackAddress } from '../../src/internal/http/guard.js'

const TOKEN = 'correct-horse-battery'
const PORT = 4321
const guard = createRequestGuard(TOKEN)

/** What the guard says to a caller that differs from a good one as given. */
function enter(headers: [string, string][] = [], remoteAddress: string | undefined = '127.0.0.1', port = PORT) {
  const good: [string, string][] = [
    ['Host', `127.0.0.1:${port}`],
    ['Authorization', `Bearer ${TOKEN}`],
  ]
  const named = new Set(headers.map(([name]) => name.toLowerCase()))
  const sent = [...good.filter(([name]) => !named.has(name.toLowerCase())), ...headers.filter(([, value]) => value)]
  return guard({ remoteAddress, rawHeaders: sent.flat() }, port)
}

describe('the guard', () => {
  it('accepts a local program with the token', () => {
    expect(enter()).toBeUndefined()
    expect(enter([['Authorization', `bearer ${TOKEN}`]])).toBeUndefined()
  })

  it.each([
    '127.0.0.1',
    '127.9.9.9',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:0:0:1',
  ])('accepts %s as this machine', (address) => {
    expect(isLoopbackAddress(address)).toBe(true)
    expect(enter([], address)).toBeUndefined()
  })

  it.each([
    '::ffff:8.8.8.8',
    '10.0.0.1',
    '',
    '128.0.0.1',
    '::',
    '0.0.0.0',
    '::2',
    'fe80::1%lo',
    'localhost',
    '127.0.0.1 ',
  ])('refuses the remote address %j', (address) => {
    expect(isLoopbackAddress(address)).toBe(false)
    expect(enter([], address)).toBe('not_loopback')
  })

  it('refuses a socket without a remote address', () => {
    expect(guard({ remoteAddress: undefined, rawHeaders: [] }, PORT)).toBe('not_loopback')
  })

  it.each([
    'X-Forwarded-For',
    'x-forwarded-host',
    'X-Forwarded-Proto',
    'Forwarded',
    'X-Real-IP',
    'X-Client-IP',
    'True-Client-IP',
    'CF-Connecting-IP',
    'X-Original-Forwarded-For',
    'Via',
  ])('refuses proxied requests, by %s', (name) => {
    expect(enter([[name, '127.0.0.1']])).toBe('forwarded_request')
  })

  it.each(['localhost', 'LOCALHOST', '127.0.0.1', '127.9.9.9', '[::1]'])('accepts the name %s', (name) => {
    expect(enter([['Host', `${name}:${PORT}`]])).toBeUndefined()
    expect(enter([['Host', name]], '::1', 80)).toBeUndefined()
  })

  it.each([
    `evil.test:${PORT}`,
    `localhost.evil.test:${PORT}`,
    `localhost.:${PORT}`,
    `127.0.0.1.evil.test:${PORT}`,
    `[::2]:${PORT}`,
    `::1:${PORT}`,
    `[::1:${PORT}`,
    `0.0.0.0:${PORT}`,
    `user@localhost:${PORT}`,
    `localhost:${PORT}/`,
    `localhost:0${PORT}`,
    'localhost:4320',
    'localhost',
    'localhost:',
    `:${PORT}`,
  ])('refuses the Host %j', (host) => {
    expect(enter([['Host', host]])).toBe('bad_host')
  })

  it('refuses no Host, an empty one, and two', () => {
    const good = `localhost:${PORT}`
    expect(guard({ remoteAddress: '::1', rawHeaders: ['Authorization', `Bearer ${TOKEN}`] }, PORT)).toBe('bad_host')
    expect(guard({ remoteAddress: '::1', rawHeaders: ['Host', ''] }, PORT)).toBe('bad_host')
    expect(
      enter([
        ['Host', good],
        ['host', good],
      ]),
    ).toBe('bad_host')
  })

  it.each([
    'https://evil.test',
    `http://127.0.0.1:${PORT}`,
    'null',
  ])('refuses the Origin %s with a valid token', (origin) => {
    expect(enter([['Origin', origin]])).toBe('bad_origin')
  })

  it('refuses an empty Origin', () => {
    const rawHeaders = ['Host', `localhost:${PORT}`, 'Authorization', `Bearer ${TOKEN}`, 'Origin', '']
    expect(guard({ remoteAddress: '::1', rawHeaders }, PORT)).toBe('bad_origin')
  })

  it.each([
    ['cross-site', 'bad_origin'],
    ['same-site', 'bad_origin'],
    ['none, cross-site', 'bad_origin'],
    ['same-origin', undefined],
    ['none', undefined],
  ])('answers Sec-Fetch-Site: %s with %s', (site, expected) => {
    expect(enter([['Sec-Fetch-Site', site]])).toBe(expected)
  })

  it('checks every Sec-Fetch-Site header', () => {
    const sites = (...values: string[]) => enter(values.map((site): [string, string] => ['Sec-Fetch-Site', site]))
    expect(sites('none', 'cross-site')).toBe('bad_origin')
    expect(sites('same-origin', 'none')).toBeUndefined()
  })

  it.each([
    `Bearer ${TOKEN}x`,
    `Bearer x${TOKEN}`,
    `Bearer ${TOKEN.slice(0, -1)}`,
    `Bearer ${TOKEN.slice(0, -1)}Y`,
    `Bearer ${TOKEN.toUpperCase()}`,
    'Bearer ',
    'Bearer',
    TOKEN,
    `Basic ${TOKEN}`,
    `Bearer  ${TOKEN}`,
    `Bearer ${TOKEN} `,
    `Bearer ${'x'.repeat(65_536)}`,
  ])('refuses the credentials %j', (authorization) => {
    expect(enter([['Authorization', authorization]])).toBe('unauthenticated')
  })

  it('refuses no credentials and two', () => {
    expect(enter([['Authorization', '']])).toBe('unauthenticated')
    const twice: [string, string][] = [
      ['Authorization', `Bearer ${TOKEN}`],
      ['authorization', `Bearer ${TOKEN}`],
    ]
    expect(enter(twice)).toBe('unauthenticated')
  })

  it.each<[string, string[]]>([
    ['the token', [`Bearer ${TOKEN}`]],
    ['a wrong token', ['Bearer wrong-horse-battery']],
    ['a malformed header', ['Basic abc']],
    ['an empty header', ['']],
    ['no header', []],
    ['two headers', [`Bearer ${TOKEN}`, `Bearer ${TOKEN}`]],
  ])('makes one digest and one constant-time comparison for %s', (_what, sent) => {
    const spies = [vi.spyOn(crypto, 'createHash'), vi.spyOn(crypto, 'timingSafeEqual')]
    // Modules that are loaded already see the spies too.
    syncBuiltinESMExports()
    onTestFinished(() => {
      for (const spy of spies) spy.mockRestore()
      syncBuiltinESMExports()
    })
    const credentials = sent.flatMap((value) => ['Authorization', value])
    const rawHeaders = ['Host', `127.0.0.1:${PORT}`, ...credentials]
    const isRight = sent.length === 1 && sent[0] === `Bearer ${TOKEN}`
    expect(guard({ remoteAddress: '127.0.0.1', rawHeaders }, PORT)).toBe(isRight ? undefined : 'unauthenticated')
    for (const spy of spies) expect(spy).toHaveBeenCalledTimes(1)
  })

  it('reports the first check that fails', () => {
    const all: [string, string][] = [
      ['X-Forwarded-For', '8.8.8.8'],
      ['Host', 'evil.test'],
      ['Origin', 'https://evil.test'],
      ['Authorization', 'Bearer wrong'],
    ]
    const order = ['forwarded_request', 'bad_host', 'bad_origin', 'unauthenticated']
    expect(enter(all, '8.8.8.8')).toBe('not_loopback')
    for (const [first, code] of order.entries()) expect(enter(all.slice(first))).toBe(code)
  })
})
