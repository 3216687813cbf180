/** Delivery nodes with their loops, and the scopes that commands are admitted on account of. */
import type { DeliveryNode, DeliveryTenant } from '../../../contract/delivery.js'
import { text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { Unknown } from '../parts/text.js'
import { Json, Term, Truth } from '../parts/value.js'

/** Those that a glance needs. */
export const NODE_COLUMNS: ListView<DeliveryNode>['columns'] = [
  'node_id',
  { head: 'says', cell: ({ stale }) => (stale === null ? <Unknown /> : <Term value={stale ? 'silent' : 'active'} />) },
  { head: 'listener', cell: (row) => <Truth value={row.mailbox_listener_alive} yes="alive" no="not alive" /> },
  { head: 'loop', cell: (row) => <Truth value={row.reconciliation_loop_alive} yes="alive" no="not alive" /> },
  'staleness_ms',
  'connection_waiters',
  'active_drainers',
]

export const NODES: ListView<DeliveryNode> = {
  path: '/delivery/nodes',
  title: 'Nodes',
  about: 'A silent node shows its last word; the rest is unknown.',
  filters: [],
  keyOf: ({ node_id }) => node_id,
  markOf: ({ stale }) => (stale ? 'past' : ''),
  columns: [
    ...NODE_COLUMNS,
    'updated_at',
    {
      head: 'counted since its start',
      cell: ({ counters }) => <Json value={Object.assign({}, ...Object.values(counters))} />,
    },
    'metadata',
  ],
}

/** How full a scope is; without a known bound there is nothing to draw. */
const shareOf = ({ reserved_commands, capacity }: DeliveryTenant) =>
  capacity === null ? (
    <Unknown />
  ) : (
    <>
      <meter min={0} max={capacity} value={reserved_commands} aria-label="taken" /> {capacity}
    </>
  )

export const TENANTS: ListView<DeliveryTenant> = {
  path: '/delivery/tenants',
  title: 'Tenants',
  about: 'Quotas with reservations, one a user by default.',
  filters: [text('scope_id')],
  keyOf: ({ scope_id }) => scope_id,
  columns: ['scope_id', 'reserved_commands', { head: 'capacity', cell: shareOf }, 'oldest_deadline_at', 'metadata'],
}
