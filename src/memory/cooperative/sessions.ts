/** The sessions of one process, their states and their shares. */
import { guardErrorHook, guardHook } from '../../internal/async/hook.js'
import type { Inspected } from '../../internal/contract/families.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { type Clocked, readOptions, withClock } from '../../internal/contract/options.js'
import { scanLimit } from '../../internal/contract/page.js'
import {
  type SessionInspector,
  SessionOptions,
  type SessionRegistry,
  type SessionRow,
  type SessionShare,
  SHARES_MAX,
} from '../../internal/contract/sessions.js'
import { Refusal } from '../../internal/refusal.js'
import { hasPassed, isFinal, type SessionRecords, sessionRules } from '../../internal/rules/sessions.js'
import { createSessionEntries, entryOf, type SessionEntries, type SessionEntry } from './session-entries.js'

// Reads the sessions of one process as of now, even if expired ones have not been swept.

function createSessionInspector(entries: SessionEntries, now: () => number): SessionInspector {
  /** Fields that the registry does not know are `null`. */
  function rowOf(entry: SessionEntry): SessionRow | undefined {
    const session = entries.view(entry)
    if (!session) return undefined
    const ends = [...entry.shares.values()].map(({ expires_at }) => expires_at).filter((at) => !hasPassed(at, now()))
    const [next_share_expires_at = null] = ends.filter((at) => at !== null).sort()
    return { ...session, connector_connected: null, shares: ends.length, next_share_expires_at, viewers: null }
  }

  return {
    version: entries.version,
    listSessions: (filter, page, ctx) => entries.list(filter, page, rowOf, scanLimit(ctx)),
    getSession(sessionId) {
      const entry = entries.find(sessionId)
      return (entry && rowOf(entry)) ?? null
    },
    countSessions(sites, ctx) {
      let remaining = scanLimit(ctx)
      return sites.map((site) => {
        const { count, examined } = entries.countAt(site, remaining)
        remaining -= examined
        return count
      })
    },
  }
}

/** Options of `createSessionRegistry`. */
export const SessionRegistryOptions = withClock(SessionOptions)
/** Options of `createSessionRegistry`. */
export interface SessionRegistryOptions extends SessionOptions, Clocked {}

/**
 * Creates a session registry in memory. Exceptions in watchers are logged to the console.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
 */
export function createSessionRegistry(
  options: SessionRegistryOptions = {},
): Inspected<SessionRegistry, SessionInspector> {
  const { now, maxSessions, maxSessionsPerUser, ...rest } = readOptions(SessionRegistryOptions, options)
  const entries = createSessionEntries({ maxSessions, maxSessionsPerUser, now })
  const { find } = entries
  const onError = guardErrorHook<[]>(undefined)

  function putShare({ shares }: SessionEntry, share: SessionShare): void {
    for (const [userId, { expires_at }] of shares) if (hasPassed(expires_at, now())) shares.delete(userId)
    if (!shares.has(share.user_id) && shares.size >= SHARES_MAX)
      throw new Refusal('capacity_exceeded', `maximum of ${SHARES_MAX} shares reached`)
    shares.set(share.user_id, share)
  }

  const records: SessionRecords = {
    async add(make) {
      const session = make(now())
      entries.requireRoom(session.owner)
      entries.add(entryOf(session, entries.arrive()))
      return session
    },
    async change(sessionId, step, userId = '') {
      const entry = find(sessionId)
      const held = entry?.shares.get(userId)
      const current = held && !hasPassed(held.expires_at, now()) ? held : null
      const { session, share, answer } = step(entry && { session: entry.session, share: current }, toTimestamp(now()))
      if (!entry || (session === undefined && share === undefined)) return answer
      if (share) putShare(entry, share)
      else if (share === null) entry.shares.delete(userId)
      if (session && isFinal(session)) entries.finish(entry, session)
      else if (session) entry.session = session
      entries.changed(entry)
      for (const notify of [...entry.watchers]) notify()
      return answer
    },
  }

  return {
    inspector: createSessionInspector(entries, now),
    ...sessionRules(records, rest),
    watch(sessionId, notify) {
      const watchers = find(sessionId)?.watchers
      // One entry per call, so that the same function can be added twice and removed once. An exception in it must not
      // affect other watchers, nor the author of the change.
      const own = guardHook(notify, onError)
      watchers?.add(own)
      return () => {
        watchers?.delete(own)
      }
    },
  }
}
