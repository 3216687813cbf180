/** What connected clients can do. */
import type { ActionObservation } from '../../../contract/connections.js'
import { choice, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { Text } from '../parts/text.js'
import { Count, Json, Names } from '../parts/value.js'
import { CLIENT_TYPES } from './connections.js'

export const ACTIONS: ListView<ActionObservation> = {
  path: '/actions',
  title: 'Actions',
  about: 'What the clients that are connected now say they can do.',
  source: 'registry',
  filters: [text('user_id'), choice('client_type', CLIENT_TYPES)],
  keyOf: ({ name }) => name,
  columns: [
    { head: 'action', cell: ({ name }) => <Text value={name} /> },
    { head: 'description', cell: ({ description }) => <Json value={description} /> },
    { head: 'connections', cell: (row) => <Count value={row.observed_connections} />, isNumber: true },
    { head: 'users', cell: (row) => <Count value={row.observed_users} />, isNumber: true },
    { head: 'client types', cell: (row) => <Names names={row.observed_client_types} /> },
    { head: 'parameters', cell: (row) => <Json value={row.parameters_schema} /> },
  ],
}
