/** Delivery nodes with their loops, and the scopes that commands are admitted on account of. */
import type { Capabilities } from '../../../internal/contract/capabilities.js'
import type { DeliveryNodeAnswer, DeliveryTenantAnswer } from '../../../internal/contract/delivery.js'
import { queryState } from '../answers.js'
import { useAnswer } from '../hooks.js'
import { text } from '../parts/filters.js'
import type { Listed, ListView } from '../parts/list.js'
import { Unknown } from '../parts/text.js'
import { Json, Term, Truth } from '../parts/value.js'

/** Where one process is all there is, nothing listens for another one: that is not unknown. */
const isAlone = () => (queryState('/capabilities').value as Capabilities | null)?.extensions?.mode === 'direct'

const Alive = ({ value, isSilent }: { value: boolean | null; isSilent: boolean | null }) =>
  value === null && isSilent === false && isAlone() ? (
    <span class="dim">not needed</span>
  ) : (
    <Truth value={value} yes="alive" no="not alive" />
  )

/** Those that a glance needs. */
const NODE_COLUMNS: ListView<DeliveryNodeAnswer>['columns'] = [
  'node_id',
  { head: 'state', cell: ({ stale }) => (stale === null ? <Unknown /> : <Term value={stale ? 'silent' : 'active'} />) },
  { head: 'listener', cell: (row) => <Alive value={row.mailbox_listener_alive} isSilent={row.stale} /> },
  { head: 'loop', cell: (row) => <Alive value={row.reconciliation_loop_alive} isSilent={row.stale} /> },
  'staleness_ms',
  'connection_waiters',
  'active_drainers',
]

export const NODES: ListView<DeliveryNodeAnswer> = {
  path: '/delivery/nodes',
  title: 'Nodes',
  about: 'What runs on a silent node is unknown; its counters are as of its last report.',
  filters: [],
  keyOf: ({ node_id }) => node_id,
  markOf: ({ stale }) => (stale ? 'past' : ''),
  columns: [
    ...NODE_COLUMNS,
    'updated_at',
    {
      head: 'counted since its start',
      cell: ({ counters }) => <Json value={Object.assign({}, ...Object.values(counters ?? {}))} />,
    },
    'metadata',
  ],
}

export const useNodes = () => useAnswer<Listed<DeliveryNodeAnswer>>(NODES.path)

/** The ids of those that are silent. */
export const silentNodes = ({ value }: { value: unknown }): readonly string[] =>
  ((value as Listed<DeliveryNodeAnswer> | null)?.items ?? []).flatMap(({ stale, node_id }) => (stale ? [node_id] : []))

/** How full a scope is; without a known bound there is nothing to draw. */
const defaultShare = ({ reserved_commands, capacity }: DeliveryTenantAnswer) =>
  capacity === null || reserved_commands === null ? (
    <Unknown />
  ) : (
    <>
      <meter min={0} max={capacity} value={reserved_commands} aria-label="taken" /> {capacity}
    </>
  )

export const TENANTS: ListView<DeliveryTenantAnswer> = {
  path: '/delivery/tenants',
  title: 'Tenants',
  about: 'Scopes of admission: each has a quota of commands. By default each user is one.',
  filters: [text('scope_id')],
  keyOf: ({ scope_id }) => scope_id,
  // The fullest first.
  order: (a, b) => (b.reserved_commands ?? 0) - (a.reserved_commands ?? 0),
  columns: [
    'scope_id',
    'reserved_commands',
    { head: 'capacity', cell: defaultShare },
    'oldest_deadline_at',
    'metadata',
  ],
}
