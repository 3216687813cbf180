/** Entries in the order of their times, in all and per user, for collections with a limit. */
import { Holders } from '../../fair-share/holders.js'
import { ExpiryQueue, type Queued, unqueued } from './expiry-queue.js'

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
