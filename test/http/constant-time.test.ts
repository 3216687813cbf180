/**
 * That no secret is learnt from how long its comparison takes. Time itself is no witness on a machine that others use, so
 * this looks at what takes the time: how much of a secret is looked at, wherever the first difference stands.
 */
import * as crypto from 'node:crypto'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createDoor } from '../../src/control-server/door.js'
import { apiKeyAuth } from '../../src/http/auth.js'

vi.mock('node:crypto', async (original) => {
  const real = await original<typeof crypto>()
  return { ...real, timingSafeEqual: vi.fn(real.timingSafeEqual) }
})

const SECRET = 'a-secret-of-thirty-two-characters'
const WRONG = [`x${SECRET.slice(1)}`, `${SECRET.slice(0, -1)}x`, SECRET.slice(0, -1), `${SECRET}x`, 'x']

describe('the comparison of a secret', () => {
  afterEach(() => vi.restoreAllMocks())

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

  it.each(WRONG)('of the control token is that of two digests, given %s', (given) => {
    const compare = vi.mocked(crypto.timingSafeEqual)
    compare.mockClear()
    const rawHeaders = ['Host', 'localhost:4780', 'Authorization', `Bearer ${given}`]
    expect(createDoor(SECRET)({ remoteAddress: '127.0.0.1', rawHeaders }, 4780)).toBe('unauthenticated')
    expect(compare.mock.calls.map(([one, other]) => [one.byteLength, other.byteLength])).toEqual([[32, 32]])
  })
})
