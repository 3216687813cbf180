/** A sorted index in chunks, for the lists, pages and deadlines of the memory facilities. */

/** Maximum number of values per chunk: moving half of them for an insert costs less than finding the position. */
const CHUNK = 512

/** Compares numbers: sequence numbers, instants. */
export const byNumber = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0)

/**
 * Values ordered by unique keys; the key of a value must not change while it is in the index. Every operation is a
 * binary search and a move within one chunk, even with a million values. A class, because there are millions of small
 * ones: one per user and per client.
 */
export class OrderedIndex<K, V> {
  #chunks: V[][] = []
  #size = 0
  readonly #keyOf: (value: V) => K
  readonly #compare: (a: K, b: K) => number

  constructor(keyOf: (value: V) => K, compare: (a: K, b: K) => number) {
    this.#keyOf = keyOf
    this.#compare = compare
  }

  get size(): number {
    return this.#size
  }

  /** Returns the value with the smallest key. */
  first(): V | undefined {
    return this.#chunks[0]?.[0]
  }

  /** Returns the value with the greatest key. */
  last(): V | undefined {
    return this.#chunks.at(-1)?.at(-1)
  }

  get(key: K): V | undefined {
    const chunk = this.#chunks[this.#chunkOf(key)]
    if (chunk === undefined) return undefined
    const value = chunk[this.#placeIn(chunk, key)]
    return value !== undefined && this.#compare(this.#keyOf(value), key) === 0 ? value : undefined
  }

  /** Adds `value`, or replaces the one with the same key. */
  insert(value: V): void {
    const key = this.#keyOf(value)
    const last = this.#chunks.at(-1)
    if (last === undefined || this.#compare(key, this.#lastKey(last)) > 0) {
      if (last !== undefined && last.length < CHUNK) last.push(value)
      else this.#chunks.push([value])
      this.#size++
      return
    }
    const at = this.#chunkOf(key)
    const chunk = this.#chunks[at] as V[]
    const place = this.#placeIn(chunk, key)
    if (this.#compare(this.#keyOf(chunk[place] as V), key) === 0) {
      chunk[place] = value
      return
    }
    chunk.splice(place, 0, value)
    this.#size++
    if (chunk.length > CHUNK) this.#chunks.splice(at + 1, 0, chunk.splice(CHUNK >> 1))
  }

  /** Deletes the value with this key. Returns whether it existed. */
  delete(key: K): boolean {
    const at = this.#chunkOf(key)
    const chunk = this.#chunks[at]
    if (chunk === undefined) return false
    const place = this.#placeIn(chunk, key)
    if (this.#compare(this.#keyOf(chunk[place] as V), key) !== 0) return false
    // The usual case: the oldest value goes first.
    if (place === 0) chunk.shift()
    else chunk.splice(place, 1)
    this.#size--
    this.#mergeInto(at)
    return true
  }

  /** Returns the number of keys up to `key`. Sums the lengths of chunks: microseconds with a million values. */
  rank(key: K): number {
    const at = this.#chunkOf(key)
    let rank = 0
    for (let i = 0; i < at; i++) rank += (this.#chunks[i] as V[]).length
    const chunk = this.#chunks[at]
    if (chunk === undefined) return rank
    const place = this.#placeIn(chunk, key)
    return rank + place + (this.#compare(this.#keyOf(chunk[place] as V), key) === 0 ? 1 : 0)
  }

  /**
   * Yields the values with keys greater than `key`, in order; all of them for `null`. Do not change the index while
   * iterating.
   */
  *after(key: K | null): Generator<V, void, void> {
    let at = key === null ? 0 : this.#chunkOf(key)
    let place = 0
    const first = this.#chunks[at]
    if (key !== null && first !== undefined) {
      place = this.#placeIn(first, key)
      if (this.#compare(this.#keyOf(first[place] as V), key) === 0) place++
    }
    for (; at < this.#chunks.length; at++, place = 0) {
      const chunk = this.#chunks[at] as V[]
      for (; place < chunk.length; place++) yield chunk[place] as V
    }
  }

  /**
   * Yields the values with keys less than `key`, greatest first; all of them for `null`. Do not change the index while
   * iterating.
   */
  *before(key: K | null): Generator<V, void, void> {
    let at = key === null ? this.#chunks.length : this.#chunkOf(key)
    let place = key === null || at === this.#chunks.length ? 0 : this.#placeIn(this.#chunks[at] as V[], key)
    for (; ; place = (this.#chunks[at] as V[]).length) {
      for (place--; place >= 0; place--) yield (this.#chunks[at] as V[])[place] as V
      if (--at < 0) return
    }
  }

  #lastKey(chunk: V[]): K {
    return this.#keyOf(chunk[chunk.length - 1] as V)
  }

  /** Returns the first chunk whose last key is at least `key`, or the number of chunks. */
  #chunkOf(key: K): number {
    let low = 0
    let high = this.#chunks.length
    if (high > 0 && this.#compare(this.#lastKey(this.#chunks[0] as V[]), key) >= 0) return 0
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(this.#lastKey(this.#chunks[middle] as V[]), key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Returns the first position in `chunk` whose key is at least `key`. */
  #placeIn(chunk: V[], key: K): number {
    let low = 0
    let high = chunk.length
    if (high > 0 && this.#compare(this.#keyOf(chunk[0] as V), key) >= 0) return 0
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#compare(this.#keyOf(chunk[middle] as V), key) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  /** Joins a small chunk with the next one, so that deletions do not leave many almost empty chunks. */
  #mergeInto(at: number): void {
    const chunk = this.#chunks[at] as V[]
    const next = this.#chunks[at + 1]
    if (chunk.length === 0) this.#chunks.splice(at, 1)
    else if (next !== undefined && chunk.length + next.length <= CHUNK >> 1) {
      for (const value of next) chunk.push(value)
      this.#chunks.splice(at + 1, 1)
    }
  }
}
