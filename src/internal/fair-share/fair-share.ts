/** Shared bounds with per-user fairness: evictions always come from the user who holds the most. */

// A max-heap with changing weights, for bounds that evict from the largest holder.

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

/** Maximum entries and bytes. Absent: unlimited. */
interface ShareBounds {
  entries?: number | undefined
  entriesPerUser?: number | undefined
  bytes?: number | undefined
  bytesPerUser?: number | undefined
}

/** A place in the line of one user. */
export interface Place<E> {
  readonly entry: E
  readonly bytes: number
  readonly holder: Holder<E>
  older: Place<E> | undefined
  newer: Place<E> | undefined
}

/** The entries of one user, oldest first. */
interface Holder<E> {
  readonly user: string
  entries: number
  bytes: number
  oldest: Place<E> | undefined
  newest: Place<E> | undefined
}

/**
 * Entries by user in arrival order. Nothing is removed automatically: `excess` names the next entry to evict. Each step
 * costs O(log users), independent of the number of entries.
 */
export class FairShare<E> {
  readonly #bounds: ShareBounds
  readonly #holders = new Map<string, Holder<E>>()
  readonly #byEntries = new MaxHeap<Holder<E>>()
  readonly #byBytes = new MaxHeap<Holder<E>>()
  #entries = 0
  #bytes = 0

  constructor(bounds: ShareBounds) {
    this.#bounds = bounds
  }

  get entries(): number {
    return this.#entries
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether an entry of this size can fit at all. */
  fits(bytes: number): boolean {
    const { bytes: all = Number.POSITIVE_INFINITY, bytesPerUser = all } = this.#bounds
    return bytes <= Math.min(all, bytesPerUser)
  }

  of(user: string): { entries: number; bytes: number; oldest: E | undefined } | undefined {
    const holder = this.#holders.get(user)
    return holder && { entries: holder.entries, bytes: holder.bytes, oldest: holder.oldest?.entry }
  }

  add(user: string, entry: E, bytes = 0): Place<E> {
    let holder = this.#holders.get(user)
    if (!holder) {
      holder = { user, entries: 0, bytes: 0, oldest: undefined, newest: undefined }
      this.#holders.set(user, holder)
    }
    const place: Place<E> = { entry, bytes, holder, older: holder.newest, newer: undefined }
    if (holder.newest) holder.newest.newer = place
    else holder.oldest = place
    holder.newest = place
    this.#weigh(holder, 1, bytes)
    return place
  }

  /** Takes out an entry that is in. */
  remove(place: Place<E>): void {
    const { holder, older, newer } = place
    if (older) older.newer = newer
    else holder.oldest = newer
    if (newer) newer.older = older
    else holder.newest = older
    this.#weigh(holder, -1, -place.bytes)
    if (holder.entries === 0) this.#holders.delete(holder.user)
  }

  /** Returns the next entry to evict so that `added` can stay; never `added` itself. */
  excess(added: Place<E>): E | undefined {
    const { entries, entriesPerUser, bytes, bytesPerUser } = this.#bounds
    const { holder } = added
    const isOver = (held: number, bound: number | undefined) => bound !== undefined && held > bound
    if (isOver(holder.entries, entriesPerUser) || isOver(holder.bytes, bytesPerUser)) return holder.oldest?.entry
    // Skips a user whose only entry is the one just added.
    const sparing = holder.entries === 1 ? holder : undefined
    if (isOver(this.#entries, entries)) return this.#byEntries.top(sparing)?.oldest?.entry
    if (isOver(this.#bytes, bytes)) return this.#byBytes.top(sparing)?.oldest?.entry
    return undefined
  }

  #weigh(holder: Holder<E>, entries: number, bytes: number): void {
    holder.entries += entries
    holder.bytes += bytes
    this.#entries += entries
    this.#bytes += bytes
    this.#byEntries.weigh(holder, holder.entries)
    if (this.#bounds.bytes !== undefined) this.#byBytes.weigh(holder, holder.entries === 0 ? 0 : holder.bytes)
  }
}

// Counts per user, for stores that evict from the user who holds the most.

/** Counts per user. Every operation is O(1): users with the same count are kept together. */
export class Holders {
  readonly #counts = new Map<string, number>()
  readonly #byCount = new Map<number, Set<string>>()
  #most = 0

  of(user: string): number {
    return this.#counts.get(user) ?? 0
  }

  /** The user with the highest count; any of them on a tie. */
  get fullest(): string | undefined {
    return this.#byCount.get(this.#most)?.values().next().value
  }

  add(user: string): void {
    this.#move(user, 1)
  }

  /** Takes back one `add`. */
  remove(user: string): void {
    this.#move(user, -1)
  }

  #move(user: string, by: 1 | -1): void {
    const before = this.of(user)
    const after = before + by
    if (after < 0) return
    const peers = this.#byCount.get(before)
    peers?.delete(user)
    if (peers?.size === 0) this.#byCount.delete(before)
    if (after === 0) this.#counts.delete(user)
    else {
      this.#counts.set(user, after)
      const others = this.#byCount.get(after)
      if (others) others.add(user)
      else this.#byCount.set(after, new Set([user]))
    }
    // A count moves by one, so the greatest does too.
    if (after > this.#most || (before === this.#most && !this.#byCount.has(before))) this.#most = after
  }
}

// Counts per user without ranking.

/** Who has none takes no room. */
export function createTally() {
  const counts = new Map<string, number>()
  return {
    of: (user: string): number => counts.get(user) ?? 0,
    add(user: string, step: number): void {
      const count = (counts.get(user) ?? 0) + step
      if (count > 0) counts.set(user, count)
      else counts.delete(user)
    },
  }
}
