/** The sessions of one process, open or ended, with the share of each owner. */
import { FINAL_KEPT_MS, type Session, type SessionShare } from '../../contract/sessions.js'
import type { SiteKey } from '../../contract/sites.js'
import { Holders } from '../../fair-share/fair-share.js'
import { Refusal } from '../../refusal.js'
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

export interface SessionEntry {
  /** Position in the order in which sessions were opened. */
  readonly sequence: number
  session: Session
  /** Epoch ms, or Infinity. */
  readonly expiresAt: number
  /** Epoch ms, once it has ended. */
  endedAt: number
  /** When it next changes without a write: epoch ms, or Infinity. */
  changesAt: number
  readonly shares: Map<string, SessionShare>
  readonly watchers: Set<() => void>
}

/** Returns the entry of a session that was just opened. */
export const entryOf = (session: Session, expiresAt: number, sequence: number): SessionEntry => ({
  sequence,
  session,
  expiresAt,
  endedAt: 0,
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

type Entries = Map<string, SessionEntry>

/** Creates an index of entries by id, and by owner, both in the order in which they were added. */
function createIndex() {
  const all: Entries = new Map()
  const byOwner = new Map<string, Entries>()
  return {
    all,
    of: (owner: string): Entries | undefined => byOwner.get(owner),
    add(entry: SessionEntry): void {
      const { session_id, owner } = entry.session
      all.set(session_id, entry)
      const own = byOwner.get(owner)
      if (own) own.set(session_id, entry)
      else byOwner.set(owner, new Map([[session_id, entry]]))
    },
    remove({ session: { session_id, owner } }: SessionEntry): void {
      all.delete(session_id)
      const own = byOwner.get(owner)
      own?.delete(session_id)
      if (own?.size === 0) byOwner.delete(owner)
    },
  }
}

const NONE: ReadonlySet<SessionEntry> = new Set()

/** Creates an index of entries by site and owner. */
function createSiteIndex() {
  const bySite = new Map<string, Set<SessionEntry>>()
  const keyOf = ({ owner, site_id }: SiteKey) => `${owner}\n${site_id}`
  return {
    of: (site: SiteKey): ReadonlySet<SessionEntry> => bySite.get(keyOf(site)) ?? NONE,
    add(entry: SessionEntry): void {
      const key = keyOf(entry.session)
      bySite.set(key, (bySite.get(key) ?? new Set()).add(entry))
    },
    remove(entry: SessionEntry): void {
      const key = keyOf(entry.session)
      const others = bySite.get(key)
      others?.delete(entry)
      if (others?.size === 0) bySite.delete(key)
    },
  }
}

const expired = (session: Session): Session =>
  Object.freeze({ ...session, state: 'expired', updated_at: session.expires_at as string })

/** Returns the session as of `time`, without storing that; `undefined` if its retention is over. */
function sessionAt({ session, expiresAt, endedAt }: SessionEntry, time: number): Session | undefined {
  const isOver = session.state === 'closed' || session.state === 'expired'
  if ((isOver ? endedAt : expiresAt) + FINAL_KEPT_MS <= time) return undefined
  return isOver || expiresAt > time ? session : expired(session)
}

/** Returns the first instant after `time` at which the entry changes or one of its shares expires. */
function nextChange({ session, expiresAt, endedAt, shares }: SessionEntry, time: number): number {
  const isOver = session.state === 'closed' || session.state === 'expired'
  let next = Number.POSITIVE_INFINITY
  const offer = (at: number) => {
    if (at > time && at < next) next = at
  }
  if (!isOver) offer(expiresAt)
  offer((isOver ? endedAt : expiresAt) + FINAL_KEPT_MS)
  for (const { expires_at } of shares.values()) if (expires_at !== null) offer(Date.parse(expires_at))
  return next
}

function countOpen(
  open: ReadonlySet<SessionEntry>,
  time: number,
  most: number,
): { count: number | null; examined: number } {
  if (open.size > most) return { count: null, examined: 0 }
  let count = 0
  for (const { expiresAt } of open) if (expiresAt > time) count++
  return { count, examined: open.size }
}

export function createSessionEntries({ maxSessions, maxSessionsPerUser, now }: SessionEntriesOptions) {
  const live = createIndex()
  const ended = createIndex()
  const holders = new Holders()
  const listing = createListing<SessionEntry>({
    owner: ({ session }) => session.owner,
    site_id: ({ session }) => session.site_id,
  })
  const atSite = createSiteIndex()
  const changes = createSessionChanges(nextChange, now)

  function forget(entry: SessionEntry): void {
    changes.gone(entry)
    ended.remove(entry)
    holders.remove(entry.session.owner)
    listing.remove(entry)
  }

  /** Deletes sessions that ended an hour ago, then the oldest of the owner with most of them. */
  function forgetEnded(): void {
    for (const entry of ended.all.values()) {
      if (entry.endedAt + FINAL_KEPT_MS > now()) break
      forget(entry)
    }
    while (ended.all.size > maxSessions) {
      const [oldest] = ended.of(holders.fullest as string)?.values() ?? []
      forget(oldest as SessionEntry)
    }
  }

  function finish(entry: SessionEntry, session: Session, at: number): void {
    live.remove(entry)
    atSite.remove(entry)
    entry.session = session
    entry.endedAt = at
    ended.add(entry)
    changes.changed(entry)
    holders.add(session.owner)
    forgetEnded()
  }

  /** Expiry is computed on access; there is no timer. */
  function expire(entry: SessionEntry): void {
    if (entry.expiresAt <= now()) finish(entry, expired(entry.session), entry.expiresAt)
  }

  return {
    finish,
    /** Records a change of a session or its shares, other than its end. */
    changed: changes.changed,
    version: changes.version,

    /** Returns the entry as of now. */
    find(sessionId: string): SessionEntry | undefined {
      const underWay = live.all.get(sessionId)
      if (underWay) expire(underWay)
      else forgetEnded()
      const entry = underWay ?? ended.all.get(sessionId)
      // A session that ended an hour ago may have been deleted just now, or come after one that ended later.
      return entry && sessionAt(entry, now()) ? entry : undefined
    },

    /** @throws Refusal `capacity_exceeded` if the owner's share or the registry is full of open sessions. */
    requireRoom(owner: string): void {
      const own = () => live.of(owner)?.size ?? 0
      if (own() >= maxSessionsPerUser) for (const entry of [...(live.of(owner) ?? new Map()).values()]) expire(entry)
      if (own() >= maxSessionsPerUser)
        throw new Refusal('capacity_exceeded', `maximum of ${maxSessionsPerUser} sessions per owner reached`)
      if (live.all.size >= maxSessions) for (const entry of [...live.all.values()]) expire(entry)
      if (live.all.size >= maxSessions)
        throw new Refusal('capacity_exceeded', `maximum of ${maxSessions} sessions reached`)
    },

    add(entry: SessionEntry): void {
      const { session } = entry
      // A host may reuse an id.
      const before = live.all.get(session.session_id)
      const over = ended.all.get(session.session_id)
      if (over) forget(over)
      if (before) {
        live.remove(before)
        atSite.remove(before)
        listing.remove(before)
        changes.gone(before)
      }
      live.add(entry)
      listing.add(entry)
      atSite.add(entry)
      changes.changed(entry)
    },

    arrive: listing.arrive,
    list: listing.list,

    view: (entry: SessionEntry) => sessionAt(entry, now()),

    /** Returns the number of open sessions of a site, or `null` if more than `most` would have to be examined. */
    countAt: (site: SiteKey, most: number) => countOpen(atSite.of(site), now(), most),
  }
}
