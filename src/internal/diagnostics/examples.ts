/** The records in the examples of the routes: one user at work, the same on every route. */
import type { BrowserWindowInput } from '../contract/browser-windows.js'
import type { SourceName } from '../contract/capabilities.js'
import type {
  ActionObservationInput,
  ClientEventInput,
  ConnectionChurnInput,
  ConnectionEventInput,
  ConnectionInput,
} from '../contract/connections.js'
import type { ContextInput } from '../contract/contexts.js'
import type { DeduplicatorSummaryInput, DeduplicatorUserSummaryInput } from '../contract/deduplicator.js'
import type { HistoryMessageInput, HistoryStreamInput } from '../contract/history.js'
import { EXAMINED_MAX } from '../contract/limits.js'
import type { EndedCallInput, PendingCallInput, RpcSummaryInput } from '../contract/rpc.js'
import type { SessionRowInput } from '../contract/sessions.js'
import { SITE_EXAMPLE, type SiteRowInput } from '../contract/sites.js'
import type { SubscriptionRowInput } from '../contract/subscriptions.js'
import type { UserObservation } from '../views/user-observation.js'

/** A time of the example: `09:41` plus `seconds`. */
export const exampleTime = (seconds: number): string => new Date(Date.UTC(2026, 0, 15, 9, 41, seconds)).toISOString()

/** A list that ends with these. */
export const lastPage = <T>(...items: T[]) => ({ items, next_cursor: null, has_more: false })

/** A complete response whose sources examined these numbers of entries. */
export const complete = (examined: Partial<Record<SourceName, number>>) => ({
  complete: true,
  truncated_sources: [],
  examined,
  limits: Object.fromEntries(Object.keys(examined).map((source) => [source, EXAMINED_MAX])),
})

export const CLIENT = { user_id: 'ada', client_id: 'laptop' }
export const INSTANCE = { ...CLIENT, instance_id: 'laptop-7f3a' }

export const CONNECTION: ConnectionInput = {
  connection_id: 'c-81',
  ...INSTANCE,
  client_type: 'browser',
  node_id: 'node-1',
  status: 'connected',
  connected_at: exampleTime(0),
  last_seen_at: exampleTime(25),
  disconnected_at: null,
  ended_reason: null,
  superseded_count: 0,
  actions: ['open_report'],
  metadata: { version: '4.2.0' },
}

export const CHURN: ConnectionChurnInput = {
  items: [
    { minute: exampleTime(-101), opened: 0, ended: {} },
    { minute: exampleTime(-41), opened: 3, ended: { client_closed: 1, heartbeat_lost: 1 } },
  ],
  observed_at: exampleTime(30),
}

export const CONNECTION_EVENT: ConnectionEventInput = {
  connection_id: CONNECTION.connection_id,
  event: 'connected',
  at: exampleTime(0),
  reason: null,
}

export const CLIENT_EVENT: ClientEventInput = {
  connection_id: CONNECTION.connection_id,
  user_id: CONNECTION.user_id,
  client_id: CONNECTION.client_id,
  instance_id: CONNECTION.instance_id,
  client_type: CONNECTION.client_type,
  node_id: CONNECTION.node_id,
  event: 'disconnected',
  at: exampleTime(20),
  reason: 'heartbeat_lost',
}

export const ACTION: ActionObservationInput = {
  name: 'open_report',
  description: 'Opens a report in a tab',
  parameters_schema: { type: 'object', properties: { report_id: { type: 'string' } } },
  observed_connections: 1,
  observed_users: 1,
  observed_client_types: ['browser'],
}

export const MESSAGE: HistoryMessageInput = {
  message_id: 'm-1042',
  stream: 'users/ada/log',
  sequence: 17,
  kind: 'event',
  ...INSTANCE,
  recorded_at: exampleTime(12),
  payload: { text: 'report opened' },
  externalized: null,
}

export const STREAM: HistoryStreamInput = {
  stream: MESSAGE.stream,
  user_id: 'ada',
  message_count: 17,
  first_recorded_at: exampleTime(1),
  last_recorded_at: MESSAGE.recorded_at,
}

export const CALL: PendingCallInput = {
  correlation_id: '5f0c9a52d1e84c1b9a4be2f3c7d60e18',
  action: 'open_report',
  ...INSTANCE,
  started_at: exampleTime(28),
  deadline_at: null,
  age_ms: 2_000,
  overdue: false,
  direction: 'to_client',
  observed: true,
  answered_since: 'none',
}

export const ENDED_CALL: EndedCallInput = {
  correlation_id: '0b1e6f70c2aa4d6f8c1d9d6a5e4b3f21',
  action: 'open_report',
  ...INSTANCE,
  outcome: 'timed_out',
  started_at: exampleTime(0),
  ended_at: exampleTime(10),
  duration_ms: 10_000,
  direction: 'to_client',
  observed: false,
}

export const CALLS: RpcSummaryInput = {
  pending: 1,
  oldest_started_at: CALL.started_at,
  oldest_age_ms: 2_000,
  overdue: 0,
  counters: { opened: 41, succeeded: 38, failed: 1, timed_out: 1, cancelled: 0, unanswered: 0, late: 1, foreign: 0 },
  observed: null,
  counting_since: exampleTime(0),
  observed_at: exampleTime(30),
}

export const CLAIMS: DeduplicatorSummaryInput = {
  entries: 1_042,
  capacity: 100_000,
  ttl_ms: 600_000,
  accepted: 1_042,
  duplicates: 3,
  evicted: 0,
}

export const USER_CLAIMS: DeduplicatorUserSummaryInput = {
  user_id: 'ada',
  entries: 17,
  accepted: 17,
  duplicates: 1,
  oldest_at: exampleTime(1),
}

/** A worker that carries a task. */
export const WORKER: ContextInput = {
  context_id: 'tab-3',
  ...INSTANCE,
  client_type: 'browser',
  status: 'active',
  status_reason: null,
  ownership: 'worker',
  window_id: 'w-2',
  task_id: 'report-9',
  task_assigned_at: exampleTime(20),
  created_at: exampleTime(2),
  updated_at: exampleTime(25),
}

export const IDLE_WORKER: ContextInput = {
  ...WORKER,
  context_id: 'tab-4',
  status: 'idle',
  task_id: null,
  task_assigned_at: null,
}

export const WINDOW: BrowserWindowInput = {
  window_id: 'w-2',
  ...CLIENT,
  ownership: 'worker',
  focused: false,
  type: 'normal',
  state: 'minimized',
  incognito: false,
  tab_count: 2,
  capacity: 8,
  draining: false,
  status: 'open',
  worker_count: 2,
  idle_count: 1,
  busy_count: 1,
  counts_source: 'contexts',
  updated_at: exampleTime(25),
}

export const USER: UserObservation = {
  user_id: 'ada',
  sources: ['registry', 'context_registry', 'browser_window_registry', 'rpc', 'history'],
  observed_connections: 1,
  observed_client_types: ['browser'],
  observed_action_types: ['open_report'],
  observed_contexts: 2,
  observed_browser_windows: 1,
  last_seen_at: exampleTime(25),
}

export const SITE: SiteRowInput = {
  ...SITE_EXAMPLE,
  sessions: 1,
  last_event_at: exampleTime(27),
  last_position: '9f2c:41',
}

export const SESSION: SessionRowInput = {
  session_id: 'b51c-shared-notes',
  site_id: SITE.site_id,
  owner: 'ada',
  state: 'active',
  connector: { ...CLIENT },
  opened_at: exampleTime(1),
  expires_at: null,
  updated_at: exampleTime(1),
  close_reason: null,
  connector_connected: true,
  shares: 2,
  next_share_expires_at: exampleTime(59),
  viewers: 1,
}

export const SUBSCRIPTION: SubscriptionRowInput = {
  subscription_id: '3d0e-bea',
  session_id: SESSION.session_id,
  site_id: SITE.site_id,
  user_id: 'bea',
  node_id: 'node-1',
  opened_at: exampleTime(2),
  pending: 3,
  dropped: 0,
  last_position: '9f2c:38',
  last_taken_at: exampleTime(26),
}
