/** Detects changes of sessions, by writes or by the passing of time, for inspectors' versions. */
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createVersion } from '../table/version.js'

/** An entry that will change at a known time. */
interface Changing {
  readonly sequence: number
  /** Time of the next change in epoch ms, or Infinity. Only set here. */
  changesAt: number
}

/** Maximum number of changes that one call processes: about a millisecond. */
const PASSED_MAX = 1_000

const byInstant = (a: Changing, b: Changing) => byNumber(a.changesAt, b.changesAt) || byNumber(a.sequence, b.sequence)

/** @param nextOf Returns the first instant after `time` at which an entry changes. */
export function createSessionChanges<E extends Changing>(
  nextOf: (entry: E, time: number) => number,
  now: () => number,
) {
  const version = createVersion()
  const due = new OrderedIndex<Changing, E>((entry) => entry, byInstant)
  const all = new Set<E>()
  let seenAt = Number.NEGATIVE_INFINITY

  function forget(entry: E): void {
    due.delete(entry)
    entry.changesAt = Number.POSITIVE_INFINITY
  }

  function plan(entry: E, time: number): void {
    forget(entry)
    entry.changesAt = nextOf(entry, time)
    if (entry.changesAt < Number.POSITIVE_INFINITY) due.insert(entry)
  }

  return {
    /** Records that a write has changed or added `entry`. */
    changed(entry: E): void {
      version.raise()
      all.add(entry)
      plan(entry, now())
    },

    /** Records that `entry` was deleted. */
    gone(entry: E): void {
      version.raise()
      all.delete(entry)
      forget(entry)
    },

    /** Returns a new text after every change, or `null` if there are more changes than one call should process. */
    version(): string | null {
      const time = now()
      // The clock was set back: expired entries are valid again, so any record may have changed.
      if (time < seenAt) {
        version.raise()
        for (const entry of all) plan(entry, time)
      }
      seenAt = time
      let left = PASSED_MAX
      for (let next = due.first(); next && next.changesAt <= time; next = due.first()) {
        version.raise()
        if (left-- === 0) return null
        plan(next, time)
      }
      return version.text()
    },
  }
}
