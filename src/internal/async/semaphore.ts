/** A FIFO semaphore that grants permits only while a connection is available. */

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
   * Calls `start` once a permit is available, immediately if possible. Returns `undefined` and queues nothing when the
   * queued sizes would exceed the bound. If `start` returns `false`, no permit is used and the next waiter runs.
   */
  acquire(size: number, start: () => unknown): Waiter | undefined
  /** Removes the waiter from the queue. Does nothing if it has started. */
  leave(waiter: Waiter): void
  /** One who has started is done. */
  release(): void
  /** Whether all permits are in use. */
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

  // One reaction for all waiters, so that a connection that stays down does not collect reactions of cancelled waiters.
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
