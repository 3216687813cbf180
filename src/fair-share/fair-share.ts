/** Shared bounds with per-user fairness: evictions always come from the user who holds the most. */
import { MaxHeap } from './max-heap.js'

/** Maximum entries and bytes. Absent: unlimited. */
export interface ShareBounds {
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
