import { describe, expect, it } from 'vitest'
import { type AdminAuth, AdminKeyRequiredError, apiKeyAuth, noopAuth, resolveAdminAuth } from '../../src/http/auth.js'
import { isLoopbackHost } from '../../src/http/loopback.js'

const accepts = async (auth: AdminAuth, key?: string) =>
  (await auth.authenticate(
    new Request('http://localhost/', { headers: key === undefined ? {} : { 'x-admin-key': key } }),
  )) !== null

describe('apiKeyAuth', () => {
  it.each([
    '',
    ' ',
    '\t',
    ' key',
    'key ',
    'a\nb',
    'a\r\nb',
    'a\0b',
    'kéy',
    '\u{1F511}',
    'a\tb',
  ])('refuses the key %j at construction', (key) => {
    expect(() => apiKeyAuth(key)).toThrow(TypeError)
  })
  it.each([undefined, null, 7, {}, ['key']])('refuses %j, which is no text', (key) => {
    expect(() => apiKeyAuth(key as string)).toThrow(TypeError)
  })
  it.each(['k', 'a b', 'a, b', '~!@#$%^&*()', 'x'.repeat(4_096)])('accepts exactly its key', async (key) => {
    const auth = apiKeyAuth(key)
    expect(await accepts(auth, key)).toBe(true)
    for (const other of [`${key}x`, key.slice(1), `y${key.slice(1)}`, undefined])
      expect(await accepts(auth, other)).toBe(false)
  })
})

describe('resolveAdminAuth', () => {
  const env = (value?: string) => ({ SERVICE_ADMIN_KEY: value })

  it('prefers the explicit key and then accepts no other', async () => {
    const auth = resolveAdminAuth({ key: 'explicit', env: env('environment') })
    expect([await accepts(auth, 'explicit'), await accepts(auth, 'environment'), await accepts(auth)]).toEqual([
      true,
      false,
      false,
    ])
  })
  it('takes the key of the environment', async () => {
    const auth = resolveAdminAuth({ env: env('environment') })
    expect([await accepts(auth, 'environment'), await accepts(auth)]).toEqual([true, false])
  })
  it.each([undefined, '', '  '])('goes without a key when the environment has %j', async (value) => {
    expect(await accepts(resolveAdminAuth({ env: env(value) }))).toBe(true)
  })
  it('reads the environment of the process by default', async () => {
    process.env.SERVICE_ADMIN_KEY = 'of the process'
    try {
      expect(await accepts(resolveAdminAuth({ strict: true, host: '0.0.0.0' }), 'of the process')).toBe(true)
    } finally {
      delete process.env.SERVICE_ADMIN_KEY
    }
  })
  it.each(['', '  '])('takes the explicit blank key %j for an error, never for none', (key) => {
    expect(() => resolveAdminAuth({ key, env: env('environment') })).toThrow(TypeError)
  })
  it.each([
    '0.0.0.0',
    '::',
    '',
    '192.168.1.4',
    'example.test',
    '127.0.0.1.evil.test',
    '127.1',
    '::ffff:8.8.8.8',
    undefined,
  ])('refuses a strict bind of %j without a key', (host) => {
    for (const value of [undefined, '', ' '])
      expect(() => resolveAdminAuth({ strict: true, host, env: env(value) })).toThrow(AdminKeyRequiredError)
    expect(() => resolveAdminAuth({ strict: true, host, key: 'key', env: {} })).not.toThrow()
    expect(() => resolveAdminAuth({ strict: false, host, env: {} })).not.toThrow()
  })
  it.each([
    '127.0.0.1',
    '127.9.9.9',
    '::1',
    '[::1]',
    'localhost',
    'LOCALHOST',
  ])('lets a strict bind of %s go without a key', async (host) => {
    expect(await accepts(resolveAdminAuth({ strict: true, host, env: {} }))).toBe(true)
  })
})

it('noopAuth accepts every request', async () => {
  expect(await accepts(noopAuth())).toBe(true)
})

it.each([
  '127.0.0.256',
  '127.0.0',
  '1127.0.0.1',
  '127.0.0.01',
  'localhost.evil.test',
  '::2',
  '10.0.0.1',
])('%s is not loopback', (host) => {
  expect(isLoopbackHost(host)).toBe(false)
})
