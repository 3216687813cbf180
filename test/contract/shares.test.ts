import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { defaultShare, shown } from '../../src/internal/contract/checks.js'
import {
  count,
  defineOptions,
  derived,
  duration,
  readOptions,
  share,
  timer,
} from '../../src/internal/contract/options.js'
import { FairShare, Holders, MaxHeap, type Place } from '../../src/internal/fair-share/fair-share.js'

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
      const { fullest } = holders
      if (holders.of(user) !== counts.get(user) || (fullest === undefined ? 0 : counts.get(fullest)) !== most)
        expect.fail(`${fullest} does not hold most after ${step} steps`)
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

/** Weights of a few members in a random order: each step sets one weight, and 0 removes the member. */
const weighings = fc.array(fc.record({ member: fc.nat(11), weight: fc.nat(4) }), {
  maxLength: 60,
  size: 'max',
})

describe('the heap', () => {
  it('returns a heaviest member after every change and removal, with and without the exception', () => {
    fc.assert(
      fc.property(weighings, (steps) => {
        const members = Array.from({ length: 12 }, (_, id) => ({ id }))
        const heap = new MaxHeap<{ id: number }>()
        const weights = new Map<{ id: number }, number>()
        const heaviest = (except?: object) =>
          Math.max(0, ...[...weights].flatMap(([member, weight]) => (member === except ? [] : [weight])))
        for (const { member, weight } of steps) {
          const one = members[member] as { id: number }
          heap.weigh(one, weight)
          if (weight > 0) weights.set(one, weight)
          else weights.delete(one)
          for (const except of [undefined, ...members]) {
            const top = heap.top(except)
            if ((except && top === except) || (top && weights.get(top)) !== (heaviest(except) || undefined))
              expect.fail(`${top?.id} is not the heaviest`)
          }
        }
      }),
      { numRuns: 200 },
    )
  })
})

interface Owned {
  user: string
  bytes: number
}

/** The users who hold most, by a count of all entries. */
function largestHolders(entries: ReadonlySet<Owned>, sizeOf: (entry: Owned) => number, except?: string): string[] {
  const sums = new Map<string, number>()
  for (const entry of entries)
    if (entry.user !== except) sums.set(entry.user, (sums.get(entry.user) ?? 0) + sizeOf(entry))
  const most = Math.max(...sums.values())
  return [...sums].filter(([, sum]) => sum === most).map(([user]) => user)
}

describe('a share with removals', () => {
  it.each([
    ['entries', { entries: 8 }],
    ['bytes', { bytes: 60 }],
  ])('evicts the oldest entry of the largest holder of %s, like a count of all entries', (name, bounds) => {
    const sizeOf = ({ bytes }: Owned) => (name === 'entries' ? 1 : bytes)
    const step = fc.record({ user: fc.constantFrom('a', 'b', 'c', 'd', 'e'), bytes: fc.integer({ min: 1, max: 20 }) })
    fc.assert(
      fc.property(fc.array(fc.record({ step, removes: fc.option(fc.nat(20)) }), { maxLength: 120 }), (steps) => {
        const shares = new FairShare<Owned>(bounds)
        const places = new Map<Owned, Place<Owned>>()
        const entries = new Set<Owned>()
        const remove = (entry: Owned) => {
          shares.remove(places.get(entry) as Place<Owned>)
          entries.delete(entry)
        }
        for (const { step, removes } of steps) {
          const removed = removes === null ? undefined : [...entries][removes]
          if (removed) remove(removed)
          const entry = { ...step }
          const place = shares.add(entry.user, entry, entry.bytes)
          places.set(entry, place)
          entries.add(entry)
          for (let evicted = shares.excess(place); evicted; evicted = shares.excess(place)) {
            const owned = [...entries].filter(({ user }) => user === entry.user)
            const holders = largestHolders(entries, sizeOf, owned.length === 1 ? entry.user : undefined)
            expect(holders).toContain(evicted.user)
            expect(evicted).toBe([...entries].find(({ user }) => user === evicted?.user))
            remove(evicted)
          }
          expect([shares.entries, shares.bytes]).toEqual([entries.size, [...entries].reduce((n, e) => n + e.bytes, 0)])
        }
      }),
      { numRuns: 200 },
    )
  })
})
