/** The newest event of each topic of one process, for the list of sites. */
import type { LastEvent, LastEvents, SiteEvent } from '../../contract/event-bus.js'
import { FairShare, type Place } from '../../fair-share/fair-share.js'
import { createVersion } from '../table/version.js'

/**
 * Maximum number of remembered topics: a name and three values each, some megabytes in all. Above it, the largest share
 * loses its oldest.
 */
const REMEMBERED = 10_000

interface Noted {
  at: string
  epoch: string
  seq: number
  place: Place<string>
}

interface LastEventLog extends Required<LastEvents> {
  /** Remembers `event` as the newest event of the user's topic. */
  note(user: string, topic: string, epoch: string, event: SiteEvent): void
}

export function createLastEvents(): LastEventLog {
  const noted = new Map<string, Noted>()
  const shares = new FairShare<string>({ entries: REMEMBERED })
  const version = createVersion()

  return {
    version: version.text,
    note(user, topic, epoch, { seq, published_at: at }) {
      version.raise()
      const known = noted.get(topic)
      // Only its position: the contents of an event are for its readers.
      if (known) {
        known.at = at
        known.epoch = epoch
        known.seq = seq
        return
      }
      const place = shares.add(user, topic)
      noted.set(topic, { at, epoch, seq, place })
      for (let left = shares.excess(place); left !== undefined; left = shares.excess(place)) {
        const gone = noted.get(left)
        noted.delete(left)
        if (gone) shares.remove(gone.place)
      }
    },
    lastEvent(topic): LastEvent | null {
      const known = noted.get(topic)
      return known ? { at: known.at, position: { epoch: known.epoch, seq: known.seq } } : null
    },
  }
}
