/** The idempotency keys of one process, and what one viewer can do to the keys of another. */
import { describe, expect, it } from 'vitest'
import { createIdempotencyStore } from '../../src/cooperative-site/index.js'
import { answer, claimOf, idempotencyBattery } from '../contract/idempotency.js'

idempotencyBattery('memory', createIdempotencyStore)

describe('the idempotency keys of one process', () => {
  it('evict answers of the user with the most bytes when there are too many, and no key', async () => {
    const store = createIdempotencyStore({ maxBytes: 100_000 })
    const carol = claimOf({ user_id: 'carol' })
    await store.claim(carol)
    await store.keep(carol, answer(1_000))
    for (let n = 0; n < 66; n++) {
      const claim = claimOf({ key: `k${n}`, session_id: `s${n % 3}` })
      await store.claim(claim)
      await store.keep(claim, answer(10_000))
    }
    expect(await store.claim(claimOf({ user_id: 'carol' }))).toEqual({ state: 'ended', answer: answer(1_000) })
    expect(await store.claim(claimOf({ key: 'k0', session_id: 's0' }))).toEqual({ state: 'ended', answer: null })
    expect(await store.claim(claimOf({ key: 'k65', session_id: 's2' }))).toEqual({
      state: 'ended',
      answer: answer(10_000),
    })
  })

  it('evict answers even if the largest user has nothing but keys', async () => {
    const store = createIdempotencyStore({ maxBytes: 100_000 })
    for (let n = 0; n < 100; n++) {
      const claim = claimOf({ key: `k${n}` })
      await store.claim(claim)
      await store.keep(claim, n % 2 ? null : answer(10))
    }
    const users = Array.from({ length: 20 }, (_, n) => `viewer${n}`)
    for (const user_id of users) {
      const claim = claimOf({ user_id })
      await store.claim(claim)
      await store.keep(claim, answer(10_000))
    }
    const found = await Promise.all(users.map((user_id) => store.claim(claimOf({ user_id }))))
    const kept = found.filter((one) => one.state === 'ended' && one.answer !== null)
    expect(kept.length).toBeGreaterThan(0)
    expect(kept.length).toBeLessThan(10)
    expect(found.every(({ state }) => state === 'ended')).toBe(true)
  })

  it('evict keys of the user with the most when there are too many in all', async () => {
    const store = createIdempotencyStore({ maxKeys: 10 })
    for (const user_id of ['carol', ...Array(20).fill('bob')]) {
      const claim = claimOf({ user_id, key: `k-${Math.random()}` })
      if (user_id === 'carol') claim.key = 'carols'
      await store.claim(claim)
      await store.keep(claim, null)
    }
    expect(await store.claim(claimOf({ user_id: 'carol', key: 'carols' }))).toEqual({ state: 'ended', answer: null })
  })

  it('use a monotonic clock', async () => {
    const store = createIdempotencyStore()
    const claim = claimOf()
    await store.claim(claim)
    await store.keep(claim, answer())
    const { now } = Date
    Date.now = () => now() + 86_400_000
    try {
      expect(await store.claim(claimOf())).toEqual({ state: 'ended', answer: answer() })
    } finally {
      Date.now = now
    }
  })

  it.each([0, 1.5, Number.NaN])('refuse a bound of %s', (maxBytes) => {
    expect(() => createIdempotencyStore({ maxBytes })).toThrow(RangeError)
  })

  it('are refused when the maximum is reached and all are pending', async () => {
    const store = createIdempotencyStore({ maxKeys: 2 })
    await store.claim(claimOf({ user_id: 'ann' }))
    await store.claim(claimOf({ user_id: 'bob' }))
    await expect(store.claim(claimOf({ user_id: 'carol' }))).rejects.toMatchObject({ code: 'capacity_exceeded' })
  })
})
