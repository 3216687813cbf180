/** The sessions of one process, their states and their shares. */
import { guardErrorHook, guardHook } from '../../async/hook.js'
import type { Inspected } from '../../contract/families.js'
import { toReason, toTimestamp } from '../../contract/ids.js'
import { type Clocked, parseInput, readOptions, withClock } from '../../contract/options.js'
import { scanLimit } from '../../contract/page.js'
import {
  OpenSessionInput,
  requireOneOwner,
  SESSION_MOVES,
  type Session,
  type SessionInspector,
  SessionOptions,
  type SessionRegistry,
  type SessionRow,
  SessionShare,
  SHARES_MAX,
  viewerId,
} from '../../contract/sessions.js'
import { Refusal } from '../../refusal.js'
import { createSessionEntries, entryOf, type SessionEntries, type SessionEntry } from './session-entries.js'

// Reads the sessions of one process as of now, even if expired ones have not been swept.

/** @param hasPassed Whether an instant has passed; `null` never does. */
function createSessionInspector(
  entries: SessionEntries,
  hasPassed: (instant: string | null) => boolean,
): SessionInspector {
  /** Fields that the registry does not know are `null`. */
  function rowOf(entry: SessionEntry): SessionRow | undefined {
    const session = entries.view(entry)
    if (!session) return undefined
    const ends = [...entry.shares.values()].map(({ expires_at }) => expires_at).filter((at) => !hasPassed(at))
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
      let left = scanLimit(ctx)
      return sites.map((site) => {
        const { count, examined } = entries.countAt(site, left)
        left -= examined
        return count
      })
    },
  }
}

/** Options of `createSessionRegistry`. */
export const SessionRegistryOptions = withClock(SessionOptions)
/** Options of `createSessionRegistry`. */
export interface SessionRegistryOptions extends SessionOptions, Clocked {}

/** Returns a session that opens at `at`. Times are epoch ms. */
const opened = (
  session_id: string,
  input: Pick<Session, 'site_id' | 'owner' | 'connector'>,
  at: number,
  expiresAt: number,
): Session =>
  Object.freeze({
    session_id,
    ...input,
    state: 'pending',
    opened_at: toTimestamp(at),
    expires_at: expiresAt === Number.POSITIVE_INFINITY ? null : toTimestamp(expiresAt),
    updated_at: toTimestamp(at),
    close_reason: null,
  })

/** Returns the share of a user if it is valid now. */
function shareIn(
  entry: SessionEntry | undefined,
  userId: string,
  hasPassed: (instant: string | null) => boolean,
): SessionShare | null {
  const share = entry?.shares.get(userId)
  return share === undefined || hasPassed(share.expires_at) ? null : share
}

/**
 * Creates a session registry in memory. Exceptions in watchers are logged to the console.
 *
 * @throws RangeError for a limit that is not an integer of at least 1.
 */
export function createSessionRegistry(
  options: SessionRegistryOptions = {},
): Inspected<SessionRegistry, SessionInspector> {
  const { sites, now, newId, maxSessions, maxSessionsPerUser } = readOptions(SessionRegistryOptions, options)
  const entries = createSessionEntries({ maxSessions, maxSessionsPerUser, now })
  const { find, finish, requireRoom, add } = entries
  const onError = guardErrorHook<[]>(undefined)

  const hasPassed = (instant: string | null) => instant !== null && Date.parse(instant) <= now()

  function known(sessionId: string): SessionEntry {
    const entry = find(sessionId)
    if (entry === undefined) throw new Refusal('session_not_found')
    return entry
  }

  function changed(entry: SessionEntry): void {
    entries.changed(entry)
    for (const notify of [...entry.watchers]) notify()
  }

  function move(sessionId: string, state: keyof typeof SESSION_MOVES, reason: string | null = null): Session {
    const entry = known(sessionId)
    const { session } = entry
    if (!SESSION_MOVES[state].includes(session.state))
      throw new Refusal('invalid_transition', `${session.state} to ${state}`)
    const at = now()
    const moved: Session = Object.freeze({ ...session, state, updated_at: toTimestamp(at), close_reason: reason })
    if (state === 'closed') finish(entry, moved, at)
    else entry.session = moved
    changed(entry)
    return moved
  }

  return {
    inspector: createSessionInspector(entries, hasPassed),
    async get(sessionId) {
      return find(sessionId)?.session ?? null
    },
    async open(given) {
      const { ttl_ms, ...input } = parseInput(OpenSessionInput, given)
      await requireOneOwner(input, sites)
      requireRoom(input.owner)
      const at = now()
      const expiresAt = at + (ttl_ms ?? Number.POSITIVE_INFINITY)
      const session = opened(newId(), input, at, expiresAt)
      add(entryOf(session, expiresAt, entries.arrive()))
      return session
    },
    async activate(sessionId) {
      return move(sessionId, 'active')
    },
    async suspend(sessionId) {
      return move(sessionId, 'suspended')
    },
    async close(sessionId, reason) {
      return move(sessionId, 'closed', toReason(reason))
    },
    async share(sessionId, given) {
      const share = Object.freeze(parseInput(SessionShare, given))
      const entry = known(sessionId)
      const { state } = entry.session
      if (state === 'closed' || state === 'expired')
        throw new Refusal('invalid_transition', `a session that is ${state} cannot be shared`)
      for (const [userId, { expires_at }] of entry.shares) if (hasPassed(expires_at)) entry.shares.delete(userId)
      if (!entry.shares.has(share.user_id) && entry.shares.size >= SHARES_MAX)
        throw new Refusal('capacity_exceeded', `maximum of ${SHARES_MAX} shares reached`)
      entry.shares.set(share.user_id, share)
      changed(entry)
      return share
    },
    async unshare(sessionId, viewer) {
      const entry = find(sessionId)
      const user = viewerId(viewer)
      const had = shareIn(entry, user, hasPassed) !== null
      entry?.shares.delete(user)
      if (entry && had) changed(entry)
      return had
    },
    async getShare(sessionId, userId) {
      return shareIn(find(sessionId), userId, hasPassed)
    },
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
