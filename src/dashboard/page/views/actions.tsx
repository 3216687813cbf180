/** What connected clients can do. */
import type { ActionObservation } from '../../../contract/connections.js'
import { CLIENT_TYPES, choice, text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'

export const ACTIONS: ListView<ActionObservation> = {
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
