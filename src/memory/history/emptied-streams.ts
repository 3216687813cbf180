/** The memory of streams whose messages have all left, so that their sequence numbers go on. */
import { FairShare, type Place } from '../../fair-share/fair-share.js'

interface Emptied {
  readonly stream: string
  readonly lastSequence: number
}

/** Bounded; what is forgotten is the oldest of whoever left most. */
export class EmptiedStreams {
  readonly #places = new Map<string, Place<Emptied>>()
  readonly #shares: FairShare<Emptied>

  constructor(bound: number) {
    this.#shares = new FairShare({ entries: bound })
  }

  has(stream: string): boolean {
    return this.#places.has(stream)
  }

  remember(user: string, stream: string, lastSequence: number): void {
    const place = this.#shares.add(user, { stream, lastSequence })
    this.#places.set(stream, place)
    for (let left = this.#shares.excess(place); left; left = this.#shares.excess(place)) this.recall(left.stream)
  }

  /** Takes out the last sequence number of a stream; 0 where there is none. */
  recall(stream: string): number {
    const place = this.#places.get(stream)
    if (!place) return 0
    this.#places.delete(stream)
    this.#shares.remove(place)
    return place.entry.lastSequence
  }
}
