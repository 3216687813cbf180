/** What every message history must keep for each user, whatever the others do. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { HistoryOptions } from '../../src/internal/contract/history.js'
import type { Awaitable } from '../../src/internal/contract/page.js'
import { ASK } from './clock.js'
import { createFlakySpill, type FlakySpill, type HistoryFacility } from './history.js'

export function historySharesBattery(
  name: string,
  make: (options: HistoryOptions & { spill: FlakySpill }) => Awaitable<HistoryFacility>,
): void {
  describe(`shares of the history in ${name}`, () => {
    let spill: FlakySpill
    let history: HistoryFacility
    beforeEach(() => {
      spill = createFlakySpill()
    })
    const append = async (user_id: string, message_id: string, payload: unknown = null, stream = 's') =>
      history.append({
        ...{ message_id, user_id, client_id: 'c', instance_id: 'i', kind: 'event' },
        stream: `users/${user_id}/${stream}`,
        payload: payload as null,
      })
    const held = async (user_id: string, stream = 's') =>
      (await history.inspector.readMessages({ stream: `users/${user_id}/${stream}`, limit: 1_000 }, ASK)).items.map(
        (m) => m.message_id,
      )

    it('evicts messages from the user with the most', async () => {
      history = await make({ maxMessages: 20, spill })
      for (let i = 0; i < 3; i++) await append('bob', `b${i}`)
      for (let i = 0; i < 200; i++) await append('ann', `a${i}`, null, `s${i % 40}`)
      expect(await held('bob')).toEqual(['b0', 'b1', 'b2'])
      const mine = await Promise.all(Array.from({ length: 40 }, (_, i) => held('ann', `s${i}`)))
      expect(mine.flat()).toHaveLength(17)
      expect(await held('ann', 's39')).toEqual(['a199'])
    })

    it('evicts bytes from the largest user, and never the new message', async () => {
      history = await make({ maxBytes: 20_000, maxBytesPerUser: 20_000, spill })
      for (let i = 0; i < 5; i++) await append('bob', `b${i}`)
      for (let i = 0; i < 30; i++) await append('ann', `a${i}`, 'x'.repeat(5_000))
      expect(await held('bob')).toHaveLength(5)
      expect(await held('ann')).toEqual(['a27', 'a28', 'a29'])
      await append('eve', 'e', 'x'.repeat(15_000))
      expect(await held('eve')).toEqual(['e'])
      expect(await held('ann')).toEqual([])
      expect(await held('bob')).toHaveLength(5)
    })

    it('holds one user to the bounds of one', async () => {
      history = await make({ maxPerUser: 4, maxBytesPerUser: 10_000, spill })
      for (let i = 0; i < 9; i++) await append('ann', `a${i}`)
      expect(await held('ann')).toEqual(['a5', 'a6', 'a7', 'a8'])
      await append('ann', 'large', 'x'.repeat(9_000))
      expect(await held('ann')).toEqual(['large'])
      await expect(append('ann', 'larger', 'x'.repeat(10_000))).rejects.toMatchObject({ code: 'capacity_exceeded' })
    })

    it('evicts spilled payloads from the user with the most', async () => {
      history = await make({ inlineBytes: 100, maxSpilledBytes: 5_000, maxSpilledBytesPerUser: 5_000, spill })
      await append('bob', 'b', 'x'.repeat(900))
      for (let i = 0; i < 10; i++) await append('ann', `a${i}`, 'x'.repeat(1_500))
      await append('ann', 'small')
      expect(await held('bob')).toEqual(['b'])
      expect(await held('ann')).toEqual(['a8', 'a9', 'small'])
      await new Promise((resolve) => setImmediate(resolve))
      expect(spill.texts.size).toBe(3)
    })

    it('answers a shorter sample rather than more text than an answer carries', async () => {
      history = await make({ spill })
      for (let i = 0; i < 140; i++) await append('ann', `a${i}`, 'x'.repeat(65_000))
      const ids = await held('ann')
      expect(ids.length).toBeLessThan(140)
      expect(ids.length).toBeGreaterThan(100)
      expect(ids.at(-1)).toBe('a139')
    })
  })
}
