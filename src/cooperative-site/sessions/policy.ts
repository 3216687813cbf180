/** The reference policy: the owner may do everything, others what was shared with them. */
import { defineOptions, type Input, readOptions, withMethods } from '../../contract/options.js'
import type { SessionPolicy, SessionRegistry } from '../../contract/sessions.js'

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
    async check({ viewer, session, right }) {
      if (viewer.user_id === session.owner) return true
      const share = await sessions.getShare(session.session_id, viewer.user_id)
      // The right to invoke includes the right to view.
      return share !== null && (share.rights.includes(right) || (right === 'view' && share.rights.includes('invoke')))
    },
  }
}
