/** What opens, moves, shares and the passing of time do to a session: written once, run atomically by each store. */

import { toReason, toTimestamp } from '../contract/ids.js'
import { parseInput, type Read } from '../contract/options.js'
import {
  FINAL_KEPT_MS,
  OpenSessionInput,
  requireOneOwner,
  SESSION_MOVES,
  type Session,
  type SessionOptions,
  type SessionRegistry,
  SessionShare,
  viewerId,
} from '../contract/sessions.js'
import { Refusal } from '../refusal.js'

export const isFinal = ({ state }: Pick<Session, 'state'>): boolean => state === 'closed' || state === 'expired'

/** Whether an instant has passed at `now` (epoch ms); `null` never does. */
export const hasPassed = (instant: string | null, now: number): boolean =>
  instant !== null && Date.parse(instant) <= now

/** Returns a session after its `expires_at`. */
export const expiredSession = (session: Session): Session =>
  Object.freeze({ ...session, state: 'expired', updated_at: session.expires_at as string })

/** Returns the session as of `now` (epoch ms); `undefined` if its retention is over. */
export function sessionAt(session: Session, now: number): Session | undefined {
  const seen = !isFinal(session) && hasPassed(session.expires_at, now) ? expiredSession(session) : session
  return isFinal(seen) && Date.parse(seen.updated_at) + FINAL_KEPT_MS <= now ? undefined : seen
}

/** A session as of now, and the share of one user in it; `null` if that user has none, or it has expired. */
interface KnownSession {
  readonly session: Session
  readonly share: SessionShare | null
}

/** What a step changes: the session, or the share of the user (`null` deletes it); and what the caller receives. */
export interface SessionChange<A> {
  readonly session?: Session
  readonly share?: SessionShare | null
  readonly answer: A
}

/** The sessions of some store, with their shares. */
export interface SessionRecords {
  /** Adds the session that `make` returns; an older one with its id is deleted. @throws Refusal `capacity_exceeded` */
  add(make: (now: number) => Session): Promise<Session>
  /**
   * Runs `step` on a session and stores its result, as one atomic step. The step is pure: a store may run it again.
   *
   * @param userId The user whose share is read.
   * @throws Refusal `capacity_exceeded` for too many shares, and what `step` throws.
   */
  change<A>(
    sessionId: string,
    step: (known: KnownSession | undefined, at: string) => SessionChange<A>,
    userId?: string,
  ): Promise<A>
}

export function sessionRules(
  records: SessionRecords,
  { sites, newId }: Pick<Read<typeof SessionOptions>, 'sites' | 'newId'>,
): Omit<SessionRegistry, 'watch'> {
  const move = (sessionId: string, state: keyof typeof SESSION_MOVES, close_reason: string | null = null) =>
    records.change(sessionId, (known, at) => {
      if (!known) throw new Refusal('session_not_found')
      const { session } = known
      if (!SESSION_MOVES[state].includes(session.state))
        throw new Refusal('invalid_transition', `${session.state} to ${state}`)
      const moved = Object.freeze({ ...session, state, updated_at: at, close_reason })
      return { session: moved, answer: moved }
    })

  return {
    get: (sessionId) => records.change(sessionId, (known) => ({ answer: known?.session ?? null })),
    async open(given) {
      const { ttl_ms, ...input } = parseInput(OpenSessionInput, given)
      await requireOneOwner(input, sites)
      return records.add((now) => {
        const [at, expires_at] = [toTimestamp(now), ttl_ms === undefined ? null : toTimestamp(now + ttl_ms)]
        const opened = { state: 'pending', opened_at: at, expires_at, updated_at: at, close_reason: null } as const
        return Object.freeze({ session_id: newId(), ...input, ...opened })
      })
    },
    activate: async (sessionId) => move(sessionId, 'active'),
    suspend: async (sessionId) => move(sessionId, 'suspended'),
    close: async (sessionId, reason) => move(sessionId, 'closed', toReason(reason)),
    async share(sessionId, given) {
      const share = Object.freeze(parseInput(SessionShare, given))
      return records.change(
        sessionId,
        (known) => {
          if (!known) throw new Refusal('session_not_found')
          if (isFinal(known.session))
            throw new Refusal('invalid_transition', `a session that is ${known.session.state} cannot be shared`)
          return { share, answer: share }
        },
        share.user_id,
      )
    },
    async unshare(sessionId, viewer) {
      const step = (known: KnownSession | undefined): SessionChange<boolean> =>
        known?.share ? { share: null, answer: true } : { answer: false }
      return records.change(sessionId, step, viewerId(viewer))
    },
    getShare: (sessionId, userId) => records.change(sessionId, (known) => ({ answer: known?.share ?? null }), userId),
  }
}
