/** The sessions of one process, open or ended, with the share of each owner. */
import { FINAL_KEPT_MS, type Session, type SessionShare } from '../../internal/contract/sessions.js'
import type { SiteKey } from '../../internal/contract/sites.js'
import { Refusal } from '../../internal/refusal.js'
import { expiredSession, isFinal, sessionAt } from '../../internal/rules/sessions.js'
import { FairQueue, type Queued, unqueued } from '../table/expiry-queue.js'
import { FieldIndex, type Indexed, NOT_COUNTED } from '../table/field-index.js'
import { createListing } from '../table/listing.js'
import { byNumber, OrderedIndex } from '../table/ordered-index.js'
import { createVersion } from '../table/version.js'

// Detects changes of sessions, by writes or by the passing of time, for inspectors' versions.

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
function createSessionChanges<E extends Changing>(nextOf: (entry: E, time: number) => number, now: () => number) {
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
      let remaining = PASSED_MAX
      for (let next = due.first(); next && next.changesAt <= time; next = due.first()) {
        version.raise()
        if (remaining-- === 0) return null
        plan(next, time)
      }
      return version.text()
    },
  }
}

export interface SessionEntry extends Queued, Indexed {
  session: Session
  /** Epoch ms, or Infinity. */
  readonly expiresAt: number
  /** When it next changes without a write: epoch ms, or Infinity. */
  changesAt: number
  readonly shares: Map<string, SessionShare>
  readonly watchers: Set<() => void>
}

/** Returns the entry of a session that was just opened. @param sequence Position in the order in which sessions were opened. */
export const entryOf = (session: Session, sequence: number): SessionEntry => ({
  ...unqueued(),
  sequence,
  cell: NOT_COUNTED,
  session,
  expiresAt: session.expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(session.expires_at),
  changesAt: Number.POSITIVE_INFINITY,
  shares: new Map(),
  watchers: new Set(),
})

interface SessionEntriesOptions {
  maxSessions: number
  maxSessionsPerUser: number
  now: () => number
}

export type SessionEntries = ReturnType<typeof createSessionEntries>

const siteKey = ({ owner, site_id }: SiteKey) => `${owner}\n${site_id}`

/** Returns the first instant after `time` at which the entry changes or one of its shares expires. */
function nextChange({ session, expiresAt, touchedAt, shares }: SessionEntry, time: number): number {
  const isOver = isFinal(session)
  let next = Number.POSITIVE_INFINITY
  const offer = (at: number) => {
    if (at > time && at < next) next = at
  }
  if (!isOver) offer(expiresAt)
  offer((isOver ? touchedAt : expiresAt) + FINAL_KEPT_MS)
  for (const { expires_at } of shares.values()) if (expires_at !== null) offer(Date.parse(expires_at))
  return next
}

export function createSessionEntries({ maxSessions, maxSessionsPerUser, now }: SessionEntriesOptions) {
  const byId = new Map<string, SessionEntry>()
  const openOf = new FieldIndex<SessionEntry>()
  const openAt = new FieldIndex<SessionEntry>()
  /** Ended ones, by when they ended. */
  const ended = new FairQueue<SessionEntry>(({ session }) => session.owner)
  const listing = createListing<SessionEntry>({
    owner: ({ session }) => session.owner,
    site_id: ({ session }) => session.site_id,
  })
  const changes = createSessionChanges(nextChange, now)
  const openCount = () => byId.size - ended.size

  function close(entry: SessionEntry): void {
    openOf.remove(entry.session.owner, entry)
    openAt.remove(siteKey(entry.session), entry)
  }

  function forget(entry: SessionEntry): void {
    changes.gone(entry)
    byId.delete(entry.session.session_id)
    listing.remove(entry)
  }

  /** Deletes sessions that ended an hour ago, then the oldest of the owner with most of them. */
  function forgetEnded(): void {
    ended.sweep(now() - FINAL_KEPT_MS, forget)
    for (let entry = ended.surplus; entry && ended.size > maxSessions; entry = ended.surplus) {
      ended.remove(entry)
      forget(entry)
    }
  }

  function finish(entry: SessionEntry, session: Session): void {
    close(entry)
    entry.session = session
    ended.push(entry, Date.parse(session.updated_at))
    changes.changed(entry)
    forgetEnded()
  }

  /** Expiry is computed on access; there is no timer. */
  function expire(entry: SessionEntry): void {
    if (!isFinal(entry.session) && entry.expiresAt <= now()) finish(entry, expiredSession(entry.session))
  }

  return {
    finish,
    /** Records a change of a session or its shares, other than its end. */
    changed: changes.changed,
    version: changes.version,

    /** Returns the entry as of now. */
    find(sessionId: string): SessionEntry | undefined {
      const entry = byId.get(sessionId)
      if (entry) expire(entry)
      forgetEnded()
      // A session that ended an hour ago may have been deleted just now, or come after one that ended later.
      return entry && sessionAt(entry.session, now()) ? entry : undefined
    },

    /** @throws Refusal `capacity_exceeded` if the owner's share or the registry is full of open sessions. */
    requireRoom(owner: string): void {
      if (openOf.size(owner) >= maxSessionsPerUser) for (const entry of [...openOf.after(owner, 0)]) expire(entry)
      if (openOf.size(owner) >= maxSessionsPerUser)
        throw new Refusal('capacity_exceeded', `maximum of ${maxSessionsPerUser} sessions per owner reached`)
      if (openCount() >= maxSessions) for (const entry of [...byId.values()]) expire(entry)
      if (openCount() >= maxSessions)
        throw new Refusal('capacity_exceeded', `maximum of ${maxSessions} sessions reached`)
    },

    add(entry: SessionEntry): void {
      const { session } = entry
      // A host may reuse an id.
      const before = byId.get(session.session_id)
      if (before) {
        if (isFinal(before.session)) ended.remove(before)
        else close(before)
        forget(before)
      }
      byId.set(session.session_id, entry)
      listing.add(entry)
      openOf.add(session.owner, entry)
      openAt.add(siteKey(session), entry)
      changes.changed(entry)
    },

    arrive: listing.arrive,
    list: listing.list,

    view: (entry: SessionEntry) => sessionAt(entry.session, now()),

    /** Returns the number of open sessions of a site, or `null` if more than `most` would have to be examined. */
    countAt(site: SiteKey, most: number): { count: number | null; examined: number } {
      const key = siteKey(site)
      const examined = openAt.size(key)
      if (examined > most) return { count: null, examined: 0 }
      const time = now()
      return { count: [...openAt.after(key, 0)].filter(({ expiresAt }) => expiresAt > time).length, examined }
    },
  }
}
