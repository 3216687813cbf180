/** What every deduplicator must do, whatever it remembers messages in. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { Deduplicator, DeduplicatorInspector } from '../../src/internal/contract/deduplicator.js'
import type { Inspected } from '../../src/internal/contract/families.js'
import type { Awaitable } from '../../src/internal/contract/page.js'
import { ASK, at, type Clock, createClock } from './clock.js'

export type DeduplicatorFacility = Inspected<Deduplicator, DeduplicatorInspector>

export function deduplicatorBattery(
  name: string,
  make: (options: { now: () => number; ttlMs: number; capacity: number }) => Awaitable<DeduplicatorFacility>,
): void {
  describe(`deduplicator in ${name}`, () => {
    let clock: Clock
    let deduplicator: DeduplicatorFacility

    beforeEach(async () => {
      clock = createClock()
      deduplicator = await make({ now: clock.now, ttlMs: 10_000, capacity: 3 })
    })

    const claim = (message_id: string, user_id = 'ann') => deduplicator.claim({ user_id, message_id })
    const summary = async () => deduplicator.inspector.summary(ASK)
    const ofUser = async (user_id: string) => deduplicator.inspector.userSummary?.(user_id, ASK)

    it('grants a claim exactly once within its time', async () => {
      expect(await claim('m')).toBe(true)
      clock.advance(9_999)
      expect(await claim('m')).toBe(false)
      clock.advance(1)
      expect(await claim('m')).toBe(true)
    })

    it('grants exactly one of many claims at once', async () => {
      const granted = await Promise.all(Array.from({ length: 50 }, () => claim('m')))
      expect(granted.filter(Boolean)).toHaveLength(1)
    })

    it('says before the first claim how much it remembers, and for how long', async () => {
      const none = { entries: 0, accepted: 0, duplicates: 0, evicted: 0 }
      expect(await summary()).toEqual({ ...none, capacity: 3, ttl_ms: 10_000 })
    })

    it('keeps users apart', async () => {
      expect(await claim('m', 'ann')).toBe(true)
      expect(await claim('m', 'bob')).toBe(true)
      expect(await claim('__proto__', '__proto__')).toBe(true)
      expect(await claim('__proto__', '__proto__')).toBe(false)
    })

    it('lets the oldest go at capacity, whose message could be claimed again', async () => {
      for (const id of ['a', 'b', 'c', 'd']) expect(await claim(id)).toBe(true)
      expect(await claim('b')).toBe(false)
      expect(await claim('a')).toBe(true)
      expect(await summary()).toEqual({
        entries: 3,
        capacity: 3,
        ttl_ms: 10_000,
        accepted: 5,
        duplicates: 1,
        evicted: 2,
      })
    })

    it('takes back a claim, so that a retry is no duplicate', async () => {
      await claim('m')
      expect(await deduplicator.release({ user_id: 'ann', message_id: 'm' })).toBe(true)
      expect(await deduplicator.release({ user_id: 'ann', message_id: 'm' })).toBe(false)
      expect(await claim('m')).toBe(true)
    })

    it('counts no claim that was given back', async () => {
      await claim('a')
      await claim('m')
      await deduplicator.release({ user_id: 'ann', message_id: 'm' })
      expect(await summary()).toMatchObject({ entries: 1, accepted: 1, duplicates: 0, evicted: 0 })
      expect(await ofUser('ann')).toMatchObject({ entries: 1, accepted: 1 })
    })

    it('does not release an expired claim, swept or not', async () => {
      await claim('m')
      await claim('n', 'bob')
      clock.advance(10_000)
      expect(await deduplicator.release({ user_id: 'ann', message_id: 'm' })).toBe(false)
      expect(await summary()).toMatchObject({ entries: 0, accepted: 2 })
      expect(await deduplicator.release({ user_id: 'bob', message_id: 'n' })).toBe(false)
      expect(await claim('m')).toBe(true)
      expect(await summary()).toMatchObject({ entries: 1, accepted: 3, duplicates: 0 })
    })

    it('keeps streams apart', async () => {
      const claims = ['users/ann/x', 'users/ann/y', undefined].map((stream) => ({
        user_id: 'ann',
        message_id: 'm',
        ...(stream === undefined ? {} : { stream }),
      }))
      for (const one of claims) expect(await deduplicator.claim(one)).toBe(true)
      for (const one of claims) expect(await deduplicator.claim(one)).toBe(false)
    })

    it('evicts from the user with the most entries', async () => {
      await claim('a', 'bob')
      clock.advance(1)
      for (let i = 0; i < 100; i++) await claim(`m${i}`)
      expect(await claim('a', 'bob')).toBe(false)
      expect(await claim('m99')).toBe(false)
      expect(await claim('m0')).toBe(true)
      expect(await summary()).toMatchObject({ entries: 3 })
    })

    it('holds its capacity where users have messages of the same ids', async () => {
      for (const user of ['ann', 'bob', 'cyd', 'dan', 'eve']) expect(await claim('m', user)).toBe(true)
      expect(await summary()).toMatchObject({ entries: 3, accepted: 5, evicted: 2 })
    })

    it('evicts the oldest entry of the largest user, whatever ids others use', async () => {
      for (const id of ['a', 'b', 'c']) {
        await claim(id)
        clock.advance(1)
      }
      await claim('a', 'bob')
      expect(await claim('b')).toBe(false)
      expect(await claim('a', 'bob')).toBe(false)
      expect(await claim('a')).toBe(true)
    })

    it('lists a user as long as the user has an entry', async () => {
      await claim('a')
      clock.advance(4_000)
      await claim('b')
      await claim('b')
      await claim('a', 'bob')
      expect(await ofUser('ann')).toEqual({ user_id: 'ann', entries: 2, accepted: 2, duplicates: 1, oldest_at: at() })
      clock.advance(6_000)
      expect(await ofUser('ann')).toMatchObject({ entries: 1, oldest_at: at(4_000) })
      clock.advance(4_000)
      expect(await ofUser('ann')).toBeNull()
      expect(await ofUser('missing')).toBeNull()
      expect((await summary()).entries).toBe(0)
    })

    it('refuses an invalid claim', async () => {
      for (const [message_id, user_id] of [
        ['', 'ann'],
        ['m', ''],
        ['a\u0000b', 'ann'],
        ['x'.repeat(257), 'ann'],
      ] as const)
        await expect(async () => claim(message_id, user_id)).rejects.toMatchObject({ code: 'invalid_input' })
      expect((await summary()).entries).toBe(0)
    })
  })
}
