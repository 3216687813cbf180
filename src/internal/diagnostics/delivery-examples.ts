/** The records that the examples of delivery's routes are made of. */
import {
  type DeliveryChurnInput,
  type DeliveryMailboxInput,
  type DeliveryNodeInput,
  type DeliveryStatusInput,
  type DeliverySummaryInput,
  type DeliveryTenantInput,
  NO_LEGACY,
} from '../contract/delivery.js'
import { noEnds } from '../contract/delivery-rules.js'
import { type DeliveryWhy, verdictOf, whyLink } from '../views/why-links.js'
import { CLIENT, complete, exampleTime, INSTANCE } from './examples.js'

export const SUMMARY: DeliverySummaryInput = {
  deployment_id: 'relay-eu',
  mode: 'shared_store',
  tracked_commands: 4,
  by_state: {
    waiting: 1,
    attempted: 2,
    acknowledged: 1,
    resulted: 310,
    failed: 3,
    expired: 12,
    cancelled: 2,
    rejected: 5,
  },
  by_reason: { capacity_exceeded: 5, cancelled: 2, deadline_passed: 12, refused: 3, unspecified: 310 },
  waits_for: {
    client_not_attached: 0,
    turn: 1,
    delivery: 0,
    acknowledgement: 1,
    retry_pause: 1,
    outcome: 1,
    expiry: 0,
    unknown: 0,
  },
  due_commands: 1,
  waiting_for_client: 0,
  oldest_deadline_at: exampleTime(58),
  oldest_queued_age_ms: 2_000,
  sample_size: 4,
  oldest_open_age_ms: 4_000,
  latency: {
    handover: { p50_ms: 3, p95_ms: 12, p99_ms: 40, sample_size: 100 },
    acknowledgement: { p50_ms: 8, p95_ms: 31, p99_ms: 95, sample_size: 97 },
    outcome: { p50_ms: 120, p95_ms: 900, p99_ms: 2_400, sample_size: 96 },
    total: { p50_ms: 140, p95_ms: 1_100, p99_ms: 2_600, sample_size: 100 },
  },
  ...NO_LEGACY,
  observed_at: exampleTime(30),
}

export const NODE: DeliveryNodeInput = {
  node_id: 'node-1',
  mailbox_listener_alive: true,
  reconciliation_loop_alive: true,
  active_drainers: 1,
  connection_waiters: 12,
  updated_at: exampleTime(29),
  stale: false,
  staleness_ms: 1_000,
  counters: {
    recovery: { ack_timeout: 2 },
    outcome: { resulted: 310 },
    acknowledgement: { acknowledged: 312 },
    other: { admitted: 314 },
  },
  metadata: { zone: 'b' },
}

/** A node of another system, of which only the existence is known. */
export const FOREIGN_NODE: DeliveryNodeInput = {
  node_id: 'worker-10.0.0.7:41822',
  mailbox_listener_alive: null,
  reconciliation_loop_alive: null,
  active_drainers: null,
  connection_waiters: null,
  updated_at: null,
  stale: null,
  staleness_ms: null,
  counters: { recovery: {}, outcome: {}, acknowledgement: {}, other: {} },
}

export const TENANT: DeliveryTenantInput = {
  scope_id: 'ada',
  reserved_commands: 4,
  oldest_deadline_at: exampleTime(58),
  capacity: 1_000,
}

export const MAILBOX: DeliveryMailboxInput = {
  ...INSTANCE,
  node_id: 'node-1',
  attached_at: exampleTime(5),
  waiting_commands: 1,
}

export const COMMAND: DeliveryStatusInput = {
  ...CLIENT,
  command_id: 'open-report-9',
  admission: { state: 'admitted', at: exampleTime(19), scope_id: 'ada', deadline_at: exampleTime(49) },
  attempts: {
    count: 1,
    confirmed: 1,
    handed_over_at: exampleTime(20),
    last_at: exampleTime(19),
    last_node_id: 'node-1',
    last_outcome: 'handed_over',
    items: [
      {
        number: 1,
        at: exampleTime(19),
        node_id: 'node-1',
        instance_id: INSTANCE.instance_id,
        outcome: 'handed_over',
        ended_at: exampleTime(20),
        reason: null,
      },
    ],
    omitted: 0,
  },
  acknowledgement: { state: 'acknowledged', at: exampleTime(20), instance_id: INSTANCE.instance_id },
  recovery: { count: 0, last_at: null, reason: null },
  terminal: { state: 'resulted', at: exampleTime(24), reason: null },
  overdue: false,
}

export const DELIVERY_CHURN: DeliveryChurnInput = {
  items: [
    { minute: exampleTime(-101), admitted: 0, ended: noEnds(), open: { waiting: 2, attempted: 0, acknowledged: 0 } },
    {
      minute: exampleTime(-41),
      admitted: 3,
      ended: { ...noEnds(), resulted: 3, expired: 1 },
      open: { waiting: 1, attempted: 0, acknowledged: 0 },
    },
  ],
  observed_at: exampleTime(30),
}

const KEY = { ...CLIENT, command_id: 'open-report-10' }
const STATUS_ROUTE = `/delivery/status?user_id=${KEY.user_id}&client_id=${KEY.client_id}&command_id=${KEY.command_id}`
const STATUS_FIELD = { source: 'delivery', route: STATUS_ROUTE, observed_at: exampleTime(30) } as const
const CONNECTED = `/connections?user_id=${KEY.user_id}&client_id=${KEY.client_id}`
const CONNECTED_FIELD = { source: 'registry', route: CONNECTED, observed_at: exampleTime(30) } as const

const LINKS = [
  whyLink('admitted', true, [{ ...STATUS_FIELD, field: 'admission.state', value: 'admitted' }]),
  whyLink('client_known', true, [{ ...CONNECTED_FIELD, field: 'status', value: 'disconnected' }]),
  whyLink('connected', false, [
    { ...CONNECTED_FIELD, route: `${CONNECTED}&status=connected`, field: 'connections', value: 0 },
  ]),
  whyLink('mailbox_attached', null, []),
  whyLink('handed_over', false, [{ ...STATUS_FIELD, field: 'attempts.count', value: 0 }]),
  whyLink('acknowledged', false, [{ ...STATUS_FIELD, field: 'acknowledgement.state', value: 'none' }]),
  whyLink('ended', false, [{ ...STATUS_FIELD, field: 'admission.deadline_at', value: exampleTime(58) }]),
]

export const WHY: DeliveryWhy = {
  ...KEY,
  verdict: verdictOf(LINKS),
  links: LINKS,
  not_looked_at: [{ link: 'mailbox_attached', source: 'delivery', reason: 'absent' }],
  completeness: complete({ delivery: 0, registry: 1 }),
  observed_at: exampleTime(30),
}
