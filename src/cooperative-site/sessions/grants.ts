/** Whether a viewer may go on watching a session: read again while streams live, once for all streams of the same pair. */

import { monotonic } from '../../async/clock.js'
import { withTimeout } from '../../async/time-limit.js'
import type { EndReason } from '../../contract/event-bus.js'
import { siteStream } from '../../contract/ingest.js'
import type { Principal, Session, SessionPolicy, SessionRegistry } from '../../contract/sessions.js'
import type { SiteRegistry } from '../../contract/sites.js'

/** How old a positive answer may be when something is written. */
export const RECHECK_MS = 500
// Reads under way at once when time alone asks for them; a shared store takes a thousand in all.
const READS_MAX = 200
// A store that does not answer by then says nothing; streams hold their events until it does.
const READ_TIMEOUT_MS = 5_000
// How long streams hold before their clients are sent away to come back: a gap is better than silence.
const UNKNOWN_MAX_MS = 10_000

/** What a holder of a grant is told. */
export interface GrantHolder {
  /** It may go on: the answer is fresh. */
  fresh(): void
  /** It is over, for good. */
  ended(reason: EndReason): void
}

export interface SessionGrantsOptions {
  sites: Pick<SiteRegistry, 'get'>
  sessions: Pick<SessionRegistry, 'get' | 'watch'>
  policy: SessionPolicy
  now: () => number
  onError?: ((error: unknown) => void) | undefined
}

/** The standing permission of one viewer in one session, shared by its holders. */
export interface Grant {
  /** Whether it was confirmed within the last 500 ms and nothing has changed since. */
  readonly isFresh: boolean
  /** Reads again; holders are told. */
  refresh(): void
  release(holder: GrantHolder): void
}

interface Held extends Grant {
  holders: Set<GrantHolder>
  startedAt: number
}

/** What is watched: a session, as long as it is one of the site whose topic this is. */
interface Watched {
  session_id: string
  topic: string
}

/** The grants of one relay. */
export function createSessionGrants({ sites, sessions, policy, now, onError }: SessionGrantsOptions) {
  // In the order of their last reads, so that the first is always the most overdue.
  const grants = new Map<string, Held>()
  let reads = 0
  // What waits and ages does so whatever the wall clock does; only a session's end is an instant of that.
  const clock = monotonic(now)

  async function endReason(
    viewer: Principal,
    { session_id, topic }: Watched,
    seen: (session: Session) => void,
  ): Promise<EndReason | null> {
    const session: Session | null | undefined = await sessions.get(session_id)
    if (session) seen(session)
    if (session?.state === 'expired') return 'session_expired'
    if (session?.state !== 'active' && session?.state !== 'suspended') return 'session_closed'
    // A host may use an id again: who may watch that session was not granted the events of the one before.
    if (siteStream(session.owner, session.site_id) !== topic) return 'session_closed'
    const site = await sites.get(session.site_id)
    if (!site || site.owner !== session.owner) return 'session_closed'
    return (await policy.check({ viewer, session, right: 'view' })) === true ? null : 'policy_revoked'
  }

  function open(key: string, viewer: Principal, watched: Watched): Held {
    let freshAt = Number.NEGATIVE_INFINITY
    let confirmedAt = clock()
    let expiresAt = Number.POSITIVE_INFINITY
    let reading = false
    let changed = false

    /** What is read before it is over and written after is not fresh, however young. */
    function expires({ expires_at }: Session): void {
      const at = expires_at === null ? Number.POSITIVE_INFINITY : Date.parse(expires_at)
      expiresAt = at > now() ? at : Number.POSITIVE_INFINITY
    }

    async function read(): Promise<void> {
      reading = true
      reads++
      grants.delete(key)
      grants.set(key, held)
      try {
        do {
          changed = false
          held.startedAt = clock()
          const reason = await withTimeout(() => endReason(viewer, watched, expires), {
            ms: READ_TIMEOUT_MS,
            code: 'unavailable',
          })
          if (reason !== null) return end(reason)
          confirmedAt = held.startedAt
          if (!changed) freshAt = held.startedAt
        } while (changed && held.holders.size > 0)
        for (const holder of held.holders) holder.fresh()
      } catch (error) {
        // Nobody knows: no event is written, and the next tick asks again.
        onError?.(error)
        if (clock() - confirmedAt >= UNKNOWN_MAX_MS) end('shutdown')
      } finally {
        reading = false
        reads--
        readOverdue()
      }
    }

    function end(reason: EndReason): void {
      for (const holder of [...held.holders]) holder.ended(reason)
    }

    const held: Held = {
      holders: new Set(),
      startedAt: Number.NEGATIVE_INFINITY,
      get isFresh() {
        return clock() < freshAt + RECHECK_MS && now() < expiresAt
      },
      refresh() {
        if (!reading && held.holders.size > 0) void read()
      },
      release(holder) {
        if (!held.holders.delete(holder) || held.holders.size > 0) return
        unwatch()
        if (grants.get(key) === held) grants.delete(key)
      },
    }
    // It may speak at once.
    const unwatch = watch(watched.session_id, () => {
      changed = true
      freshAt = Number.NEGATIVE_INFINITY
      held.refresh()
    })
    return held
  }

  /** Whatever a registry of a host's own makes of `watch`: when it comes to nothing, time alone asks. @returns how to end it. */
  function watch(sessionId: string, changed: () => void): () => void {
    const handleError = (error: unknown) => onError?.(error)
    const ending: Promise<unknown> = (async () => sessions.watch?.(sessionId, changed))().catch(handleError)
    return () => void ending.then((end) => typeof end === 'function' && end()).catch(handleError)
  }

  function readOverdue(): void {
    for (const grant of grants.values()) {
      if (reads >= READS_MAX || clock() - grant.startedAt < RECHECK_MS) return
      grant.refresh()
    }
  }

  return {
    /** Sessions and viewers that are watched now. */
    get size() {
      return grants.size
    },
    /** Joins the grant of this pair. Whatever a caller has read before, a new grant is not fresh: it watches from now on. */
    hold(holder: GrantHolder, viewer: Principal, watched: Watched): Grant {
      const key = JSON.stringify([watched.session_id, watched.topic, viewer.user_id, viewer.key ?? null])
      const held = grants.get(key) ?? open(key, viewer, watched)
      held.holders.add(holder)
      grants.set(key, held)
      return held
    },
    /** Reads what is overdue. */
    tick: readOverdue,
  }
}
