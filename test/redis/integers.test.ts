/** Integers that a host writes are returned unchanged by both compositions, up to the largest safe integer. */
import { expect, it } from 'vitest'
import type { BrowserWindowInput } from '../../src/internal/contract/browser-windows.js'
import { createBrowserWindowRegistry } from '../../src/memory/browser-windows.js'
import { createContextRegistry } from '../../src/memory/contexts.js'
import { createRedisBrowserWindowRegistry } from '../../src/redis/browser-windows/facility.js'
import { createRedisConnectionRegistry } from '../../src/redis/connections/facility.js'
import { createRedisContextRegistry } from '../../src/redis/contexts/facility.js'
import { ASK, createClock } from '../contract/clock.js'
import { describeStores } from './matrix.js'

const FIELDS = ['tab_count', 'capacity', 'worker_count', 'idle_count', 'busy_count'] as const

/** Around every power of two and of ten, where texts and floats of other languages begin to round. */
const INTEGERS = [2, 10]
  .flatMap((base) => Array.from({ length: 54 }, (_, exponent) => base ** exponent))
  .flatMap((power) => [power - 1, power, power + 1])
  .concat(100_000_000_000_001, 123_456_789_012_345, Number.MAX_SAFE_INTEGER)
  .filter((n) => Number.isSafeInteger(n))

describeStores('whole numbers in a shared store', (kind, place) => {
  it(`are returned unchanged by a window, after every write to it, over ${kind}`, async () => {
    const { now } = createClock()
    const shared = createRedisBrowserWindowRegistry({ ...place(), now })
    const own = createBrowserWindowRegistry({ now })
    const check = async (n: number, i: number) => {
      const window_id = `w${i}`
      const report = { window_id, user_id: 'ann', client_id: 'c', ...Object.fromEntries(FIELDS.map((f) => [f, n])) }
      const reported = await shared.report(report)
      expect(reported).toEqual(await own.report(report))
      expect(reported).toMatchObject(Object.fromEntries(FIELDS.map((f) => [f, n])))
      const both = async (): Promise<[BrowserWindowInput | null, BrowserWindowInput | null]> => [
        await shared.inspector.getBrowserWindow(window_id, ASK),
        await own.inspector.getBrowserWindow(window_id, ASK),
      ]
      const [open, truth] = await both()
      expect(open).toEqual(truth)
      await shared.close(window_id)
      await own.close(window_id)
      const [closed, closedTruth] = await both()
      expect(closed).toEqual(closedTruth)
    }
    for (let i = 0; i < INTEGERS.length; i += 20)
      await Promise.all(INTEGERS.slice(i, i + 20).map((n, j) => check(n, i + j)))
  })

  it(`are refused as a timeout or a retention that exceeds the range of dates, over ${kind}`, () => {
    for (const ms of [Number.MAX_SAFE_INTEGER, 100_000_000_000_001]) {
      expect(() => createRedisContextRegistry({ ...place(), ttlMs: ms })).toThrow(RangeError)
      expect(() => createContextRegistry({ ttlMs: ms })).toThrow(RangeError)
      expect(() => createRedisConnectionRegistry({ ...place(), retentionMs: ms })).toThrow(RangeError)
    }
  })

  it(`are kept with the longest allowed timeout, over ${kind}`, async () => {
    const contexts = createRedisContextRegistry({ ...place(), ttlMs: 3_155_760_000_000 })
    const report = { context_id: 't', user_id: 'ann', client_id: 'c', client_type: 'web', status: 'idle' } as const
    const reported = await contexts.report(report)
    expect(await contexts.inspector.getContext('t', ASK)).toEqual(reported)
    expect(await contexts.close('t')).toBe(true)
  })
})
