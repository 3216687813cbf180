import { expect, it } from 'vitest'
import { createDeduplicator } from '../../src/memory/deduplicator.js'
import { ASK, createClock } from '../contract/clock.js'
import { deduplicatorBattery } from '../contract/deduplicator.js'

deduplicatorBattery('memory', (options) => createDeduplicator(options))

it('grants an expired claim again even while its sweep lags', async () => {
  const clock = createClock()
  const deduplicator = createDeduplicator({ now: clock.now, ttlMs: 1_000 })
  for (let i = 0; i < 25_000; i++) await deduplicator.claim({ user_id: 'u', message_id: `m${i}` })
  clock.advance(1_000)
  expect(await deduplicator.claim({ user_id: 'u', message_id: 'm24999' })).toBe(true)
  expect(await deduplicator.inspector.summary(ASK)).toMatchObject({ entries: 5_000 })
  expect(await deduplicator.inspector.summary(ASK)).toMatchObject({ entries: 1, accepted: 25_001, evicted: 0 })
})
