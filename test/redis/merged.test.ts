/** A page of several shards in one order, of which one is lost: no entry is returned before an unknown earlier one. */
import { describe, expect, it } from 'vitest'
import { Order } from '../../src/internal/contract/page.js'
import { Refusal } from '../../src/internal/refusal.js'
import type { Stretch } from '../../src/redis/table/pages.js'
import { mergePage } from '../../src/redis/table/pages.js'
import { type Scores, scoreOf } from '../../src/redis/table/spans.js'
import { ASK } from '../contract/clock.js'

/**
 * Creates shards with every third number; `isLost` tells which cannot be read now. A read returns at most four entries.
 */
function createShards(isLost: (shard: number, round: number) => boolean) {
  const numbers = Array.from({ length: 60 }, (_, i) => i + 1)
  return async (shard: number, { from, order }: Scores, { round, budget }: Stretch) => {
    if (isLost(shard, round)) throw new Refusal('unavailable')
    const step = order === 'newest' ? -1 : 1
    const score = scoreOf(from)
    const behind = from.startsWith('(') ? score : score - step
    const own = numbers.filter((number) => number % 3 === shard && (number - behind) * step > 0)
    if (order === 'newest') own.reverse()
    const some = own.slice(0, Math.min(4, budget))
    const entries = some.map((sequence) => ({ position: { shard, sequence }, record: sequence, isBad: false }))
    return { shard, entries, examined: some.length, isTruncated: some.length < own.length }
  }
}

const pageOf = (read: ReturnType<typeof createShards>, cursor: string | null = null, order?: Order) =>
  mergePage([0, 2], { limit: 30, cursor, order }, ASK, read)

describe('a merged page', () => {
  it.each(Order.options)('is in one order over all shards, the %s first', async (order) => {
    const numbers = Array.from({ length: 60 }, (_, i) => (order === 'newest' ? 60 - i : i + 1))
    const read = createShards(() => false)
    const first = await pageOf(read, null, order)
    expect(first.items).toEqual(numbers.slice(0, 30))
    const second = await pageOf(read, first.next_cursor, order)
    expect([second.items, second.has_more]).toEqual([numbers.slice(30), false])
  })

  it('fails if a shard is lost when it begins', async () => {
    for (const lost of [0, 1, 2])
      await expect(pageOf(createShards((shard) => shard === lost))).rejects.toMatchObject({ code: 'unavailable' })
  })

  it('ends early if one is lost later, and continues there when it is back', async () => {
    for (const lost of [0, 1, 2]) {
      const cut = await pageOf(createShards((shard, round) => shard === lost && round > 0))
      expect(cut.has_more).toBe(true)
      expect(cut.items).toEqual(Array.from({ length: cut.items.length }, (_, i) => i + 1))
      expect(cut.items.length).toBeGreaterThan(3)
      await expect(
        pageOf(
          createShards((shard) => shard === lost),
          cut.next_cursor,
        ),
      ).rejects.toMatchObject({
        code: 'unavailable',
      })
      const next = await pageOf(
        createShards(() => false),
        cut.next_cursor,
      )
      expect(next.items[0]).toBe(cut.items.length + 1)
      expect(next.items).toEqual(next.items.map((_, i) => cut.items.length + 1 + i))
    }
  })
})
