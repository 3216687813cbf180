/** Reads the sessions of one process as of now, even if expired ones have not been swept. */
import { scanLimit } from '../../contract/page.js'
import type { SessionInspector, SessionRow } from '../../contract/sessions.js'
import type { SessionEntries, SessionEntry } from './session-entries.js'

/** @param hasPassed Whether an instant has passed; `null` never does. */
export function createSessionInspector(
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
