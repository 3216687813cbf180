/** The reference policy: the owner may do everything, others what was shared with them. */
import { checkOptions, having, needed } from '../../contract/checks.js'
import type { SessionPolicy, SessionRegistry } from '../../contract/sessions.js'

/**
 * Creates a policy from a session's owner and its shares, read afresh each time: expiry and revocation apply
 * immediately.
 *
 * @example const policy = createSessionPolicy({ sessions })
 */
export function createSessionPolicy(options: { sessions: Pick<SessionRegistry, 'getShare'> }): SessionPolicy {
  checkOptions(options, { sessions: needed(having('getShare')) })
  const { sessions } = options
  return {
    async check({ viewer, session, right }) {
      if (viewer.user_id === session.owner) return true
      const share = await sessions.getShare(session.session_id, viewer.user_id)
      // The right to invoke includes the right to view.
      return share !== null && (share.rights.includes(right) || (right === 'view' && share.rights.includes('invoke')))
    },
  }
}
