/** Delivery nodes with their loops, and the scopes that commands are admitted on account of. */
import type { DeliveryNode, DeliveryTenant } from '../../../contract/delivery.js'
import { text } from '../parts/filters.js'
import type { ListView } from '../parts/list.js'
import { NodeRef, ScopeRef } from '../parts/ref.js'
import { Unknown } from '../parts/text.js'
import { Count, Json, Time, Truth, Word } from '../parts/value.js'
import { plain, spanOf } from '../words.js'

/** What a node has counted since its start, as words. */
const countersOf = ({ counters }: DeliveryNode) =>
  Object.values(counters)
    .flatMap((group) => Object.entries(group))
    .map(([name, value]) => `${plain(name)} ${value}`)
    .join(', ')

export const NODES: ListView<DeliveryNode> = {
  path: '/delivery/nodes',
  title: 'Nodes',
  about: 'Who delivers. Of a silent node its last word is shown and the rest is unknown.',
  source: 'delivery',
  filters: [],
  keyOf: ({ node_id }) => node_id,
  markOf: ({ stale }) => (stale ? 'past' : ''),
  columns: [
    { head: 'node', cell: ({ node_id }) => <NodeRef id={node_id} /> },
    {
      head: 'says',
      cell: ({ stale }) => (stale === null ? <Unknown /> : <Word value={stale ? 'silent' : 'active'} />),
    },
    { head: 'listener', cell: (row) => <Truth value={row.mailbox_listener_alive} yes="alive" no="not alive" /> },
    { head: 'loop', cell: (row) => <Truth value={row.reconciliation_loop_alive} yes="alive" no="not alive" /> },
    { head: 'waiters', cell: (row) => <Count value={row.connection_waiters} />, isNumber: true },
    { head: 'drainers', cell: (row) => <Count value={row.active_drainers} />, isNumber: true },
    { head: 'last word', cell: ({ updated_at }) => <Time at={updated_at} /> },
    {
      head: 'silent for',
      cell: ({ staleness_ms }) => (staleness_ms === null ? <Unknown /> : spanOf(staleness_ms)),
      isNumber: true,
    },
    { head: 'counted since its start', cell: countersOf },
    { head: 'metadata', cell: ({ metadata }) => <Json value={metadata} /> },
  ],
}

/** How full a scope is; without a known bound there is nothing to draw. */
function Share({ reserved_commands, capacity }: DeliveryTenant) {
  if (capacity === null) return <Unknown />
  return (
    <>
      <meter min={0} max={capacity} value={reserved_commands} aria-label="taken" /> {capacity}
    </>
  )
}

export const TENANTS: ListView<DeliveryTenant> = {
  path: '/delivery/tenants',
  title: 'Tenants',
  about: 'Scopes with reservations. A scope is a quota, by default a user; it need not be a customer.',
  source: 'delivery',
  filters: [text('scope_id')],
  keyOf: ({ scope_id }) => scope_id,
  columns: [
    { head: 'scope', cell: ({ scope_id }) => <ScopeRef id={scope_id} /> },
    { head: 'reserved', cell: ({ reserved_commands }) => reserved_commands, isNumber: true },
    { head: 'capacity', cell: (row) => <Share {...row} />, isNumber: true },
    { head: 'oldest deadline', cell: ({ oldest_deadline_at }) => <Time at={oldest_deadline_at} /> },
    { head: 'metadata', cell: ({ metadata }) => <Json value={metadata} /> },
  ],
}
