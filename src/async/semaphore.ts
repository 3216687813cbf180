/** A semaphore: permits in the order of asking, as many at a time as there are, and only while there is a link. */

/** Who waits for a permit, or has had one. */
interface Waiter {
  readonly size: number
  readonly start: () => unknown
  before: Waiter | undefined
  after: Waiter | undefined
  isWaiting: boolean
}

interface Semaphore {
  /**
   * Calls `start` once there is a permit for it, at once where there is. Nothing is kept, and `undefined` answered, beyond
   * the bound of sizes. A `start` that answers `false` takes no permit: the next one has its turn.
   */
  acquire(size: number, start: () => unknown): Waiter | undefined
  /** Leaves the queue at once. Nothing for one who has started. */
  leave(waiter: Waiter): void
  /** One who has started is done. */
  release(): void
  /** Whether no permit is left. */
  readonly isFull: boolean
}

/**
 * @param permits Started and not done, at a time.
 * @param sizes What all who wait may come to in all.
 * @param ready `undefined` when the next may start, else a promise of when to look again; `null` for never.
 */
export function createSemaphore(
  permits: number,
  sizes: number,
  ready: () => undefined | null | Promise<void>,
): Semaphore {
  let running = 0
  let size = 0
  let first: Waiter | undefined
  let last: Waiter | undefined
  let watched: Promise<void> | undefined

  function leave(waiter: Waiter): void {
    if (!waiter.isWaiting) return
    waiter.isWaiting = false
    size -= waiter.size
    if (waiter.before) waiter.before.after = waiter.after
    else first = waiter.after
    if (waiter.after) waiter.after.before = waiter.before
    else last = waiter.before
    waiter.before = undefined
    waiter.after = undefined
  }

  function proceed(): void {
    while (first && running < permits) {
      const link = ready()
      if (link !== undefined) {
        watch(link)
        return
      }
      const next = first
      leave(next)
      running++
      if (next.start() === false) running--
    }
  }

  // One reaction for all who wait, so that a link that stays away gathers none of those who have given up.
  function watch(link: Promise<void> | null): void {
    if (link === null || link === watched) return
    watched = link
    link.then(() => {
      watched = undefined
      proceed()
    })
  }

  return {
    acquire(itsSize, start) {
      if (size + itsSize > sizes) return undefined
      const waiter: Waiter = { size: itsSize, start, before: last, after: undefined, isWaiting: true }
      if (last) last.after = waiter
      else first = waiter
      last = waiter
      size += itsSize
      proceed()
      return waiter
    },
    leave,
    release() {
      running--
      proceed()
    },
    get isFull() {
      return running >= permits
    },
  }
}
