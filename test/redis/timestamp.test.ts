import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/internal/refusal.js'
import { createStoreClock } from '../../src/redis/store/store.js'
import { timestampOf } from '../../src/redis/table/rows.js'

describe('a stored instant', () => {
  it('is formatted as Date formats it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 253_402_300_799_999 }), (ms) => {
        expect(timestampOf(ms)).toBe(new Date(ms).toISOString())
      }),
    )
    for (const ms of [0, 86_399_999, 86_400_000, 951_782_400_000, 1_709_164_800_000 - 1, 8.64e15])
      expect(timestampOf(ms)).toBe(new Date(ms).toISOString())
  })

  it('has the date of the given day, whatever was formatted before', () => {
    for (const ms of [5, 86_400_005, 5, 172_800_005, 86_399_999])
      expect(timestampOf(ms)).toBe(new Date(ms).toISOString())
  })
})

describe('the clock of a store', () => {
  it('reads once, and continues with the local clock', async () => {
    let asked = 0
    const clock = createStoreClock(async () => {
      asked++
      return 1_000_000
    })
    const first = await clock()
    const second = await clock()
    expect([first, asked]).toEqual([1_000_000, 1])
    expect(second - first).toBeGreaterThanOrEqual(-1)
    expect(second - first).toBeLessThan(1_000)
  })

  it('retries if the first reply comes from a lost node', async () => {
    let asked = 0
    const clock = createStoreClock(async () => {
      if (++asked < 3) throw new Refusal('unavailable')
      return 7
    })
    expect(await clock()).toBe(7)
  })

  it('fails if the store never replies', async () => {
    let asked = 0
    const clock = createStoreClock(async () => {
      asked++
      throw new Refusal('unavailable', 'down')
    })
    await expect(clock()).rejects.toMatchObject({ code: 'unavailable' })
    expect(asked).toBe(3)
  })

  it('does not retry for a caller that has aborted', async () => {
    const caller = new AbortController()
    let asked = 0
    const clock = createStoreClock(async () => {
      asked++
      caller.abort('gone')
      throw caller.signal.reason
    })
    await expect(clock({ signal: caller.signal })).rejects.toBe('gone')
    expect(asked).toBe(1)
  })
})
