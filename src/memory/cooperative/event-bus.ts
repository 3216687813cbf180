/** The event bus of one process: topics that count from 1 and deliver live events; nothing is retained for later. */
import {
  EventBusOptions,
  type LastEvent,
  type LastEvents,
  PublishedEvent,
  type SiteEvent,
  type SiteEventBus,
} from '../../internal/contract/event-bus.js'
import { type Clocked, parseInput, readOptions, withClock } from '../../internal/contract/options.js'
import { createTopic, type Topic } from '../../internal/event-ring/topic.js'
import { FairShare, Holders, type Place } from '../../internal/fair-share/fair-share.js'
import { Refusal } from '../../internal/refusal.js'
import { createVersion } from '../table/version.js'

// The newest event of each topic of one process, for the list of sites.

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

function createLastEvents(): LastEventLog {
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
      for (let evicted = shares.excess(place); evicted !== undefined; evicted = shares.excess(place)) {
        const gone = noted.get(evicted)
        noted.delete(evicted)
        if (gone) shares.remove(gone.place)
      }
    },
    lastEvent(topic): LastEvent | null {
      const known = noted.get(topic)
      return known ? { at: known.at, position: { epoch: known.epoch, seq: known.seq } } : null
    },
  }
}

// How long a topic without readers keeps its position, in ms: long enough for a viewer to reconnect and learn what it
// missed.
const UNREAD_MS = 600_000
// Maximum number of topics without readers: ten thousand take a few megabytes. Above it, the user with most of them
// loses the least recently used one.
const UNREAD_MAX = 10_000

/** Returns the user of a topic; for sites, the user in the canonical stream. */
const userOf = (topic: string) => /^users\/([^/]+)\//.exec(topic)?.[1] ?? ''

/** Options of `createCooperativeSiteEventBus`. */
export const CooperativeSiteEventBusOptions = withClock(EventBusOptions)
/** Options of `createCooperativeSiteEventBus`. */
export interface CooperativeSiteEventBusOptions extends EventBusOptions, Clocked {}

/**
 * Creates the event bus of one process. A topic counts events even without readers. Without readers it keeps its
 * position for ten minutes after its last event or reader, then it starts a new epoch at 1.
 *
 * @example
 * const bus = createCooperativeSiteEventBus()
 * for await (const delivery of bus.subscribe('users/alice/sites/notes/events', { signal })) refetch(delivery)
 */
export function createCooperativeSiteEventBus(options: CooperativeSiteEventBusOptions = {}): SiteEventBus & LastEvents {
  const { now, newId, queueSize } = readOptions(CooperativeSiteEventBusOptions, options)
  const topics = new Map<string, Topic>()
  // Topics without readers, least recently used first, with the time of their last event or reader.
  const unread = new Map<string, number>()
  // The same by user, each in the same order.
  const unreadOf = new Map<string, Set<string>>()
  const holders = new Holders()
  const last = createLastEvents()
  let closed = false

  function isRead(name: string): void {
    if (!unread.delete(name)) return
    const user = userOf(name)
    const own = unreadOf.get(user)
    own?.delete(name)
    if (own?.size === 0) unreadOf.delete(user)
    holders.remove(user)
  }

  function touch(name: string): void {
    isRead(name)
    if (!topics.has(name)) return
    const user = userOf(name)
    unread.set(name, now())
    unreadOf.set(user, (unreadOf.get(user) ?? new Set()).add(name))
    holders.add(user)
    if (unread.size <= UNREAD_MAX) return
    const [oldest = name] = unreadOf.get(holders.fullest ?? '') ?? []
    forget(oldest)
  }

  function forget(name: string): void {
    isRead(name)
    topics.delete(name)
  }

  function forgetUnread(): void {
    for (const [name, touchedAt] of unread) {
      if (touchedAt + UNREAD_MS > now()) break
      forget(name)
    }
  }

  function topicOf(name: string): Topic {
    if (closed) throw new Refusal('closed', 'the event bus is closed')
    forgetUnread()
    const known = topics.get(name)
    if (known) return known
    const topic = createTopic({ queueSize, position: { epoch: newId(), seq: 0 }, onUnread: () => touch(name) })
    topics.set(name, topic)
    return topic
  }

  return {
    queueSize,
    lastEvent: last.lastEvent,
    version: last.version,
    async publish(name, event) {
      parseInput(PublishedEvent, event)
      const topic = topicOf(name)
      const positioned: SiteEvent = Object.freeze({ ...event, seq: topic.position.seq + 1 })
      topic.append(positioned)
      last.note(userOf(name), name, topic.position.epoch, positioned)
      if (topic.readers === 0) touch(name)
      return topic.readers
    },
    subscribe(name, subscribeOptions) {
      const topic = topicOf(name)
      const subscription = topic.subscribe(subscribeOptions)
      if (topic.readers === 0) touch(name)
      else isRead(name)
      return subscription
    },
    async close() {
      closed = true
      for (const topic of topics.values()) topic.close()
      topics.clear()
    },
  }
}
