/** Which shard has a connection, as far as this process has seen it: a connection never changes its user, so never its shard. */

/** Some 100 bytes each. Whoever is forgotten is looked for in every shard, once. */
const KNOWN_MAX = 100_000

interface KnownShards {
  get(id: string): number | undefined
  set(id: string, shard: number): void
}

/** The most recently used are kept. */
export function createKnownShards(most = KNOWN_MAX): KnownShards {
  const known = new Map<string, number>()

  function set(id: string, shard: number): void {
    known.delete(id)
    known.set(id, shard)
    if (known.size <= most) return
    for (const oldest of known.keys()) {
      known.delete(oldest)
      return
    }
  }

  return {
    get(id) {
      const shard = known.get(id)
      if (shard !== undefined) set(id, shard)
      return shard
    },
    set,
  }
}
