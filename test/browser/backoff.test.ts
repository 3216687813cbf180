/** Holds when the browser client comes back. */
import { describe, expect, it } from 'vitest'
import { reconnectDelay } from '../../src/internal/relay-client/event-stream.js'

describe('the wait before a reconnection', () => {
  it('is at least the delay of the relay, and at most half as much longer', () => {
    expect(reconnectDelay(5_000, 0, 0)).toBe(5_000)
    expect(reconnectDelay(5_000, 0, 0.999)).toBeCloseTo(7_497.5)
  })

  it('doubles with each failed attempt up to half a minute', () => {
    expect([0, 1, 2, 3, 4, 50, 5_000].map((failures) => reconnectDelay(1_000, failures, 0))).toEqual([
      1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ])
  })

  it('does not spin when the relay says 0, and never overflows the timer', () => {
    expect(reconnectDelay(0, 0, 0)).toBe(100)
    expect(reconnectDelay(10 ** 15, 0, 0.999)).toBeLessThan(1_000_000)
  })
})
