/** Entries in the order of their times, and each user's by themselves, for what keeps a bounded number of all of them. */
import { Holders } from '../../fair-share/holders.js'
import { ExpiryQueue, type Queued, unqueued } from './expiry-queue.js'

/** An entry's place among those of its user: an entry itself can be in one queue only. */
interface Place<E> extends Queued {
  readonly entry: E
}

/** A queue that gives up, when there is too much in it, what is oldest of whoever has most. */
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

  /** What goes first when there is too much. */
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

  /** Takes out an entry that is in this queue. */
  remove(entry: E): void {
    this.#all.remove(entry)
    this.#leave(entry)
  }

  /** As `ExpiryQueue.sweep`. */
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
