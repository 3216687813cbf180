/** Entries in the order in which they were last touched, for every facility that lets things age without a timer. */
import { EXAMINED_MAX } from '../../contract/limits.js'

/** A member of a queue, at most of one at a time. Its fields are the queue's. */
export interface Queued {
  /** When it was last touched, in ms of a clock that never goes back. */
  touchedAt: number
  older: Queued | null
  newer: Queued | null
}

/** The fields of an entry that is in no queue yet. */
export const unqueued = (): Queued => ({ touchedAt: 0, older: null, newer: null })

/**
 * A linked list, oldest first: touching and leaving cost the same however many there are, which a `Map` in insertion
 * order does not hold to, since its iterator walks over every hole at the front.
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
   * Adds an entry that is in no queue behind all that were touched at the same time or earlier. That is the end, but for
   * the few that were looked at by themselves while the sweep lagged behind.
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

  /** Takes out an entry that is in this queue. */
  remove(entry: E): void {
    if (entry.older) entry.older.newer = entry.newer
    else this.#oldest = entry.newer as E | null
    if (entry.newer) entry.newer.older = entry.older
    else this.#newest = entry.older as E | null
    entry.older = entry.newer = null
    this.#size--
  }

  /** Moves an entry that is in this queue to where its new time belongs. */
  touch(entry: E, at: number): void {
    this.remove(entry)
    this.push(entry, at)
  }

  /**
   * Takes out entries last touched at `until` or earlier and hands each to `expire`: at most 10,000 per call, so that
   * no caller pays for a whole night. `costOf` says what an entry drags along, which counts as well; one entry goes
   * whatever it drags.
   *
   * @returns whether none was left behind
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
