/** Cooperative sites, their sessions, and the viewer streams that are open. */
import type { JSX } from 'preact'
import type { SessionRowAnswer, SessionState } from '../../../internal/contract/sessions.js'
import type { SiteMode, SiteRowAnswer } from '../../../internal/contract/sites.js'
import type { SubscriptionRowAnswer } from '../../../internal/contract/subscriptions.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Field, Fields, idOf, whoOf } from '../parts/field.js'
import { choice, ORDER, text } from '../parts/filters.js'
import { Excerpt, type ListView } from '../parts/list.js'
import { Truth } from '../parts/value.js'

const MODES: SiteMode[] = ['cooperative', 'observe']
const STATES: SessionState[] = ['pending', 'active', 'suspended', 'closed', 'expired']

export const SITES: ListView<SiteRowAnswer> = {
  path: '/sites',
  title: 'Sites',
  about: 'Applications that publish events.',
  filters: [text('owner'), choice('mode', MODES)],
  keyOf: ({ owner, site_id }) => `${owner} ${site_id}`,
  columns: ['site_id', 'title', 'owner', 'mode', 'event_names', 'action_names', 'sessions', 'last_event_at'],
}

const connectorOf = ({ connector }: SessionRowAnswer) => connector && <Field name="client_id" record={connector} />

export const SESSIONS: ListView<SessionRowAnswer> = {
  path: '/sessions',
  title: 'Sessions',
  about: 'Shared sessions of cooperative sites.',
  filters: [text('owner'), text('site_id'), choice('state', STATES), ORDER],
  keyOf: ({ session_id }) => session_id,
  markOf: ({ state }) => (/closed|expired/.test(state) ? 'past' : ''),
  columns: [
    whoOf('session_id'),
    'state',
    'expires_at',
    'site_id',
    { head: 'connector', cell: connectorOf },
    { head: 'connected', cell: (row) => <Truth value={row.connector_connected} yes="connected" no="not connected" /> },
    'shares',
    'viewers',
    idOf('session_id'),
  ],
}

export const SUBSCRIPTIONS: ListView<SubscriptionRowAnswer> = {
  path: '/subscriptions',
  title: 'Viewers',
  about: 'Open event streams, and how far behind each is.',
  filters: [text('session_id'), text('site_id'), text('user_id'), text('node_id'), choice('order', ['slowest'])],
  keyOf: ({ subscription_id }) => subscription_id,
  markOf: ({ dropped }) => (dropped ? 'bad' : ''),
  columns: [
    'subscription_id',
    'pending',
    'dropped',
    'user_id',
    'session_id',
    'site_id',
    'node_id',
    'opened_at',
    'last_taken_at',
    'last_position',
  ],
}

export function SitePage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<SiteRowAnswer>(path)
  const { value } = answer
  return (
    <>
      <Card isMain title="Site" answer={answer}>
        {(site) => <Fields record={site} />}
      </Card>
      {value && <Excerpt view={SESSIONS} query={{ site_id: value.site_id }} />}
      {value && <Excerpt view={SUBSCRIPTIONS} query={{ site_id: value.site_id }} />}
    </>
  )
}

export function SessionPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<SessionRowAnswer>(path)
  const { value } = answer
  return (
    <>
      <Card isMain title="Session" answer={answer}>
        {(session) => (
          <Fields
            record={session}
            show={{
              connector: connectorOf(session),
              connector_connected: <Truth value={session.connector_connected} no="no: actions cannot reach it" />,
            }}
          />
        )}
      </Card>
      {value && <Excerpt view={SUBSCRIPTIONS} query={{ session_id: value.session_id }} />}
    </>
  )
}
