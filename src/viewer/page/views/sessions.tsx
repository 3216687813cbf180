/** Cooperative sites, their sessions, and the viewer streams that are open. */
import type { JSX } from 'preact'
import type { SessionRow, SessionState } from '../../../contract/sessions.js'
import type { SiteMode, SiteRow } from '../../../contract/sites.js'
import type { SubscriptionRow } from '../../../contract/subscriptions.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/fields.js'
import { choice, text } from '../parts/filters.js'
import { Excerpt, type ListView } from '../parts/list.js'
import { ClientRef, NodeRef, SessionRef, SiteRef, UserRef } from '../parts/ref.js'
import { Text } from '../parts/text.js'
import { Count, Json, Names, Time, Truth, Word } from '../parts/value.js'

const MODES: SiteMode[] = ['cooperative', 'observe']
const STATES: SessionState[] = ['pending', 'active', 'suspended', 'closed', 'expired']

export const SITES: ListView<SiteRow> = {
  path: '/sites',
  title: 'Sites',
  about: 'Local applications that publish events and may answer actions.',
  source: 'sites',
  filters: [text('owner'), choice('mode', MODES)],
  keyOf: ({ owner, site_id }) => `${owner} ${site_id}`,
  columns: [
    { head: 'site', cell: ({ site_id }) => <SiteRef id={site_id} /> },
    { head: 'title', cell: ({ title }) => <Json value={title} /> },
    { head: 'owner', cell: ({ owner }) => <UserRef id={owner} /> },
    { head: 'mode', cell: ({ mode }) => mode },
    { head: 'events', cell: ({ event_names }) => <Names names={event_names} /> },
    { head: 'actions', cell: ({ action_names }) => <Names names={action_names} /> },
    { head: 'sessions', cell: ({ sessions }) => <Count value={sessions} />, isNumber: true },
    { head: 'last event', cell: ({ last_event_at }) => <Time at={last_event_at} /> },
  ],
}

export const SESSIONS: ListView<SessionRow> = {
  path: '/sessions',
  title: 'Sessions',
  about: 'What is shared of a site, and whether the client that answers for it is there.',
  source: 'sessions',
  filters: [text('owner'), text('site_id'), choice('state', STATES)],
  keyOf: ({ session_id }) => session_id,
  markOf: ({ state }) => (state === 'closed' || state === 'expired' ? 'past' : ''),
  columns: [
    { head: 'session', cell: ({ session_id }) => <SessionRef id={session_id} /> },
    { head: 'site_id', cell: ({ site_id }) => <SiteRef id={site_id} /> },
    { head: 'owner', cell: ({ owner }) => <UserRef id={owner} /> },
    { head: 'state', cell: ({ state }) => <Word value={state} /> },
    { head: 'connector', cell: ({ connector }) => connector && <ClientRef {...connector} /> },
    {
      head: 'connected',
      cell: ({ connector_connected }) => <Truth value={connector_connected} yes="connected" no="not connected" />,
    },
    { head: 'shares', cell: ({ shares }) => <Count value={shares} />, isNumber: true },
    { head: 'viewers', cell: ({ viewers }) => <Count value={viewers} />, isNumber: true },
    { head: 'expires', cell: ({ expires_at }) => <Time at={expires_at} /> },
  ],
}

export const SUBSCRIPTIONS: ListView<SubscriptionRow> = {
  path: '/subscriptions',
  title: 'Viewers',
  about: 'Viewer streams that are open, and how far behind each is.',
  source: 'subscriptions',
  filters: [text('session_id'), text('site_id'), text('user_id'), text('node_id'), choice('order', ['slowest'])],
  keyOf: ({ subscription_id }) => subscription_id,
  markOf: ({ dropped }) => (dropped > 0 ? 'warn' : ''),
  columns: [
    { head: 'stream', cell: ({ subscription_id }) => <Text value={subscription_id} /> },
    { head: 'viewer', cell: ({ user_id }) => <UserRef id={user_id} /> },
    { head: 'session_id', cell: ({ session_id }) => <SessionRef id={session_id} /> },
    { head: 'site_id', cell: ({ site_id }) => <SiteRef id={site_id} /> },
    { head: 'node_id', cell: ({ node_id }) => <NodeRef id={node_id} /> },
    { head: 'since', cell: ({ opened_at }) => <Time at={opened_at} /> },
    { head: 'pending', cell: ({ pending }) => pending, isNumber: true },
    { head: 'dropped', cell: ({ dropped }) => dropped, isNumber: true },
    { head: 'last taken', cell: ({ last_taken_at }) => <Time at={last_taken_at} /> },
    { head: 'last position', cell: ({ last_position }) => <Json value={last_position} /> },
  ],
}

export function SitePage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<SiteRow>(path)
  return (
    <>
      <Card isMain title="Site" answer={answer}>
        {(site) => (
          <Fields
            record={site}
            show={{
              owner: <UserRef id={site.owner} />,
              event_names: <Names names={site.event_names} />,
              action_names: <Names names={site.action_names} />,
              sessions: <Count value={site.sessions} />,
            }}
          />
        )}
      </Card>
      {answer.value && <Excerpt view={SESSIONS} query={{ site_id: answer.value.site_id }} />}
      {answer.value && <Excerpt view={SUBSCRIPTIONS} query={{ site_id: answer.value.site_id }} />}
    </>
  )
}

export function SessionPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<SessionRow>(path)
  return (
    <>
      <Card isMain title="Session" answer={answer}>
        {(session) => (
          <Fields
            record={session}
            show={{
              site_id: <SiteRef id={session.site_id} />,
              owner: <UserRef id={session.owner} />,
              state: <Word value={session.state} />,
              connector: session.connector && <ClientRef {...session.connector} />,
              connector_connected: (
                <Truth
                  value={session.connector_connected}
                  yes="connected"
                  no="not connected: actions have nobody to go to"
                />
              ),
              shares: <Count value={session.shares} />,
              viewers: <Count value={session.viewers} />,
            }}
          />
        )}
      </Card>
      {answer.value && <Excerpt view={SUBSCRIPTIONS} query={{ session_id: answer.value.session_id }} />}
    </>
  )
}
