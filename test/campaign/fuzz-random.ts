/** Chance that a seed decides: the same seed and number make the same request, so that a finding can be made again. */

export interface Random {
  /** A whole number from 0 to below `bound`. */
  below(bound: number): number
  pick<Value>(values: readonly Value[]): Value
  /** True in `share` of all cases. */
  chance(share: number): boolean
}

/** The chance of request `index` of the run `seed` (mulberry32). */
export function createRandom(seed: number, index: number): Random {
  let state = (Math.imul(seed, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (bound: number) => Math.floor(next() * bound)
  return {
    below,
    pick: (values) => values[below(values.length)] as (typeof values)[number],
    chance: (share) => next() < share,
  }
}
