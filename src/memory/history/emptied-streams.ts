/** The last sequence numbers of streams without messages, so that their numbering continues. */
import { FairShare, type Place } from '../../fair-share/fair-share.js'

interface Emptied {
  readonly stream: string
  readonly lastSequence: number
}

/** A bounded memory. It evicts the oldest entry of the largest share. */
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

  /** Removes and returns the last sequence number of a stream; 0 if there is none. */
  recall(stream: string): number {
    const place = this.#places.get(stream)
    if (!place) return 0
    this.#places.delete(stream)
    this.#shares.remove(place)
    return place.entry.lastSequence
  }
}
