import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { compareIds } from '../../src/internal/contract/ids.js'
import { byNumber, OrderedIndex } from '../../src/memory/table/ordered-index.js'

const numbers = () => new OrderedIndex<number, number>((n) => n, byNumber)

describe('an ordered index', () => {
  it('is empty at first', () => {
    const index = numbers()
    expect([index.size, index.first(), index.last(), index.get(1), index.rank(1), index.delete(1)]).toEqual([
      0,
      undefined,
      undefined,
      undefined,
      0,
      false,
    ])
    expect([...index.after(null), ...index.after(5), ...index.before(null), ...index.before(5)]).toEqual([])
  })

  it('behaves like a sorted array', () => {
    const step = fc.record({
      insert: fc.boolean(),
      keys: fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 900 }),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), fc.integer({ min: -1, max: 3_001 }), (steps, probe) => {
        const index = numbers()
        const model = new Set<number>()
        for (const { insert, keys } of steps)
          for (const key of keys) {
            if (insert) index.insert(key)
            else expect(index.delete(key)).toBe(model.has(key))
            if (insert) model.add(key)
            else model.delete(key)
          }
        const sorted = [...model].sort(byNumber)
        expect(index.size).toBe(sorted.length)
        expect([...index.after(null)]).toEqual(sorted)
        expect([...index.after(probe)]).toEqual(sorted.filter((key) => key > probe))
        expect([...index.before(null)]).toEqual(sorted.toReversed())
        expect([...index.before(probe)]).toEqual(sorted.filter((key) => key < probe).reverse())
        expect(index.rank(probe)).toBe(sorted.filter((key) => key <= probe).length)
        expect(index.get(probe)).toBe(model.has(probe) ? probe : undefined)
        expect(index.first()).toBe(sorted[0])
        expect(index.last()).toBe(sorted.at(-1))
      }),
      { numRuns: 60 },
    )
  })

  it('orders ids by their UTF-8 bytes', () => {
    const index = new OrderedIndex<string, string>((id) => id, compareIds)
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: 'grapheme', minLength: 1 }), { maxLength: 40 }), (ids) => {
        for (const id of ids) index.insert(id)
        const walked = [...index.after(null)]
        expect(walked).toEqual([...walked].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))))
      }),
    )
  })

  it('replaces the value of a key it has', () => {
    const index = new OrderedIndex<number, { key: number; word: string }>(({ key }) => key, byNumber)
    for (const key of [1, 2, 3]) index.insert({ key, word: 'old' })
    index.insert({ key: 2, word: 'new' })
    expect(index.size).toBe(3)
    expect([...index.after(null)].map(({ word }) => word)).toEqual(['old', 'new', 'old'])
  })

  it('takes few comparisons in a hundred thousand values, also after most were deleted', () => {
    let compared = 0
    const index = new OrderedIndex<number, number>(
      (n) => n,
      (a, b) => {
        compared++
        return a - b
      },
    )
    for (let key = 0; key < 100_000; key++) index.insert(key)
    const costOf = (key: number) => {
      compared = 0
      index.after(key).next()
      return compared
    }
    for (const key of [0, 50_000, 99_999]) expect(costOf(key)).toBeLessThan(25)
    for (let key = 0; key < 100_000; key++) if (key % 1_000 !== 0) index.delete(key)
    expect(index.size).toBe(100)
    for (const key of [0, 50_000, 98_000]) expect(costOf(key)).toBeLessThan(12)
  })
})
