/** Rechecks whether viewers may still watch a session while their streams are open, once per (session, viewer) pair. */
import { withTimeout } from '../../internal/async/deadline.js'
import { monotonic } from '../../internal/async/timer.js'
import type { EndReason } from '../../internal/contract/event-bus.js'
import { siteStream } from '../../internal/contract/ingest.js'
import { checkFields, defineOptions, type Input, readOptions, withMethods } from '../../internal/contract/options.js'
import type { Principal, Session, SessionPolicy, SessionRegistry } from '../../internal/contract/sessions.js'
import type { SiteRegistry } from '../../internal/contract/sites.js'

/** Maximum age in milliseconds of a positive result when an event is written. */
export const RECHECK_MS = 500
// Concurrent periodic rechecks; a shared store accepts a thousand commands in all.
const READS_MAX = 200
// Time limit of a recheck. Without a result streams hold their events.
const READ_TIMEOUT_MS = 5_000
// How long streams hold before their clients are sent away to come back: a gap is better than silence.
const UNKNOWN_MAX_MS = 10_000

/** Callbacks of a stream that uses a grant. */
export interface GrantHolder {
  /** The grant was renewed; the stream may continue. */
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

/** The current permission of one viewer in one session, shared by their streams. */
export interface Grant {
  /** Whether it was confirmed within the last 500 ms and nothing has changed since. */
  readonly isFresh: boolean
  /** Rechecks now and notifies the holders. */
  refresh(): void
  release(holder: GrantHolder): void
}

interface Held extends Grant {
  holders: Set<GrantHolder>
  startedAt: number
}

/** The watched session and the site whose topic the stream reads. */
interface Watched {
  session_id: string
  topic: string
}

/** The grants of one relay. */
export function createSessionGrants({ sites, sessions, policy, now, onError }: SessionGrantsOptions) {
  // In the order of their last reads, so that the first is always the most overdue.
  const grants = new Map<string, Held>()
  let reads = 0
  // Ages use a monotonic clock; only a session's expiry is wall-clock time.
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

    /** A result read before the expiry and used after it is not fresh, however recent. */
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
        // Unknown: no event is written, and the next tick retries.
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
    // The callback may run synchronously.
    const unwatch = watch(watched.session_id, () => {
      changed = true
      freshAt = Number.NEGATIVE_INFINITY
      held.refresh()
    })
    return held
  }

  /**
   * Subscribes to session changes. If a custom registry's `watch` fails, only periodic rechecks remain. @returns the
   * unsubscribe function.
   */
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
    /** Joins the grant of this pair. A new grant is never fresh, whatever the caller has read before. */
    hold(holder: GrantHolder, viewer: Principal, watched: Watched): Grant {
      const key = JSON.stringify([watched.session_id, watched.topic, viewer.user_id, viewer.key ?? null])
      const held = grants.get(key) ?? open(key, viewer, watched)
      held.holders.add(holder)
      grants.set(key, held)
      return held
    },
    /** Rechecks overdue grants. */
    tick: readOverdue,
  }
}

// The reference policy: the owner may do everything, others what was shared with them.

/** Options of `createSessionPolicy`. */
export const SessionPolicyOptions = defineOptions({
  /** Registry that the shares of a session are read from. */
  sessions: withMethods<Pick<SessionRegistry, 'getShare'>>('getShare'),
})
export interface SessionPolicyOptions extends Input<typeof SessionPolicyOptions> {}

/**
 * Creates a policy from a session's owner and its shares, read afresh each time: expiry and revocation apply
 * immediately.
 *
 * @example
 * const policy = createSessionPolicy({ sessions })
 */
export function createSessionPolicy(options: SessionPolicyOptions): SessionPolicy {
  const { sessions } = readOptions(SessionPolicyOptions, options)
  return {
    async check(question) {
      checkFields(question, ['viewer', 'session', 'right'])
      const { viewer, session, right } = question
      if (viewer.user_id === session.owner) return true
      const share = await sessions.getShare(session.session_id, viewer.user_id)
      // The right to invoke includes the right to view.
      return share !== null && (share.rights.includes(right) || (right === 'view' && share.rights.includes('invoke')))
    },
  }
}
