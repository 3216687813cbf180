/** The reference policy of the session and sharing facility: the owner may all, others what was shared with them. */
import { checkOptions, having, needed } from '../../contract/checks.js'
import type { SessionPolicy, SessionRegistry } from '../../contract/sessions.js'

/**
 * Answers from a session's owner and its shares, read afresh each time: expiry and revocation hold at once.
 *
 * @example
 * const policy = createSessionPolicy({ sessions })
 */
export function createSessionPolicy(options: { sessions: Pick<SessionRegistry, 'getShare'> }): SessionPolicy {
  checkOptions(options, { sessions: needed(having('getShare')) })
  const { sessions } = options
  return {
    async check({ viewer, session, right }) {
      if (viewer.user_id === session.owner) return true
      const share = await sessions.getShare(session.session_id, viewer.user_id)
      // Who may invoke must be able to see what came of it.
      return share !== null && (share.rights.includes(right) || (right === 'view' && share.rights.includes('invoke')))
    },
  }
}
