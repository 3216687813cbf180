/** The deduplicator of one process, and its inspector. */

import { createClock } from '../internal/async/timer.js'
import {
  ClaimInput,
  ClaimOptions,
  type Deduplicator,
  type DeduplicatorInspector,
} from '../internal/contract/deduplicator.js'
import type { Inspected } from '../internal/contract/families.js'
import { toTimestamp } from '../internal/contract/ids.js'
import { type Clocked, parseInput, readOptions, withClock } from '../internal/contract/options.js'
import { FairShare, type Place } from '../internal/fair-share/fair-share.js'
import { ExpiryQueue, type Queued, unqueued } from './table/expiry-queue.js'

/** Options of `createDeduplicator`. */
export const DeduplicatorOptions = withClock(ClaimOptions)
/** Options of `createDeduplicator`. */
export interface DeduplicatorOptions extends ClaimOptions, Clocked {}

interface ClaimEntry extends Queued {
  readonly key: string
  readonly owner: Owner
  /** Time of the wall clock in epoch ms, for display. */
  readonly claimedAt: number
  place?: Place<ClaimEntry>
}

/** A user with at least one entry. */
interface Owner {
  readonly user_id: string
  accepted: number
  duplicates: number
}

/**
 * Creates a deduplicator in memory. A claim is valid for `ttlMs`; a duplicate does not extend it.
 *
 * @example
 * const deduplicator = createDeduplicator()
 * await deduplicator.claim({ user_id: 'u', message_id: 'm' }) // true, then false
 */
export function createDeduplicator(options: DeduplicatorOptions = {}): Inspected<Deduplicator, DeduplicatorInspector> {
  const { ttlMs, capacity, now } = readOptions(DeduplicatorOptions, options)
  const clock = createClock(now)
  const seen = new Map<string, ClaimEntry>()
  const queue = new ExpiryQueue<ClaimEntry>()
  const owners = new Map<string, Owner>()
  const shares = new FairShare<ClaimEntry>({ entries: capacity })
  const counters = { accepted: 0, duplicates: 0, evicted: 0 }

  // Unambiguous, because neither ids nor stream names contain control characters.
  const keyOf = ({ user_id, stream = '', message_id }: ClaimInput) => `${user_id}\n${stream}\n${message_id}`

  function forget({ owner, key, place }: ClaimEntry): void {
    seen.delete(key)
    if (place) shares.remove(place)
    if (!shares.of(owner.user_id)) owners.delete(owner.user_id)
  }

  function drop(entry: ClaimEntry): void {
    queue.remove(entry)
    forget(entry)
  }

  const sweep = (time: number) => queue.sweep(time - ttlMs, forget)

  return {
    inspector: {
      summary() {
        sweep(clock.steady())
        return { entries: seen.size, capacity, ttl_ms: ttlMs, ...counters }
      },
      userSummary(user_id) {
        sweep(clock.steady())
        const owner = owners.get(user_id)
        const held = shares.of(user_id)
        if (!owner || !held) return null
        const { accepted, duplicates } = owner
        const oldest_at = held.oldest ? toTimestamp(held.oldest.claimedAt) : null
        return { user_id, entries: held.entries, accepted, duplicates, oldest_at }
      },
    },
    async claim(given) {
      const input = parseInput(ClaimInput, given)
      const time = clock.steady()
      sweep(time)
      const key = keyOf(input)
      const known = seen.get(key)
      if (known && known.touchedAt + ttlMs > time) {
        counters.duplicates++
        known.owner.duplicates++
        return false
      }
      if (known) drop(known)
      const { user_id } = input
      const owner = owners.get(user_id) ?? { user_id, accepted: 0, duplicates: 0 }
      owners.set(user_id, owner)
      const entry: ClaimEntry = { key, owner, claimedAt: clock.now(), ...unqueued() }
      seen.set(key, entry)
      queue.push(entry, time)
      entry.place = shares.add(user_id, entry)
      const evicted = shares.excess(entry.place)
      if (evicted) {
        counters.evicted++
        drop(evicted)
      }
      counters.accepted++
      owner.accepted++
      return true
    },
    async release(given) {
      const entry = seen.get(keyOf(parseInput(ClaimInput, given)))
      if (!entry || entry.touchedAt + ttlMs <= clock.steady()) return false
      drop(entry)
      counters.accepted--
      entry.owner.accepted--
      return true
    },
  }
}
