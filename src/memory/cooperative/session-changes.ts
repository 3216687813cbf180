/** When sessions have changed, by a write or by an instant that has passed, for whoever asks only for that. */
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createVersion } from '../table/version.js'

/** What has a next instant at which it reads differently. */
interface Changing {
  readonly sequence: number
  /** Epoch ms, or endless. Changes only in here. */
  changesAt: number
}

/** Instants that one question works off: a millisecond or so. */
const PASSED_MAX = 1_000

const byInstant = (a: Changing, b: Changing) => byNumber(a.changesAt, b.changesAt) || byNumber(a.sequence, b.sequence)

/** @param nextOf The first instant after `time` at which an entry reads differently. */
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
    /** A write has changed `entry`, or added it. */
    changed(entry: E): void {
      version.raise()
      all.add(entry)
      plan(entry, now())
    },

    /** `entry` is not there any more. */
    gone(entry: E): void {
      version.raise()
      all.delete(entry)
      forget(entry)
    },

    /** Another text after every change; `null` where more instants have passed than one call should pay for. */
    version(): string | null {
      const time = now()
      // What had run out has not, by a clock that was set back: every answer may be another one.
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
