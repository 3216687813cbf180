import { describe, expect, it, onTestFinished, vi } from 'vitest'
import {
  type AdminAuth,
  AdminKeyRequiredError,
  apiKeyAuth,
  bearerAuth,
  noopAuth,
  resolveAdminAuth,
} from '../../src/internal/http/auth.js'
import { isLoopbackHost } from '../../src/internal/http/guard.js'

/** Whether `auth` accepts a call in process. */
const accepts = async (auth: AdminAuth, key?: string) =>
  (await auth.authenticate(
    new Request('http://localhost/', { headers: key === undefined ? {} : { 'x-admin-key': key } }),
  )) !== null

const LOCAL = { remoteAddress: '127.0.0.1' }

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

const KEYS = { ada: 'key-of-ada', ci: ['old', 'new'] }

describe('named keys', () => {
  const nameOf = async (auth: AdminAuth, headers: Record<string, string>) =>
    (await auth.authenticate(new Request('http://localhost/', { headers })))?.name
  const by: [what: string, of: (keys: never) => AdminAuth, headerOf: (key: string) => Record<string, string>][] = [
    ['apiKeyAuth', apiKeyAuth, (key) => ({ 'x-admin-key': key })],
    ['bearerAuth', bearerAuth, (key) => ({ authorization: `Bearer ${key}` })],
  ]

  it.each(by)('of %s each name their principal', async (_what, make, headerOf) => {
    const listed = [
      { name: 'ada', key: 'key-of-ada' },
      { name: 'ci', key: 'old' },
      { name: 'ci', key: 'new' },
    ]
    for (const keys of [KEYS, listed]) {
      const auth = make(keys as never)
      const names = ['key-of-ada', 'old', 'new', 'none', 'ada', 'ci'].map((key) => nameOf(auth, headerOf(key)))
      expect(await Promise.all(names)).toEqual(['ada', 'ci', 'ci', undefined, undefined, undefined])
    }
    expect(await nameOf(make('one' as never), headerOf('one'))).toBe('admin')
  })

  it.each(by)('of %s are refused when a name or key is missing or ambiguous', (_what, make) => {
    for (const bad of [
      {},
      [],
      { ci: [] },
      { ci: undefined },
      { ci: ['new', ''] },
      { '': 'key' },
      { 'a\nb': 'key' },
      { ['n'.repeat(257)]: 'key' },
      { ada: 'same', ci: ['other', 'same'] },
      [{ name: 'ada' }],
      [{ key: 'key' }],
      ['key'],
      [null],
      { ada: { key: 'key' } },
      { ada: 'kéy' },
      7,
      null,
    ])
      expect(() => make(bad as never)).toThrow(TypeError)
    expect(() => make({ ci: ['same', 'same'] } as never)).not.toThrow()
  })

  it.each(by)('of %s are in no message', (_what, make) => {
    for (const bad of [{ ada: 'planted-s3cr3t\n' }, { ada: 'planted-s3cr3t', ci: 'planted-s3cr3t' }]) {
      const message = (() => {
        try {
          return make(bad as never)
        } catch (error) {
          return String((error as Error).stack)
        }
      })()
      expect(message).toContain('ada')
      expect(message).not.toContain('s3cr3t')
    }
  })
})

describe('bearerAuth', () => {
  const ask = async (authorization: string | [string, string]) => {
    const headers = [authorization].flat().map((value): [string, string] => ['authorization', value])
    return (await bearerAuth('k3y').authenticate(new Request('http://localhost/', { headers })))?.name
  }
  it.each(['Bearer k3y', 'bearer k3y', 'BEARER   k3y', ' Bearer k3y '])('accepts %j', async (header) => {
    expect(await ask(header)).toBe('admin')
  })
  it.each([
    'k3y',
    'Bearer',
    'Bearer k3',
    'Bearer k3yy',
    'Bearer k3y, Bearer k3y',
    'Basic k3y',
    'Bearerk3y',
    'Bearer\tk3y',
    'x Bearer k3y',
  ])('refuses %j', async (header) => {
    expect(await ask(header)).toBeUndefined()
  })
  it('refuses two of them, and a key in another place', async () => {
    expect(await ask(['Bearer k3y', 'Bearer k3y'])).toBeUndefined()
    const headers = { 'x-admin-key': 'k3y', cookie: 'authorization=Bearer k3y' }
    expect(await bearerAuth('k3y').authenticate(new Request('http://localhost/?key=k3y', { headers }))).toBeNull()
  })
  it('takes no key that holds a space', () => {
    expect(() => bearerAuth('a b')).toThrow(TypeError)
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
  it('says that host is missing where a strict bind is not told, and not where it is', () => {
    const missing = /pass the option host to state that the bind is loopback/
    expect(() => resolveAdminAuth({ strict: true, env: {} })).toThrow(missing)
    expect(() => resolveAdminAuth({ strict: true, host: '0.0.0.0', env: {} })).toThrow(
      /pass one or set SERVICE_ADMIN_KEY$/,
    )
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

describe('resolveAdminAuth without a key', () => {
  it.each([
    [{}, LOCAL, { 'x-forwarded-for': '192.0.2.7' }],
    [{ host: '127.0.0.1' }, { remoteAddress: '192.0.2.7' }, {}],
    [{ strict: false, host: '0.0.0.0' }, { remoteAddress: '192.0.2.7' }, { host: 'relay.example' }],
  ])('accepts every request with %j, and warns once of those from elsewhere', (options, source, headers) => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    onTestFinished(() => warn.mockRestore())
    const { authenticate } = resolveAdminAuth({ ...options, env: {} })
    const ask = (from: object, given: HeadersInit) =>
      authenticate(new Request('http://localhost/', { headers: given }), from as typeof LOCAL)
    expect(ask(LOCAL, {})).toEqual({ name: 'anonymous' })
    expect(warn).not.toHaveBeenCalled()
    for (let i = 0; i < 2; i++) expect(ask(source, headers)).toEqual({ name: 'anonymous' })
    expect(warn.mock.calls).toEqual([[expect.stringContaining('SERVICE_ADMIN_KEY')]])
  })

  it('accepts requests of this machine only under strict', () => {
    const { authenticate } = resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} })
    const request = () => new Request('http://localhost/', { headers: { host: 'localhost' } })
    expect(authenticate(request(), LOCAL)).toEqual({ name: 'anonymous' })
    expect(() => authenticate(request(), { remoteAddress: '192.0.2.7' })).toThrow('admin_key_required')
  })

  it.each([
    ['forwarded', 'for=127.0.0.1'],
    ['x-forwarded-for', '127.0.0.1'],
    ['X-Forwarded-Proto', 'https'],
    ['x-real-ip', '127.0.0.1'],
    ['true-client-ip', '127.0.0.1'],
    ['cf-connecting-ip', '127.0.0.1'],
    ['via', '1.1 proxy'],
    ['x-forwarded-for', ''],
    ['host', 'evil.example'],
    ['host', ''],
    ['origin', 'https://evil.example'],
    ['origin', 'null'],
  ])('refuses the header %s: %j', (name, value) => {
    const { authenticate } = resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} })
    const request = new Request('http://localhost/', { headers: { host: 'localhost', [name]: value } })
    expect(() => authenticate(request, LOCAL)).toThrow('admin_key_required')
  })

  it('lets a key open what a proxy forwards', async () => {
    const auth = resolveAdminAuth({ key: 'key', env: {} })
    const headers = { 'x-admin-key': 'key', 'x-forwarded-for': '192.0.2.7', host: 'relay.example' }
    const request = new Request('http://localhost/', { headers })
    expect(await auth.authenticate(request, { remoteAddress: '192.0.2.7' })).toEqual({ name: 'admin' })
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
