/** The tables of `top`: which list each fetches, and which fields it shows first. */

/** How a value is written: an id, words without underscores, an age, a duration, a state instead of yes or no. */
export type Format = 'id' | 'words' | 'age' | 'ms' | 'alive' | 'silent'

export interface TopField {
  /** Heading of the column. */
  readonly head: string
  /** Where the value is in the row; with a dot for one of an object in it. */
  readonly path: string
  readonly format?: Format
  /** Where the value is if that one is not there, and what is written before it. */
  readonly instead?: readonly [path: string, prefix: string]
}

export interface TopTable {
  readonly name: string
  readonly route: string
  /** What tells a row from every other. */
  readonly id: readonly string[]
  /** The first is what names a row; the last are left out first if there is no room. */
  readonly fields: readonly TopField[]
  /** Values that make a row stand out, by their path. */
  readonly marks?: { readonly [path: string]: RegExp }
}

const field = (path: string, head = path, format?: Format): TopField => ({ head, path, ...(format && { format }) })

export const NODES_ROUTE = '/delivery/nodes?limit=200'
export const FINDINGS_ROUTE = '/findings?limit=100'

export const TABLES: readonly TopTable[] = [
  {
    name: 'nodes',
    route: NODES_ROUTE,
    id: ['node_id'],
    fields: [
      field('node_id', 'node_id', 'id'),
      field('stale', 'state', 'silent'),
      field('staleness_ms', 'silent for', 'ms'),
      field('connection_waiters', 'waiters'),
      field('active_drainers', 'drainers'),
      field('mailbox_listener_alive', 'listener', 'alive'),
      field('reconciliation_loop_alive', 'loop', 'alive'),
      field('updated_at', 'reported', 'age'),
    ],
    marks: { stale: /^true$/ },
  },
  {
    name: 'tenants',
    route: '/delivery/tenants?limit=200',
    id: ['scope_id'],
    fields: [
      field('scope_id', 'scope_id', 'id'),
      field('reserved_commands', 'reserved'),
      field('capacity'),
      field('oldest_deadline_at', 'oldest deadline', 'age'),
    ],
  },
  {
    name: 'commands',
    route: '/delivery/commands?limit=200',
    id: ['user_id', 'client_id', 'command_id', 'admission.scope_id'],
    fields: [
      field('command_id', 'command_id', 'id'),
      field('state', 'state', 'words'),
      { ...field('terminal.reason', 'because', 'words'), instead: ['waits_for', 'waits for '] },
      field('admission.at', 'admitted', 'age'),
      field('attempts.count', 'attempts'),
      field('action'),
      field('user_id', 'user_id', 'id'),
      field('client_id', 'client_id', 'id'),
      field('attempts.last_outcome', 'last outcome', 'words'),
      field('overdue'),
      field('admission.deadline_at', 'deadline', 'age'),
      field('admission.scope_id', 'scope_id', 'id'),
    ],
    marks: { state: /^(failed|expired|rejected)$/, overdue: /^true$/ },
  },
  {
    name: 'connections',
    route: '/connections?limit=200',
    id: ['connection_id'],
    fields: [
      field('connection_id', 'connection_id', 'id'),
      field('status', 'status', 'words'),
      field('ended_reason', 'because', 'words'),
      field('user_id', 'user_id', 'id'),
      field('client_id', 'client_id', 'id'),
      field('client_type', 'type'),
      field('node_id'),
      field('last_seen_at', 'last seen', 'age'),
      field('connected_at', 'connected', 'age'),
      field('superseded_count', 'superseded'),
    ],
  },
  {
    name: 'calls',
    route: '/rpc/pending?limit=200',
    id: ['correlation_id'],
    fields: [
      field('correlation_id', 'correlation_id', 'id'),
      field('age_ms', 'age', 'ms'),
      field('overdue'),
      field('action'),
      field('user_id', 'user_id', 'id'),
      field('client_id', 'client_id', 'id'),
      field('deadline_at', 'deadline', 'age'),
      field('instance_id', 'instance_id', 'id'),
    ],
    marks: { overdue: /^true$/ },
  },
  {
    name: 'viewers',
    route: '/subscriptions?order=slowest&limit=200',
    id: ['subscription_id'],
    fields: [
      field('subscription_id', 'subscription_id', 'id'),
      field('pending'),
      field('dropped'),
      field('user_id', 'user_id', 'id'),
      field('session_id', 'session_id', 'id'),
      field('site_id'),
      field('node_id'),
      field('last_taken_at', 'last taken', 'age'),
    ],
    marks: { dropped: /^[1-9]/ },
  },
  {
    name: 'findings',
    route: FINDINGS_ROUTE,
    id: ['finding_id'],
    fields: [
      field('kind', 'kind', 'words'),
      field('since', 'since', 'age'),
      ...['user_id', 'client_id', 'command_id', 'node_id', 'scope_id', 'correlation_id', 'session_id'].map((name) =>
        field(`subject.${name}`, name),
      ),
      field('means'),
    ],
  },
]

/** Fetched together with the table, each time. */
export const HEADER_ROUTES = ['/capabilities', '/sources', '/delivery/summary', FINDINGS_ROUTE, NODES_ROUTE] as const
