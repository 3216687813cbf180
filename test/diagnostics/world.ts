/** A small world in which every route has something to say, for the tests of the router and of the contract suites. */
import type { BrowserWindow } from '../../src/internal/contract/browser-windows.js'
import type { Connection } from '../../src/internal/contract/connections.js'
import type { Context } from '../../src/internal/contract/contexts.js'
import type {
  DeliveryMailbox,
  DeliveryNode,
  DeliveryStatus,
  DeliveryTenant,
} from '../../src/internal/contract/delivery.js'
import type { HistoryMessage, HistoryStream } from '../../src/internal/contract/history.js'
import type { PendingCall } from '../../src/internal/contract/rpc.js'
import type { SessionRow } from '../../src/internal/contract/sessions.js'
import type { SiteRow } from '../../src/internal/contract/sites.js'
import type { SubscriptionRow } from '../../src/internal/contract/subscriptions.js'
import type { FakeWorld } from '../../src/testing/kits.js'

export const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 678)
/** The instant `ms` after `NOW`, as it stands on the wire. */
const at = (ms = 0) => (instants[ms] ??= new Date(NOW + ms).toISOString())
const instants: Record<number, string> = {}

export function connection(over: Partial<Connection> = {}): Connection {
  return {
    connection_id: 'conn-1',
    user_id: 'alice',
    client_id: 'desk',
    instance_id: 'inst-1',
    client_type: 'browser',
    node_id: null,
    status: 'connected',
    connected_at: at(-5_000),
    last_seen_at: at(-1_000),
    disconnected_at: null,
    actions: ['open', 'close'],
    metadata: { version: '1' },
    ...over,
  }
}

export function context(over: Partial<Context> = {}): Context {
  return {
    context_id: 'ctx-1',
    user_id: 'alice',
    client_id: 'desk',
    instance_id: 'inst-1',
    client_type: 'browser',
    status: 'idle',
    status_reason: null,
    ownership: 'worker',
    window_id: 'win-1',
    task_id: null,
    task_assigned_at: null,
    created_at: at(-5_000),
    updated_at: at(-1_000),
    ...over,
  }
}

export function browserWindow(over: Partial<BrowserWindow> = {}): BrowserWindow {
  return {
    window_id: 'win-1',
    user_id: 'alice',
    client_id: 'desk',
    ownership: 'worker',
    focused: true,
    type: 'normal',
    state: 'maximized',
    incognito: false,
    tab_count: 3,
    capacity: 8,
    draining: false,
    status: 'open',
    worker_count: 41,
    idle_count: 42,
    busy_count: 43,
    counts_source: 'snapshot',
    updated_at: at(-1_000),
    ...over,
  }
}

export function call(over: Partial<PendingCall> = {}): PendingCall {
  return {
    correlation_id: 'call-1',
    action: 'open',
    user_id: 'alice',
    client_id: 'desk',
    instance_id: 'inst-1',
    started_at: at(-2_000),
    deadline_at: at(8_000),
    age_ms: 2_000,
    direction: 'to_client',
    observed: false,
    ...over,
  }
}

export function message(over: Partial<HistoryMessage> = {}): HistoryMessage {
  return {
    message_id: 'msg-1',
    stream: 'users/alice/log',
    sequence: 1,
    kind: 'event',
    user_id: 'alice',
    client_id: 'desk',
    instance_id: 'inst-1',
    recorded_at: at(-3_000),
    payload: { text: 'hello' },
    externalized: null,
    ...over,
  }
}

export function stream(over: Partial<HistoryStream> = {}): HistoryStream {
  return {
    stream: 'users/alice/log',
    user_id: 'alice',
    message_count: 2,
    first_recorded_at: at(-3_000),
    last_recorded_at: at(-2_000),
    ...over,
  }
}

export function node(over: Partial<DeliveryNode> = {}): DeliveryNode {
  return {
    node_id: 'node-1',
    mailbox_listener_alive: true,
    reconciliation_loop_alive: true,
    active_drainers: 1,
    connection_waiters: 2,
    updated_at: at(-100),
    stale: false,
    staleness_ms: 100,
    counters: { recovery: { lease_expired: 1 }, outcome: {}, acknowledgement: { acknowledged: 5 }, other: {} },
    ...over,
  }
}

export function mailbox(over: Partial<DeliveryMailbox> = {}): DeliveryMailbox {
  return {
    user_id: 'alice',
    client_id: 'desk',
    instance_id: 'inst-1',
    node_id: 'node-1',
    attached_at: at(-600),
    waiting_commands: 0,
    ...over,
  }
}

function tenant(over: Partial<DeliveryTenant> = {}): DeliveryTenant {
  return { scope_id: 'alice', reserved_commands: 2, oldest_deadline_at: at(9_000), ...over }
}

function status(over: Partial<DeliveryStatus> = {}): DeliveryStatus {
  return {
    user_id: 'alice',
    client_id: 'desk',
    command_id: 'cmd-1',
    admission: { state: 'admitted', at: at(-500), scope_id: 'alice', deadline_at: at(9_000) },
    attempts: {
      count: 1,
      confirmed: 1,
      handed_over_at: at(-350),
      last_at: at(-400),
      last_node_id: 'node-1',
      last_outcome: 'handed_over',
      items: [],
      omitted: 1,
    },
    acknowledgement: { state: 'acknowledged', at: at(-300), instance_id: 'inst-1' },
    recovery: { count: 1, last_at: at(-200), reason: 'ack_timeout' },
    terminal: { state: 'resulted', at: at(-100), reason: null },
    overdue: false,
    ...over,
  }
}

function site(over: Partial<SiteRow> = {}): SiteRow {
  return {
    site_id: 'notes',
    owner: 'alice',
    mode: 'cooperative',
    title: 'Notes',
    event_names: ['note_changed'],
    action_names: ['archive_note'],
    capability_profile: { action_invocation: true },
    created_at: at(-9_000),
    updated_at: at(-8_000),
    sessions: null,
    last_event_at: at(-50),
    last_position: 'epoch-1:7',
    ...over,
  }
}

function session(over: Partial<SessionRow> = {}): SessionRow {
  return {
    session_id: 'session-1',
    site_id: 'notes-1',
    owner: 'alice',
    state: 'active',
    connector: { user_id: 'alice', client_id: 'desk' },
    opened_at: at(-7_000),
    expires_at: at(60_000),
    updated_at: at(-6_000),
    close_reason: null,
    connector_connected: null,
    shares: 2,
    next_share_expires_at: at(30_000),
    viewers: null,
    ...over,
  }
}

export function subscription(over: Partial<SubscriptionRow> = {}): SubscriptionRow {
  return {
    subscription_id: 'sub-1',
    session_id: 'session-1',
    site_id: 'notes-1',
    user_id: 'alice',
    node_id: 'node-1',
    opened_at: at(-5_000),
    pending: 1,
    dropped: 0,
    last_position: 'epoch-1:7',
    last_taken_at: at(-40),
    ...over,
  }
}

const many = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i + 1))

/** A fresh world: several users, and several entries of every kind. */
export function createWorld(): Required<FakeWorld> {
  return {
    connections: [
      ...many(4, (i) => connection({ connection_id: `conn-${i}`, client_id: `desk-${i}`, instance_id: `inst-${i}` })),
      connection({ connection_id: 'conn-5', user_id: 'bob', client_type: 'console', actions: ['print'] }),
      connection({
        connection_id: 'conn-6',
        user_id: 'bob',
        client_type: 'mobile',
        status: 'disconnected',
        disconnected_at: at(-500),
        actions: ['wipe'],
      }),
    ],
    actions: [
      { name: 'open', description: 'Opens a page', parameters_schema: { type: 'object' } },
      { name: 'close', description: null, parameters_schema: null },
    ],
    connectionEvents: [
      { connection_id: 'conn-1', event: 'connected', at: at(-5_000), reason: null },
      { connection_id: 'conn-1', event: 'disconnected', at: at(-4_000), reason: 'client_left' },
      { connection_id: 'conn-6', event: 'disconnected', at: at(-500), reason: 'superseded' },
    ],
    clientEvents: [
      { connection_id: 'conn-1', user_id: 'alice', client_id: 'desk', at: at(-5_000) },
      { connection_id: 'conn-2', user_id: 'bob', at: at(-4_500), node_id: 'node-1' },
      {
        connection_id: 'conn-1',
        user_id: 'alice',
        client_id: 'desk',
        event: 'superseded',
        at: at(-4_000),
        reason: 'new_instance',
      },
    ],
    messages: [
      ...many(3, (i) => message({ message_id: `msg-${i}`, sequence: i, recorded_at: at(-3_000 + i) })),
      message({ message_id: 'msg-9', stream: 'users/bob/log', user_id: 'bob' }),
    ],
    streams: [stream({ message_count: 3 }), stream({ stream: 'users/bob/log', user_id: 'bob', message_count: 1 })],
    connectionChurn: [
      { minute: '2026-01-02T03:02:00.000Z', opened: 2, ended: { client_closed: 1 }, client_type: 'web' },
      { minute: '2026-01-02T03:03:00.000Z' },
    ],
    calls: [
      ...many(3, (i) => call({ correlation_id: `call-${i}` })),
      call({ correlation_id: 'call-4', user_id: 'carol', action: 'print', instance_id: null, deadline_at: null }),
    ],
    endedCalls: [
      {
        correlation_id: 'call-1',
        user_id: 'alice',
        client_id: 'desk',
        ended_at: at(-3_000),
        started_at: at(-4_000),
        duration_ms: 1_000,
      },
      {
        correlation_id: 'over-2',
        user_id: 'bob',
        outcome: 'timed_out',
        ended_at: at(-2_000),
        started_at: at(-4_000),
        duration_ms: 2_000,
      },
      {
        correlation_id: 'over-3',
        user_id: 'alice',
        action: 'print',
        outcome: 'failed',
        ended_at: at(-1_000),
        started_at: at(-1_500),
        duration_ms: 500,
      },
    ],
    callSummary: { counters: { succeeded: 5, failed: 1, timed_out: 1, cancelled: 1, late: 2, foreign: 1 } },
    instances: [{ user_id: 'alice', client_id: 'desk', instance_id: 'inst-1' }],
    deduplicator: {
      summary: { entries: 3, capacity: 100, ttl_ms: 60_000, accepted: 3, duplicates: 1, evicted: 0 },
      users: [{ user_id: 'alice', entries: 3, accepted: 3, duplicates: 1, oldest_at: at(-1_000) }],
    },
    contexts: [
      ...many(3, (i) => context({ context_id: `ctx-${i}` })),
      context({ context_id: 'ctx-4', task_id: 'task-1', task_assigned_at: at(-700), status: 'active' }),
      context({ context_id: 'ctx-8', task_id: 'task-1', task_assigned_at: at(-600), status: 'stale' }),
      context({ context_id: 'ctx-5', ownership: 'user-owned', window_id: null }),
      context({ context_id: 'ctx-6', status: 'stale' }),
      context({ context_id: 'ctx-7', user_id: 'dave', client_type: 'web', window_id: 'win-2' }),
    ],
    browserWindows: [
      browserWindow(),
      browserWindow({ window_id: 'win-2', user_id: 'dave', type: 'popup', focused: false, state: 'minimized' }),
      browserWindow({ window_id: 'win-3', status: 'closed', incognito: true, draining: true, capacity: null }),
    ],
    delivery: {
      summary: {
        deployment_id: 'dep',
        mode: 'direct',
        tracked_commands: 4,
        due_commands: 1,
        sample_size: 4,
        observed_at: at(),
      },
      nodes: many(3, (i) => node({ node_id: `node-${i}` })),
      tenants: many(3, (i) => tenant({ scope_id: `scope-${i}` })),
      churn: [
        {
          minute: '2026-01-02T03:02:00.000Z',
          node_id: 'node-1',
          admitted: 2,
          ended: { resulted: 1 },
          open: { waiting: 1, attempted: 0, acknowledged: 0 },
        },
        { minute: '2026-01-02T03:03:00.000Z', node_id: 'node-2', admitted: 1 },
      ],
      mailboxes: many(3, (i) => mailbox({ client_id: `desk-${i}` })),
      statuses: [status(), status({ command_id: 'cmd-2', terminal: null })],
    },
    sites: [
      ...many(3, (i) => site({ site_id: `notes-${i}` })),
      site({ site_id: 'board', owner: 'bob', mode: 'observe', last_event_at: null, last_position: null }),
    ],
    sessions: [
      ...many(3, (i) => session({ session_id: `session-${i}` })),
      session({
        session_id: 'session-4',
        owner: 'bob',
        site_id: 'board',
        connector: null,
        state: 'closed',
        close_reason: 'done',
      }),
    ],
    subscriptions: [
      ...many(3, (i) => subscription({ subscription_id: `sub-${i}`, pending: i })),
      subscription({
        subscription_id: 'sub-4',
        user_id: 'bob',
        session_id: 'session-2',
        last_position: null,
        last_taken_at: null,
      }),
    ],
  }
}
