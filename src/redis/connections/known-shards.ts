/** Caches which shard has a connection. A connection never changes its user, and so never its shard. */

/** Maximum number of entries, about 100 bytes each. For an evicted one every shard is queried once. */
const KNOWN_MAX = 100_000

interface KnownShards {
  get(id: string): number | undefined
  set(id: string, shard: number): void
}

/** Creates the cache. It evicts the least recently used entry. */
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
