/** Connections, and one of them with the line of its life and what hangs on it. */
import type { JSX } from 'preact'
import type { ClientType, Connection, ConnectionEvent, ConnectionStatus } from '../../../contract/connections.js'
import { Lifeline } from '../charts/lifeline.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields } from '../parts/fields.js'
import { choice, text } from '../parts/filters.js'
import { Excerpt, type Listed, type ListView } from '../parts/list.js'
import { ClientRef, ConnectionRef, InstanceRef, NodeRef, UserRef } from '../parts/ref.js'
import { Moment, Names, Time, Word } from '../parts/value.js'
import { CALLS } from './calls.js'
import { COMMANDS } from './commands.js'
import { CONTEXTS } from './contexts.js'

export const CLIENT_TYPES: ClientType[] = ['browser', 'console', 'mobile', 'web']
const STATUSES: ConnectionStatus[] = ['connected', 'disconnected']

export const CONNECTIONS: ListView<Connection> = {
  path: '/connections',
  title: 'Connections',
  about: 'Who is connected, and who was until a while ago: newest registrations last.',
  source: 'registry',
  filters: [
    text('user_id'),
    text('client_id'),
    choice('client_type', CLIENT_TYPES),
    choice('status', STATUSES),
    text('node_id'),
    text('ended_reason'),
  ],
  keyOf: ({ connection_id }) => connection_id,
  markOf: ({ status }) => (status === 'disconnected' ? 'past' : ''),
  columns: [
    { head: 'connection', cell: ({ connection_id }) => <ConnectionRef id={connection_id} /> },
    { head: 'user_id', cell: ({ user_id }) => <UserRef id={user_id} /> },
    { head: 'client_id', cell: (row) => <ClientRef {...row} /> },
    { head: 'client_type', cell: ({ client_type }) => client_type },
    { head: 'status', cell: ({ status }) => <Word value={status} /> },
    { head: 'ended_reason', cell: ({ ended_reason }) => <Word value={ended_reason} /> },
    { head: 'node_id', cell: ({ node_id }) => <NodeRef id={node_id} /> },
    { head: 'connected_at', cell: ({ connected_at }) => <Time at={connected_at} /> },
    { head: 'last_seen_at', cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
    { head: 'superseded', cell: ({ superseded_count }) => superseded_count ?? '–', isNumber: true },
    { head: 'actions', cell: ({ actions }) => actions.length, isNumber: true },
  ],
}

export function ConnectionPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<Connection>(path)
  const history = useAnswer<Listed<ConnectionEvent>>(`${path}/history?limit=500`)
  const { value } = answer
  const client = value && { user_id: value.user_id, client_id: value.client_id }
  return (
    <>
      <Card isMain title="Connection" answer={answer}>
        {(connection) => (
          <Fields
            record={connection}
            show={{
              user_id: <UserRef id={connection.user_id} />,
              client_id: <ClientRef {...connection} />,
              instance_id: <InstanceRef {...connection} />,
              node_id: <NodeRef id={connection.node_id} />,
              status: <Word value={connection.status} />,
              last_seen_at: <Moment at={connection.last_seen_at} />,
              ended_reason: <Word value={connection.ended_reason} />,
              actions: <Names names={connection.actions} />,
            }}
          />
        )}
      </Card>
      <Card title="Its life" answer={history}>
        {({ items }) => <Lifeline events={items} connection={value} />}
      </Card>
      {client && (
        <>
          <Excerpt view={CONTEXTS} query={client} />
          <Excerpt view={COMMANDS} query={client} />
          <Excerpt view={CALLS} query={client} />
        </>
      )}
    </>
  )
}
