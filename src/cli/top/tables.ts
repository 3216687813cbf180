/** The tables of `top`: which list each asks, and which fields it shows first. */

export interface TopTable {
  readonly name: string
  readonly route: string
  /** What tells a row from every other. */
  readonly id: readonly string[]
  /** The first is what names a row; those behind go first where there is no place. */
  readonly fields: readonly string[]
}

export const TABLES: readonly TopTable[] = [
  {
    name: 'nodes',
    route: '/delivery/nodes?limit=200',
    id: ['node_id'],
    fields: [
      'node_id',
      'stale',
      'mailbox_listener_alive',
      'reconciliation_loop_alive',
      'connection_waiters',
      'active_drainers',
      'staleness_ms',
      'updated_at',
    ],
  },
  {
    name: 'tenants',
    route: '/delivery/tenants?limit=200',
    id: ['scope_id'],
    fields: ['scope_id', 'reserved_commands', 'capacity', 'oldest_deadline_at'],
  },
  {
    name: 'commands',
    route: '/delivery/commands?limit=200',
    id: ['user_id', 'client_id', 'command_id', 'admission.scope_id'],
    fields: [
      'command_id',
      'state',
      'overdue',
      'action',
      'user_id',
      'client_id',
      'admission.at',
      'admission.deadline_at',
      'attempts.count',
      'attempts.last_outcome',
      'terminal.reason',
      'admission.scope_id',
    ],
  },
  {
    name: 'connections',
    route: '/connections?limit=200',
    id: ['connection_id'],
    fields: [
      'connection_id',
      'status',
      'user_id',
      'client_id',
      'client_type',
      'node_id',
      'last_seen_at',
      'connected_at',
      'ended_reason',
      'superseded_count',
    ],
  },
  {
    name: 'calls',
    route: '/rpc/pending?limit=200',
    id: ['correlation_id'],
    fields: ['correlation_id', 'action', 'user_id', 'client_id', 'age_ms', 'overdue', 'deadline_at', 'instance_id'],
  },
  {
    name: 'viewers',
    route: '/subscriptions?order=slowest&limit=200',
    id: ['subscription_id'],
    fields: ['subscription_id', 'pending', 'dropped', 'user_id', 'session_id', 'site_id', 'node_id', 'last_taken_at'],
  },
]

/** What is asked beside the table, each time. */
export const HEADER_ROUTES = [
  '/capabilities',
  '/sources',
  '/delivery/summary',
  '/findings?limit=100',
  '/delivery/commands?state=waiting&limit=100',
  '/delivery/commands?state=attempted&limit=100',
  '/delivery/commands?state=acknowledged&limit=100',
] as const
