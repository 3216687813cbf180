/** The sessions of one process, their states and who they are shared with. */
import { toReason, toTimestamp } from '../contract/ids.js'
import { parseInput } from '../contract/input.js'
import {
  FINAL_KEPT_MS,
  OpenSessionInput,
  requireOneOwner,
  SESSION_MOVES,
  SESSIONS_MAX,
  type Session,
  type SessionRegistry,
  SessionShare,
  SHARES_MAX,
} from '../contract/sessions.js'
import type { SiteRegistry } from '../contract/sites.js'
import { Refusal } from '../refusal.js'

export interface SessionRegistryOptions {
  /** Where `open` finds the site and its owner. Without it a session's owner is taken at its word. */
  sites?: Pick<SiteRegistry, 'get'> | undefined
  /** Most sessions that have not ended. @default 10000 */
  maxSessions?: number | undefined
  /** Epoch ms. */
  now?: (() => number) | undefined
  /** Makes session ids; they are capabilities to nothing, but should not be guessable. */
  newId?: (() => string) | undefined
}

interface Entry {
  session: Session
  shares: Map<string, SessionShare>
  watchers: Set<() => void>
}

/** A registry of sessions in memory. */
export function createSessionRegistry(options: SessionRegistryOptions = {}): SessionRegistry {
  const { sites, maxSessions = SESSIONS_MAX, now = Date.now, newId = () => crypto.randomUUID() } = options
  const live = new Map<string, Entry>()
  // In the order in which they ended.
  const final = new Map<string, Entry>()

  const hasPassed = (instant: string | null) => instant !== null && Date.parse(instant) <= now()

  function finish(entry: Entry, session: Session): void {
    entry.session = session
    live.delete(session.session_id)
    final.set(session.session_id, entry)
    forgetFinal()
  }

  function forgetFinal(): void {
    for (const [id, { session }] of final) {
      if (final.size <= maxSessions && Date.parse(session.updated_at) + FINAL_KEPT_MS > now()) return
      final.delete(id)
    }
  }

  /** The entry as it stands now: expiry needs no timer, only a reader. */
  function find(sessionId: string): Entry | undefined {
    const entry = live.get(sessionId)
    if (entry === undefined) {
      forgetFinal()
      return final.get(sessionId)
    }
    const { session } = entry
    if (hasPassed(session.expires_at))
      finish(entry, Object.freeze({ ...session, state: 'expired', updated_at: session.expires_at as string }))
    return entry
  }

  function known(sessionId: string): Entry {
    const entry = find(sessionId)
    if (entry === undefined) throw new Refusal('session_not_found')
    return entry
  }

  function changed(entry: Entry): void {
    for (const notify of [...entry.watchers]) notify()
  }

  function move(sessionId: string, state: keyof typeof SESSION_MOVES, reason: string | null = null): Session {
    const entry = known(sessionId)
    const { session } = entry
    if (!SESSION_MOVES[state].includes(session.state))
      throw new Refusal('invalid_transition', `${session.state} to ${state}`)
    const moved: Session = Object.freeze({ ...session, state, updated_at: toTimestamp(now()), close_reason: reason })
    if (state === 'closed') finish(entry, moved)
    else entry.session = moved
    changed(entry)
    return moved
  }

  function makeRoom(): void {
    if (live.size < maxSessions) return
    for (const id of [...live.keys()]) find(id)
    if (live.size >= maxSessions) throw new Refusal('capacity_exceeded', `${maxSessions} sessions`)
  }

  return {
    async get(sessionId) {
      return find(sessionId)?.session ?? null
    },
    async open(given) {
      const { ttlMs, ...input } = parseInput(OpenSessionInput, given)
      await requireOneOwner(input, sites)
      makeRoom()
      const at = now()
      const session: Session = Object.freeze({
        session_id: newId(),
        ...input,
        state: 'pending',
        opened_at: toTimestamp(at),
        expires_at: ttlMs === undefined ? null : toTimestamp(at + ttlMs),
        updated_at: toTimestamp(at),
        close_reason: null,
      })
      live.set(session.session_id, { session, shares: new Map(), watchers: new Set() })
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
      for (const [userId, { expires_at }] of entry.shares) if (hasPassed(expires_at)) entry.shares.delete(userId)
      if (!entry.shares.has(share.user_id) && entry.shares.size >= SHARES_MAX)
        throw new Refusal('capacity_exceeded', `${SHARES_MAX} shares`)
      entry.shares.set(share.user_id, share)
      changed(entry)
      return share
    },
    async unshare(sessionId, viewer) {
      const entry = find(sessionId)
      const had = entry?.shares.delete(typeof viewer === 'string' ? viewer : viewer.user_id) ?? false
      if (entry && had) changed(entry)
      return had
    },
    async getShare(sessionId, userId) {
      const share = find(sessionId)?.shares.get(userId)
      return share === undefined || hasPassed(share.expires_at) ? null : share
    },
    watch(sessionId, notify) {
      const watchers = find(sessionId)?.watchers
      // One entry per call, so that the same function can watch twice and end once.
      const own = () => notify()
      watchers?.add(own)
      return () => {
        watchers?.delete(own)
      }
    },
  }
}
