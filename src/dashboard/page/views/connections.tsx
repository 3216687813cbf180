/** Connections, and one of them with the line of its life and what hangs on it. */
import type { JSX } from 'preact'
import type {
  ActionObservationAnswer,
  ConnectionAnswer,
  ConnectionEventAnswer,
  ConnectionStatus,
} from '../../../internal/contract/connections.js'
import { queryState } from '../answers.js'
import { Lifeline } from '../charts/axis.js'
import { useAnswer } from '../hooks.js'
import { Card } from '../parts/card.js'
import { Fields, idOf, whoOf } from '../parts/field.js'
import { CLIENT_TYPES, choice, ORDER, text } from '../parts/filters.js'
import { Excerpt, type Listed, type ListView } from '../parts/list.js'
import { Time, terms } from '../parts/value.js'
import { CALLS } from './calls.js'
import { COMMANDS, MAILBOXES } from './commands.js'
import { CONTEXTS } from './contexts.js'
import { NODES, silentNodes, useNodes } from './nodes.js'

const STATUSES: ConnectionStatus[] = ['connected', 'disconnected']

/** What a silent node last reported may not be so. */
const statusOf = ({ status, ended_reason, node_id }: ConnectionAnswer) =>
  status === 'connected' && silentNodes(queryState(NODES.path)).includes(node_id ?? '') ? (
    <span class="warn">connected, node silent</span>
  ) : (
    terms(status, ended_reason)
  )

export const CONNECTIONS: ListView<ConnectionAnswer> = {
  path: '/connections',
  title: 'Connections',
  about: 'Newest first. Disconnected ones are kept for an hour by default.',
  countedBy: '/connections/count',
  filters: [
    text('user_id'),
    text('client_id'),
    choice('client_type', CLIENT_TYPES),
    choice('status', STATUSES),
    text('node_id'),
    text('ended_reason'),
    text('silent_for_ms'),
    text('from'),
    text('to'),
    ORDER,
  ],
  keyOf: ({ connection_id }) => connection_id,
  markOf: ({ status }) => (status === 'disconnected' ? 'past' : ''),
  presets: [
    ['connected', { status: 'connected' }],
    ['lost', { ended_reason: 'heartbeat_lost' }],
    ['superseded', { ended_reason: 'new_instance' }],
  ],
  countBy: 'user_id',
  useBasis: () => silentNodes(useNodes()).join(),
  columns: [
    whoOf('connection_id'),
    { head: 'status', width: 'min(26ch, 36vw)', cell: statusOf },
    { head: 'connected_at', width: '10ch', cell: ({ connected_at }) => <Time at={connected_at} age="short" /> },
    'last_seen_at',
    'client_type',
    'node_id',
    idOf('connection_id'),
  ],
}

export function ConnectionPage({ path }: { path: string }): JSX.Element {
  const answer = useAnswer<ConnectionAnswer>(path)
  useNodes()
  const history = useAnswer<Listed<ConnectionEventAnswer>>(`${path}/history?limit=500`)
  const { value } = answer
  const client = value && { user_id: value.user_id, client_id: value.client_id }
  return (
    <>
      <Card isMain title="Connection" answer={answer}>
        {(connection) => <Fields record={connection} show={{ status: statusOf(connection) }} />}
      </Card>
      {answer.problem?.status !== 404 && (
        <Card title="Lifeline" answer={history}>
          {({ items }) => <Lifeline events={items} connection={value} />}
        </Card>
      )}
      {client && (
        <>
          <Excerpt view={MAILBOXES} query={client} />
          <Excerpt view={CONTEXTS} query={client} />
          <Excerpt view={COMMANDS} query={client} />
          <Excerpt view={CALLS} query={client} />
        </>
      )}
    </>
  )
}

// What connected clients can do.

export const ACTIONS: ListView<ActionObservationAnswer> = {
  path: '/actions',
  title: 'Actions',
  about: 'Actions that connected clients offer.',
  filters: [text('user_id'), choice('client_type', CLIENT_TYPES), text('name_prefix')],
  keyOf: ({ name }) => name,
  columns: [
    'name',
    'description',
    'observed_connections',
    'observed_users',
    'observed_client_types',
    'parameters_schema',
  ],
}
