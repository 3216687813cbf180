/** Holds the guard against foreign names: which `Host` and `Origin` are a service's own. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { noopAuth, resolveAdminAuth } from '../../src/internal/http/auth.js'
import { createHostGuard } from '../../src/internal/http/guard.js'

const PORT = 4780
const guard = createHostGuard(['loopback'])
const ask = (host: string, origin?: string) =>
  guard({ hosts: [host], origins: origin === undefined ? [] : [origin], port: PORT })

describe('a guard of loopback', () => {
  it.each(['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]', '127.9.9.9'])('lets %s in, and its own pages', (name) => {
    expect(ask(`${name}:${PORT}`)).toBeUndefined()
    expect(ask(`${name}:${PORT}`, `http://${name}:${PORT}`)).toBeUndefined()
    expect(ask(`${name}:${PORT}`, `http://localhost:${PORT}`)).toBeUndefined()
  })

  it.each([
    `evil.test:${PORT}`,
    `localhost.evil.test:${PORT}`,
    `localhost.:${PORT}`,
    `127.0.0.1.evil.test:${PORT}`,
    `0.0.0.0:${PORT}`,
    `[::2]:${PORT}`,
    'localhost:1',
    'localhost',
    `x@localhost:${PORT}`,
    `localhost:${PORT}, evil.test`,
    `loopback:${PORT}`,
    'loopback',
    '',
  ])('refuses the Host %j', (host) => {
    expect(ask(host)).toBe('bad_host')
  })

  it.each([
    'http://evil.test',
    `http://evil.test:${PORT}`,
    'http://localhost',
    'http://localhost:3000',
    `http://localhost:${PORT}/`,
    `ftp://localhost:${PORT}`,
    'null',
    '',
  ])('refuses the Origin %j', (origin) => {
    expect(ask(`localhost:${PORT}`, origin)).toBe('bad_origin')
  })

  it('refuses no Host, two, and a second Origin that is foreign', () => {
    const own = `localhost:${PORT}`
    expect(guard({ hosts: [], origins: [], port: PORT })).toBe('bad_host')
    expect(guard({ hosts: [own, own], origins: [], port: PORT })).toBe('bad_host')
    expect(guard({ hosts: [own], origins: [`http://${own}`, 'http://evil.test'], port: PORT })).toBe('bad_origin')
  })
})

describe('a guard of names', () => {
  it('takes a name with any port, and a name with its port', () => {
    const named = createHostGuard(['Ops.example.org', 'other.example.org:8443'])
    const has = (host: string) => named({ hosts: [host], origins: [], port: PORT })
    expect(has('ops.example.org')).toBeUndefined()
    expect(has('ops.example.org:9')).toBeUndefined()
    expect(has('other.example.org:8443')).toBeUndefined()
    expect(has('other.example.org')).toBe('bad_host')
    expect(has(`localhost:${PORT}`)).toBe('bad_host')
  })

  it.each([[[]], [['']], [['http://x']], [['a b']], ['loopback']])('refuses %j at construction', (allowed) => {
    expect(() => createHostGuard(allowed as never)).toThrow(TypeError)
  })
})

describe('what is left open on loopback without a key', () => {
  const request = (headers: Record<string, string>) => new Request('http://localhost/x', { headers })
  const auth = resolveAdminAuth({ strict: true, host: '127.0.0.1', env: {} })

  it('answers who names loopback, and a call in process', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    onTestFinished(() => warn.mockRestore())
    expect(auth.authenticate(request({}))).toEqual({ name: 'anonymous' })
    expect(auth.authenticate(request({ host: 'localhost:4780' }))).toEqual({ name: 'anonymous' })
    expect(warn).toHaveBeenCalledOnce()
  })

  it.each<Record<string, string>>([
    { host: 'evil.test:4780' },
    { host: 'localhost:4780', origin: 'http://evil.test' },
    { host: 'localhost:4780, evil.test' },
  ])('refuses %j, which has a foreign name', (headers) => {
    expect(() => auth.authenticate(request(headers))).toThrow('admin_key_required')
    expect(noopAuth().authenticate(request(headers))).toEqual({ name: 'anonymous' })
  })
})
