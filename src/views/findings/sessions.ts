/** Sessions whose application is away. */
import type { ClientOfUser } from '../../contract/connections.js'
import { SessionRow } from '../../contract/sessions.js'
import { along } from './detector.js'
import { holderEvidence } from './disconnected.js'
import { fieldsOf, finding, requestOf } from './finding.js'

type Connected = SessionRow & { connector: ClientOfUser }

const hasConnector = (session: SessionRow): session is Connected =>
  session.state === 'active' && session.connector !== null && session.connector_connected !== true

export const SESSIONS_WITHOUT_CONNECTOR = along<SessionRow>({
  kinds: ['session_without_connector'],
  needs: ['sessions'],
  source: 'sessions',
  entry: SessionRow,
  list: ({ sessions }, page, ask) => sessions.listSessions({ state: 'active' }, page, ask),
  async find(sessions, looking) {
    const asked = sessions.filter(hasConnector)
    const unknown = asked.filter(({ connector_connected }) => connector_connected === null)
    // What the registry of sessions does not say itself, that of connections may.
    const canAsk = unknown.length > 0 && Boolean(looking.inspectors.registry)
    const holderOf = canAsk ? await looking.holders(unknown.map(({ connector }) => connector)) : undefined
    return asked
      .filter(({ connector_connected, connector }) => connector_connected === false || holderOf?.(connector) === null)
      .map((session) => {
        const { session_id, site_id, connector } = session
        const evidence = looking.evidence(
          'sessions',
          requestOf(`/sessions/${encodeURIComponent(session_id)}`),
          fieldsOf(session, 'state', 'connector', 'updated_at'),
        )
        return finding('session_without_connector', { session_id, site_id }, null, [
          evidence,
          ...(holderOf ? [holderEvidence(looking, connector, null)] : []),
        ])
      })
  },
})
