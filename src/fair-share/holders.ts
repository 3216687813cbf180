/** Counts per user, for stores that evict from the user who holds the most. */

/** Counts per user. Every operation is O(1): users with the same count are kept together. */
export class Holders {
  readonly #counts = new Map<string, number>()
  readonly #byCount = new Map<number, Set<string>>()
  #most = 0

  of(user: string): number {
    return this.#counts.get(user) ?? 0
  }

  /** The user with the highest count; any of them on a tie. */
  get fullest(): string | undefined {
    return this.#byCount.get(this.#most)?.values().next().value
  }

  add(user: string): void {
    this.#move(user, 1)
  }

  /** Takes back one `add`. */
  remove(user: string): void {
    this.#move(user, -1)
  }

  #move(user: string, by: 1 | -1): void {
    const before = this.of(user)
    const after = before + by
    if (after < 0) return
    const peers = this.#byCount.get(before)
    peers?.delete(user)
    if (peers?.size === 0) this.#byCount.delete(before)
    if (after === 0) this.#counts.delete(user)
    else {
      this.#counts.set(user, after)
      const others = this.#byCount.get(after)
      if (others) others.add(user)
      else this.#byCount.set(after, new Set([user]))
    }
    // A count moves by one, so the greatest does too.
    if (after > this.#most || (before === this.#most && !this.#byCount.has(before))) this.#most = after
  }
}

// Counts per user without ranking.

/** Who has none takes no room. */
export function createTally() {
  const counts = new Map<string, number>()
  return {
    of: (user: string): number => counts.get(user) ?? 0,
    add(user: string, step: number): void {
      const count = (counts.get(user) ?? 0) + step
      if (count > 0) counts.set(user, count)
      else counts.delete(user)
    },
  }
}
