/** Random numbers of one history: the same seed gives the same numbers in every process. */

export interface Dice {
  /** From 0 up to, and without, 1. */
  random(): number
  /** A whole number from 0 up to, and without, `n`. */
  int(n: number): number
  pick<T>(list: readonly T[]): T
  chance(probability: number): boolean
  between(from: number, to: number): number
}

/** A 32-bit number for a text, to give every part of a history dice of its own. */
function hash32(text: string): number {
  let hash = 2_166_136_261
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16_777_619)
  return hash | 0
}

/** Mulberry32. */
function createRandom(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Dice for the part `name` of the history with `seed`. */
export function createDice(seed: number, name: string): Dice {
  const random = createRandom(seed ^ hash32(name))
  return {
    random,
    int: (n) => Math.floor(random() * n),
    pick: <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T,
    chance: (probability) => random() < probability,
    between: (from, to) => from + random() * (to - from),
  }
}
