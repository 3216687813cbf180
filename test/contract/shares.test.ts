import { describe, expect, it } from 'vitest'
import { defaultShare, shown } from '../../src/contract/checks.js'
import { count, defineOptions, derived, duration, readOptions, share, timer } from '../../src/contract/options.js'
import { FairShare, Holders } from '../../src/fair-share/fair-share.js'

describe('the bounds of a factory', () => {
  it('are those that are given, and the defaults of the rest', () => {
    const schema = defineOptions({ a: count(1), b: count(2), c: share('a'), d: derived<'b'>(({ b }) => 2 * b) })
    expect(readOptions(schema, { a: 70, b: undefined })).toEqual({ a: 70, b: 2, c: 7, d: 4 })
    expect(readOptions(schema, { a: 70, c: 9, d: 1 })).toEqual({ a: 70, b: 2, c: 9, d: 1 })
  })

  it('are at most what a timer, a date or the factory bears', () => {
    const schema = defineOptions({ a: count(1, 9), b: duration(1), c: timer(1) })
    const most = { a: 9, b: 3_155_760_000_000, c: 2_147_483_647 }
    expect(readOptions(schema, most)).toEqual(most)
    for (const [name, value] of Object.entries(most))
      expect(() => readOptions(schema, { [name]: value + 1 })).toThrow(
        new RangeError(`Invalid option "${name}": expected an integer from 1 to ${value}, got ${value + 1}`),
      )
  })

  it.each([
    Number.NaN,
    0,
    -1,
    1.5,
    2 ** 53,
    Number.POSITIVE_INFINITY,
    '10' as unknown as number,
    null as unknown as number,
  ])('are not %s, and the option is named', (value) => {
    const refused = new RangeError(`Invalid option "maxSites": expected an integer from 1, got ${shown(value)}`)
    expect(() => readOptions(defineOptions({ maxSites: count(5) }), { maxSites: value })).toThrow(refused)
    expect(() => readOptions(defineOptions({ maxSites: share('maxSites') }), { maxSites: value })).toThrow(refused)
  })

  it('are shared in tenths, where there is enough to share', () => {
    expect([1, 2, 10, 20, 30, 10_000].map(defaultShare)).toEqual([1, 2, 2, 2, 3, 1_000])
  })
})

describe('who holds most', () => {
  it('is known after every change, as counting them all would tell', () => {
    const holders = new Holders()
    const counts = new Map<string, number>()
    let seed = 1
    const random = (n: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
      return seed % n
    }
    for (let step = 0; step < 5_000; step++) {
      const user = `u${random(20)}`
      const held = counts.get(user) ?? 0
      // Long climbs and long falls, so that the greatest count moves both ways.
      if ((Math.floor(step / 500) % 2 === 0) === random(4) > 0) {
        holders.add(user)
        counts.set(user, held + 1)
      } else {
        holders.remove(user)
        counts.set(user, Math.max(0, held - 1))
      }
      const most = Math.max(...counts.values())
      expect(holders.of(user)).toBe(counts.get(user))
      if (most === 0) expect(holders.fullest).toBeUndefined()
      else expect(counts.get(holders.fullest as string)).toBe(most)
    }
  })
})

describe('what must go', () => {
  it.each([
    ['for their number', { entries: 4 }],
    ['for its bytes', { bytes: 40 }],
  ])('%s is the oldest of the largest holder, whichever user adds an entry', (_, bounds) => {
    const shares = new FairShare<string>(bounds)
    for (const entry of ['b1', 'b2', 'b3']) shares.add('bob', entry, 10)
    shares.add('ann', 'a1', 10)
    expect(shares.excess(shares.add('ann', 'a2', 10))).toBe('b1')
  })

  it.each([
    ['entries', { entriesPerUser: 2 }],
    ['bytes', { bytesPerUser: 20 }],
  ])('for the %s of one user is the oldest of that user', (_, bounds) => {
    const shares = new FairShare<string>(bounds)
    for (const entry of ['b1', 'b2']) shares.add('bob', entry, 10)
    for (const entry of ['a1', 'a2']) expect(shares.excess(shares.add('ann', entry, 10))).toBeUndefined()
    expect(shares.excess(shares.add('ann', 'a3', 10))).toBe('a1')
  })

  it.each([
    ['entries', { entries: 1 }],
    ['bytes', { bytes: 30 }],
  ])('for all %s is never what a newcomer has added', (_, bounds) => {
    const shares = new FairShare<string>(bounds)
    expect(shares.excess(shares.add('ann', 'a1', 10))).toBeUndefined()
    expect(shares.excess(shares.add('bob', 'b1', 25))).toBe('a1')
  })
})
