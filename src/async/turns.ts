/** Whose turn it is: first come, first served, as many at a time as may be, and only while there is a link. */

/** Somebody who waits, or has had their turn. */
export interface Turn {
  readonly size: number
  readonly start: () => void
  before: Turn | undefined
  after: Turn | undefined
  isWaiting: boolean
}

export interface Turns {
  /** Calls `start` in turn, at once where it can be. Nothing is kept, and `undefined` answered, beyond the bound of sizes. */
  wait(size: number, start: () => void): Turn | undefined
  /** Leaves the queue at once. Nothing for one who has started. */
  leave(turn: Turn): void
  /** One who has started is done. */
  end(): void
}

/**
 * @param most Started and not done, at a time.
 * @param sizes What all who wait may come to in all.
 * @param ready `undefined` when the next may start, else a promise of when to look again; `null` for never.
 */
export function createTurns(most: number, sizes: number, ready: () => undefined | null | Promise<void>): Turns {
  let running = 0
  let size = 0
  let first: Turn | undefined
  let last: Turn | undefined
  let watched: Promise<void> | undefined

  function leave(turn: Turn): void {
    if (!turn.isWaiting) return
    turn.isWaiting = false
    size -= turn.size
    if (turn.before) turn.before.after = turn.after
    else first = turn.after
    if (turn.after) turn.after.before = turn.before
    else last = turn.before
    turn.before = undefined
    turn.after = undefined
  }

  function proceed(): void {
    while (first && running < most) {
      const link = ready()
      if (link !== undefined) {
        watch(link)
        return
      }
      const next = first
      leave(next)
      running++
      next.start()
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
    wait(itsSize, start) {
      if (size + itsSize > sizes) return undefined
      const turn: Turn = { size: itsSize, start, before: last, after: undefined, isWaiting: true }
      if (last) last.after = turn
      else first = turn
      last = turn
      size += itsSize
      proceed()
      return turn
    },
    leave,
    end() {
      running--
      proceed()
    },
  }
}
