/**
 * That no secret is learnt from how long its comparison takes. Time itself is no witness on a machine that others use, so
 * this looks at what takes the time: how much of a secret is looked at, wherever the first difference stands.
 */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createRequestGuard } from '../../src/control-server/server.js'
import { apiKeyAuth } from '../../src/internal/http/auth.js'

const SECRET = 'a-secret-of-thirty-two-characters'
const WRONG = [`x${SECRET.slice(1)}`, `${SECRET.slice(0, -1)}x`, SECRET.slice(0, -1), `${SECRET}x`, 'x']

describe('the comparison of a secret', () => {
  afterEach(() => {
    vi.restoreAllMocks()
    syncBuiltinESMExports()
  })

  it.each(WRONG)('looks at every character of the administrator key, given %s', (given) => {
    const auth = apiKeyAuth(SECRET)
    const request = new Request('http://localhost/', { headers: { 'x-admin-key': given } })
    const looks = vi.spyOn(String.prototype, 'charCodeAt')
    const answer = auth.authenticate(request)
    const looked = looks.mock.contexts.filter((text) => String(text) === SECRET).length
    looks.mockRestore()
    expect(answer).toBeNull()
    expect(looked).toBe(SECRET.length)
  })

  it.each([1, 2, 3, 4])('looks at every character of every key, given number %i of four', (right) => {
    const keys = [1, 2, 3, 4].map((i) => SECRET + i)
    const [first, second, third, fourth] = keys as [string, string, string, string]
    const given = SECRET + right
    const auth = apiKeyAuth({ ada: first, ci: [second, third], olga: fourth })
    const looks = vi.spyOn(String.prototype, 'charCodeAt')
    const answer = auth.authenticate({ headers: { get: () => given } } as unknown as Request)
    const looked = looks.mock.contexts.map(String)
    looks.mockRestore()
    expect(answer).toEqual({ name: ['ada', 'ci', 'ci', 'olga'][right - 1] })
    // Given and right are the same text, looked at as either.
    for (const key of keys)
      expect(looked.filter((text) => text === key)).toHaveLength(key.length * (key === given ? keys.length + 1 : 1))
  })

  it.each(WRONG)('of the control token is that of two digests, given %s', (given) => {
    const compare = vi.spyOn(crypto, 'timingSafeEqual')
    syncBuiltinESMExports()
    const rawHeaders = ['Host', 'localhost:4780', 'Authorization', `Bearer ${given}`]
    expect(createRequestGuard(SECRET)({ remoteAddress: '127.0.0.1', rawHeaders }, 4780)).toBe('unauthenticated')
    expect(compare.mock.calls.map(([one, other]) => [one.byteLength, other.byteLength])).toEqual([[32, 32]])
  })
})
