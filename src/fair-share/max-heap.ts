/** A max-heap with changing weights, for bounds that evict from the largest holder. */

/** A binary heap that tracks the position of each member. An update is O(log members). */
export class MaxHeap<M extends object> {
  readonly #members: M[] = []
  readonly #weights = new Map<M, { weight: number; at: number }>()

  /** The heaviest member; any of them on a tie. `except` is skipped. */
  top(except?: M): M | undefined {
    const [first, left, right] = this.#members
    if (first !== except || first === undefined) return first
    return right !== undefined && this.#weightAt(2) > this.#weightAt(1) ? right : left
  }

  /** What `member` weighs now; with 0 it is not a member any more. */
  weigh(member: M, weight: number): void {
    const known = this.#weights.get(member)
    if (weight > 0) {
      if (known) known.weight = weight
      else this.#weights.set(member, { weight, at: this.#members.push(member) - 1 })
      this.#sift(known?.at ?? this.#members.length - 1)
      return
    }
    if (!known) return
    const { at } = known
    this.#swap(at, this.#members.length - 1)
    this.#members.pop()
    this.#weights.delete(member)
    if (at < this.#members.length) this.#sift(at)
  }

  #weightAt(at: number): number {
    const member = this.#members[at]
    return member === undefined ? 0 : (this.#weights.get(member)?.weight ?? 0)
  }

  #swap(a: number, b: number): void {
    if (a === b) return
    const [x, y] = [this.#members[a] as M, this.#members[b] as M]
    this.#members[a] = y
    this.#members[b] = x
    for (const [member, at] of [
      [y, a],
      [x, b],
    ] as const) {
      const known = this.#weights.get(member)
      if (known) known.at = at
    }
  }

  /** Moves the member at `at` to where its weight belongs. */
  #sift(at: number): void {
    let place = at
    while (place > 0) {
      const above = (place - 1) >> 1
      if (this.#weightAt(above) >= this.#weightAt(place)) break
      this.#swap(above, place)
      place = above
    }
    for (;;) {
      const left = 2 * place + 1
      const heavier = this.#weightAt(left + 1) > this.#weightAt(left) ? left + 1 : left
      if (this.#weightAt(heavier) <= this.#weightAt(place)) return
      this.#swap(heavier, place)
      place = heavier
    }
  }
}
