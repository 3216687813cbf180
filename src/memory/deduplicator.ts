/** The live deduplicator of one process, and the inspector that looks through at it. */
import { ClaimInput, type Deduplicator, type DeduplicatorInspector } from '../contract/deduplicator.js'
import { toTimestamp } from '../contract/ids.js'
import { parseInput } from '../contract/input.js'
import type { Inspected } from '../contract/inspectors.js'
import { createClock } from './clock.js'
import { ExpiryQueue, type Queued, unqueued } from './expiry-queue.js'
import { byNumber, OrderedIndex } from './ordered-index.js'

export interface DeduplicatorOptions {
  /** Epoch ms. @default Date.now */
  now?: () => number
  /** How long a message counts as seen. @default 600000 */
  ttlMs?: number
  /** Messages remembered; at capacity the oldest leaves. @default 100000 */
  capacity?: number
}

interface Seen extends Queued {
  readonly key: string
  readonly sequence: number
  readonly owner: Owner
  /** The wall's time, for show. */
  readonly claimedAt: number
}

/** A user with at least one entry. */
interface Owner {
  readonly user_id: string
  /** In the order of their claims. */
  readonly entries: OrderedIndex<number, Seen>
  accepted: number
  duplicates: number
}

const newOwner = (user_id: string): Owner => ({
  user_id,
  entries: new OrderedIndex((seen) => seen.sequence, byNumber),
  accepted: 0,
  duplicates: 0,
})

/**
 * A deduplicator in memory. A claim holds from its first moment for `ttlMs`; a duplicate does not prolong it.
 *
 * @example
 * const deduplicator = createDeduplicator()
 * await deduplicator.claim({ user_id: 'u', message_id: 'm' }) // true, then false
 */
export function createDeduplicator(options: DeduplicatorOptions = {}): Inspected<Deduplicator, DeduplicatorInspector> {
  const { ttlMs = 600_000, capacity = 100_000 } = options
  const clock = createClock(options.now ?? Date.now)
  const seen = new Map<string, Seen>()
  const queue = new ExpiryQueue<Seen>()
  const owners = new Map<string, Owner>()
  let claims = 0
  const counters = { accepted: 0, duplicates: 0, evicted: 0 }

  // Ids hold no control character, so that the pair is unmistakable.
  const keyOf = ({ user_id, message_id }: ClaimInput) => `${user_id}\n${message_id}`

  function forget(entry: Seen): void {
    const { owner, key } = entry
    seen.delete(key)
    owner.entries.delete(entry.sequence)
    if (owner.entries.size === 0) owners.delete(owner.user_id)
  }

  function drop(entry: Seen): void {
    queue.remove(entry)
    forget(entry)
  }

  const settle = (time: number) => queue.sweep(time - ttlMs, forget)

  return {
    inspector: {
      summary() {
        settle(clock.steady())
        return { entries: seen.size, capacity, ttl_ms: ttlMs, ...counters }
      },
      userSummary(user_id) {
        settle(clock.steady())
        const owner = owners.get(user_id)
        if (!owner) return null
        const { entries, accepted, duplicates } = owner
        const oldest = entries.first()
        const oldest_at = oldest ? toTimestamp(oldest.claimedAt) : null
        return { user_id, entries: entries.size, accepted, duplicates, oldest_at }
      },
    },
    async claim(given) {
      const input = parseInput(ClaimInput, given)
      const time = clock.steady()
      settle(time)
      const key = keyOf(input)
      const known = seen.get(key)
      if (known && known.touchedAt + ttlMs > time) {
        counters.duplicates++
        known.owner.duplicates++
        return false
      }
      if (known) drop(known)
      if (seen.size >= capacity && queue.oldest) {
        counters.evicted++
        drop(queue.oldest)
      }
      const { user_id } = input
      const owner = owners.get(user_id) ?? newOwner(user_id)
      owners.set(user_id, owner)
      const entry: Seen = { key, owner, sequence: ++claims, claimedAt: clock.now(), ...unqueued() }
      seen.set(key, entry)
      owner.entries.insert(entry)
      queue.push(entry, time)
      counters.accepted++
      owner.accepted++
      return true
    },
    async release(given) {
      const entry = seen.get(keyOf(parseInput(ClaimInput, given)))
      if (!entry) return false
      drop(entry)
      return true
    },
  }
}
