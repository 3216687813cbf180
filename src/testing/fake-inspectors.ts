/** Inspectors over plain data, for the unit tests of hosts: no facility, no clock of their own, no test runner. */
import type { BrowserWindow } from '../contract/browser-windows.js'
import type {
  ActionDescriptor,
  ActionObservation,
  Connection,
  ConnectionEvent,
  Instance,
} from '../contract/connections.js'
import type { Context } from '../contract/contexts.js'
import type { DeduplicatorSummary, DeduplicatorUserSummary } from '../contract/deduplicator.js'
import type { DeliveryNode, DeliveryStatus, DeliverySummary, DeliveryTenant } from '../contract/delivery.js'
import type { HistoryMessage, HistoryStream } from '../contract/history.js'
import { checkSegment, compareIds, toTimestamp } from '../contract/ids.js'
import type { Inspectors } from '../contract/inspectors.js'
import { type Page, type PageQuery, parseSequence } from '../contract/page.js'
import type { PendingCall } from '../contract/rpc.js'
import { Refusal } from '../refusal.js'

/** What the fakes know. An absent key is an absent inspector or operation; `[]` and `{}` are present and empty. */
export interface FakeWorld {
  connections?: Connection[]
  /** Makes the registry list its actions; numbers that are not given are taken from `connections`. */
  actions?: (ActionDescriptor & Partial<ActionObservation>)[]
  /** Makes the registry answer for the history of connections. */
  connectionEvents?: ConnectionEvent[]
  messages?: HistoryMessage[]
  /** Makes the history list its streams. */
  streams?: HistoryStream[]
  calls?: PendingCall[]
  /** The current instances; makes the correlator check them. */
  instances?: Instance[]
  deduplicator?: { summary?: Partial<DeduplicatorSummary>; users?: DeduplicatorUserSummary[] }
  contexts?: Context[]
  browserWindows?: BrowserWindow[]
  delivery?: {
    summary?: Partial<DeliverySummary>
    nodes?: DeliveryNode[]
    tenants?: DeliveryTenant[]
    statuses?: DeliveryStatus[]
  }
}

/** One page of the entries that have all of `filter`'s values, in their given order. */
function pageOfEntries<T extends object>(entries: readonly T[], filter: object, page: PageQuery): Page<T> {
  const start = parseSequence(page.cursor)
  const wanted = Object.entries(filter)
  const found = entries.filter((entry) => wanted.every(([name, value]) => entry[name as keyof T] === value))
  const end = start + page.limit
  const has_more = end < found.length
  return { items: found.slice(start, end), next_cursor: has_more ? String(end) : null, has_more }
}

function find<T extends object>(entries: readonly T[], key: Partial<T>): T | null {
  const wanted = Object.entries(key)
  return entries.find((entry) => wanted.every(([name, value]) => entry[name as keyof T] === value)) ?? null
}

function observeAction(
  action: ActionDescriptor & Partial<ActionObservation>,
  connections: readonly Connection[],
  filter: object,
): ActionObservation | undefined {
  const offering = pageOfEntries(connections, filter, { limit: connections.length, cursor: null }).items.filter(
    (connection) => connection.status === 'connected' && connection.actions.includes(action.name),
  )
  if (offering.length === 0 && Object.keys(filter).length > 0) return undefined
  return {
    observed_connections: offering.length,
    observed_users: new Set(offering.map((connection) => connection.user_id)).size,
    observed_client_types: [...new Set(offering.map((connection) => connection.client_type))].sort(),
    ...action,
  }
}

/** The actions of the world and of its connected connections, in the order of their names. */
function listActions({ actions = [], connections = [] }: FakeWorld, filter: object, page: PageQuery) {
  const known = new Map(actions.map((action) => [action.name, action]))
  const offered = connections.flatMap(({ status, actions }) => (status === 'connected' ? actions : []))
  for (const name of offered)
    if (!known.has(name)) known.set(name, { name, description: null, parameters_schema: null })
  const after = page.cursor
  const items = [...known.values()]
    .filter(({ name }) => after === null || compareIds(name, after) > 0)
    .sort((a, b) => compareIds(a.name, b.name))
    .flatMap((action) => observeAction(action, connections, filter) ?? [])
  const has_more = items.length > page.limit
  const shown = items.slice(0, page.limit)
  return { items: shown, next_cursor: has_more ? (shown.at(-1)?.name ?? null) : null, has_more }
}

const NO_DEDUPLICATION = { entries: 0, capacity: null, ttl_ms: null, accepted: 0, duplicates: 0, evicted: 0 }

const NO_DELIVERY: Omit<DeliverySummary, 'observed_at'> = {
  deployment_id: null,
  mode: 'direct',
  tracked_commands: 0,
  due_commands: 0,
  oldest_deadline_at: null,
  oldest_queued_age_ms: null,
  sample_size: 0,
  legacy_stream_depth: null,
  legacy_pending_depth: null,
}

/**
 * Inspectors that answer from `world`, read at each call: a test may change the arrays between requests.
 *
 * @example
 * const inspectors = createFakeInspectors({ contexts: [], delivery: {} })
 * const router = createDiagnosticsRouter({ inspectors, auth: noopAuth() })
 */
export function createFakeInspectors(world: FakeWorld = {}): Inspectors {
  const { messages, streams, instances, deduplicator, delivery } = world
  const inspectors: Inspectors = {}
  if (world.connections || world.actions || world.connectionEvents)
    inspectors.registry = {
      listConnections: (filter, page) => pageOfEntries(world.connections ?? [], filter, page),
      getConnection: (connection_id) => find(world.connections ?? [], { connection_id }),
      ...(world.actions && { listActions: (filter, page) => listActions(world, filter, page) }),
      ...(world.connectionEvents && {
        listConnectionHistory(connection_id, page) {
          const known = [...(world.connections ?? []), ...(world.connectionEvents ?? [])]
          return find<{ connection_id: string }>(known, { connection_id })
            ? pageOfEntries(world.connectionEvents ?? [], { connection_id }, page)
            : null
        },
      }),
    }
  if (messages || streams)
    inspectors.history = {
      readMessages({ stream, limit }) {
        const retained = (messages ?? []).filter((message) => message.stream === stream)
        return { items: retained.slice(-limit), truncated: retained.length > limit }
      },
      ...(streams && { listStreams: (filter, page) => pageOfEntries(streams, filter, page) }),
    }
  if (world.calls || instances)
    inspectors.rpc = {
      listPending: (filter, page) => pageOfEntries(world.calls ?? [], filter, page),
      getPending: (correlation_id) => find(world.calls ?? [], { correlation_id }),
      ...(instances && {
        checkInstance({ user_id, client_id, instance_id }) {
          const current = find(instances, { user_id, client_id })?.instance_id ?? null
          return { current: current === instance_id, current_instance_id: current }
        },
      }),
    }
  if (deduplicator)
    inspectors.deduplicator = {
      summary: () => ({ ...NO_DEDUPLICATION, ...deduplicator.summary }),
      ...(deduplicator.users && { userSummary: (user_id) => find(deduplicator.users ?? [], { user_id }) }),
    }
  if (world.contexts)
    inspectors.contextRegistry = {
      listContexts: (filter, page) => pageOfEntries(world.contexts ?? [], filter, page),
      getContext: (context_id) => find(world.contexts ?? [], { context_id }),
    }
  if (world.browserWindows)
    inspectors.browserWindowRegistry = {
      listBrowserWindows: (filter, page) => pageOfEntries(world.browserWindows ?? [], filter, page),
      getBrowserWindow: (window_id) => find(world.browserWindows ?? [], { window_id }),
    }
  if (delivery)
    inspectors.delivery = {
      summary: () => ({ ...NO_DELIVERY, observed_at: toTimestamp(Date.now()), ...delivery.summary }),
      listNodes: (page) => pageOfEntries(delivery.nodes ?? [], {}, page),
      listTenants: (page) => pageOfEntries(delivery.tenants ?? [], {}, page),
      status(key) {
        if (checkSegment(key.client_id) || checkSegment(key.command_id)) throw new Refusal('invalid_identity')
        const status = find(delivery.statuses ?? [], key)
        // A world may be older than this number.
        return status && { ...status, attempts: { ...status.attempts, confirmed: status.attempts.confirmed ?? 0 } }
      },
    }
  return inspectors
}
