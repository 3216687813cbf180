/** Counts per user without ranking. */

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
