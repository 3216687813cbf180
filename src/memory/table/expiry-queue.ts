/** Entries in the order in which they were last touched, for expiry without timers. */
import { EXAMINED_MAX } from '../../internal/contract/limits.js'
import { Holders } from '../../internal/fair-share/fair-share.js'

/** A member of at most one queue. The queue sets its fields. */
export interface Queued {
  /** When it was last touched, in ms of a monotonic clock. */
  touchedAt: number
  older: Queued | null
  newer: Queued | null
}

/** Returns the fields of an entry that is not in a queue. */
export const unqueued = (): Queued => ({ touchedAt: 0, older: null, newer: null })

/**
 * A linked list, oldest first. Touching and removing take constant time, unlike in a `Map` in insertion order, whose
 * iterator visits every deleted slot at the front.
 */
export class ExpiryQueue<E extends Queued> {
  #oldest: E | null = null
  #newest: E | null = null
  #size = 0

  get size(): number {
    return this.#size
  }

  get oldest(): E | null {
    return this.#oldest
  }

  get newest(): E | null {
    return this.#newest
  }

  /**
   * Adds an entry after all that were touched at the same time or earlier. That is usually the end, except for a few
   * entries that were accessed individually while the sweep lagged behind.
   */
  push(entry: E, at: number): void {
    let older = this.#newest
    while (older && older.touchedAt > at) older = older.older as E | null
    const newer = older ? (older.newer as E | null) : this.#oldest
    entry.touchedAt = at
    entry.older = older
    entry.newer = newer
    if (older) older.newer = entry
    else this.#oldest = entry
    if (newer) newer.older = entry
    else this.#newest = entry
    this.#size++
  }

  /** Removes an entry that is in this queue. */
  remove(entry: E): void {
    if (entry.older) entry.older.newer = entry.newer
    else this.#oldest = entry.newer as E | null
    if (entry.newer) entry.newer.older = entry.older
    else this.#newest = entry.older as E | null
    entry.older = entry.newer = null
    this.#size--
  }

  /** Moves an entry that is in this queue to the position of its new time. */
  touch(entry: E, at: number): void {
    this.remove(entry)
    this.push(entry, at)
  }

  /**
   * Removes entries last touched at `until` or earlier and passes each to `expire`: at most 10,000 per call, so that no
   * caller pays for a long idle time. `costOf` returns the additional cost of an entry; at least one entry is removed
   * whatever its cost.
   *
   * @returns whether no due entries remain
   */
  sweep(until: number, expire: (entry: E) => void, costOf: (entry: E) => number = () => 0): boolean {
    for (let spent = 0; this.#oldest && this.#oldest.touchedAt <= until; ) {
      if (spent >= EXAMINED_MAX) return false
      const entry = this.#oldest
      spent += 1 + costOf(entry)
      this.remove(entry)
      expire(entry)
    }
    return true
  }
}

// Entries in the order of their times, in all and per user, for collections with a limit.

/** An entry's position in its user's queue, because an entry itself can be in only one queue. */
interface Place<E> extends Queued {
  readonly entry: E
}

/** A queue that evicts the oldest entry of the user with most entries. */
export class FairQueue<E extends Queued> {
  readonly #all = new ExpiryQueue<E>()
  readonly #own = new Map<string, ExpiryQueue<Place<E>>>()
  readonly #places = new Map<E, Place<E>>()
  readonly #holders = new Holders()
  readonly #userOf: (entry: E) => string

  constructor(userOf: (entry: E) => string) {
    this.#userOf = userOf
  }

  get size(): number {
    return this.#all.size
  }

  /** The next entry to evict. */
  get surplus(): E | undefined {
    const { fullest } = this.#holders
    return fullest === undefined ? undefined : this.#own.get(fullest)?.oldest?.entry
  }

  push(entry: E, at: number): void {
    this.#all.push(entry, at)
    const user = this.#userOf(entry)
    const own = this.#own.get(user) ?? new ExpiryQueue<Place<E>>()
    if (own.size === 0) this.#own.set(user, own)
    const place = { ...unqueued(), entry }
    own.push(place, at)
    this.#places.set(entry, place)
    this.#holders.add(user)
  }

  /** Removes an entry that is in this queue. */
  remove(entry: E): void {
    this.#all.remove(entry)
    this.#leave(entry)
  }

  /** Sweeps as `ExpiryQueue.sweep`. */
  sweep(until: number, expire: (entry: E) => void): boolean {
    return this.#all.sweep(until, (entry) => {
      this.#leave(entry)
      expire(entry)
    })
  }

  #leave(entry: E): void {
    const user = this.#userOf(entry)
    const own = this.#own.get(user)
    const place = this.#places.get(entry)
    if (!own || !place) return
    own.remove(place)
    if (own.size === 0) this.#own.delete(user)
    this.#places.delete(entry)
    this.#holders.remove(user)
  }
}
