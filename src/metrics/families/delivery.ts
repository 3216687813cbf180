/** Metrics of delivery: backlog, node counters, and reservations of named scopes. */

import { BadRecord, requireRequested } from '../../internal/contract/bad-record.js'
import {
  type DeliveryInspector,
  DeliveryNodeAnswer,
  DeliverySummaryAnswer,
  DeliveryTenantAnswer,
  LATENCY_STEPS,
} from '../../internal/contract/delivery.js'
import { checkId } from '../../internal/contract/ids.js'
import {
  defineMetrics,
  type Group,
  histogramSamples,
  instant,
  type MetricSample,
  readAllEntries,
  type Scrape,
  seconds,
  summaryOf,
} from '../family.js'

// Maximum nodes with their own series: each has some dozens.
const NODES_MAX = 100

const SUMMARY = defineMetrics(
  {
    of: 'delivery',
    calls: 'delivery.summary',
    read: async (delivery, scrape) =>
      summaryOf('delivery', DeliverySummaryAnswer, await delivery.summary(scrape.view.ctx), scrape),
  },
  [
    {
      name: 'relayscope_delivery_tracked_commands',
      help: 'Admitted commands without a recorded end, those past their deadline included.',
      read: ({ tracked_commands }) => tracked_commands,
    },
    {
      name: 'relayscope_delivery_due_commands',
      help: 'Unacknowledged commands whose next attempt is now or earlier and whose client is attached.',
      read: ({ due_commands }) => due_commands,
    },
    {
      name: 'relayscope_delivery_waiting_for_client_commands',
      help: 'Unacknowledged commands whose next attempt is now or earlier and whose client is not attached.',
      read: ({ waiting_for_client }) => waiting_for_client,
    },
    {
      name: 'relayscope_delivery_oldest_deadline_timestamp_seconds',
      unit: 'seconds',
      help: 'Earliest known deadline of commands without a recorded end, in seconds since 1970.',
      read: ({ oldest_deadline_at }) => instant(oldest_deadline_at),
    },
    {
      name: 'relayscope_delivery_oldest_queued_age_seconds',
      unit: 'seconds',
      help: 'How long the oldest command of the sample has been queued; not a global maximum.',
      read: ({ oldest_queued_age_ms }) => seconds(oldest_queued_age_ms),
    },
    {
      name: 'relayscope_delivery_oldest_queued_age_sample_size',
      help: 'Size of the sample behind the oldest age.',
      read: ({ sample_size }) => sample_size,
    },
    {
      name: 'relayscope_delivery_oldest_open_age_seconds',
      unit: 'seconds',
      help: 'Age of the oldest command that has not ended. The histograms do not include it.',
      read: ({ oldest_open_age_ms }) => seconds(oldest_open_age_ms),
    },
    {
      name: 'relayscope_delivery_legacy_stream_messages',
      help: 'Messages in the legacy command stream.',
      read: ({ legacy_stream_depth }) => legacy_stream_depth,
    },
    {
      name: 'relayscope_delivery_legacy_pending_messages',
      help: 'Messages of the legacy command stream that were read and not acknowledged.',
      read: ({ legacy_pending_depth }) => legacy_pending_depth,
    },
    {
      name: 'relayscope_delivery_legacy_lag_messages',
      help: 'Messages of the legacy command stream never delivered to its group.',
      read: ({ legacy_stream_lag }) => legacy_stream_lag,
    },
  ],
)

/** A number of each node that knows it. */
const perNode = (nodes: readonly DeliveryNodeAnswer[], of: (node: DeliveryNodeAnswer) => number | boolean | null) =>
  nodes.flatMap((node): MetricSample[] => {
    const value = of(node)
    return value === null ? [] : [{ labels: { node_id: node.node_id }, value: Number(value) }]
  })

/** The node counters of one kind, by the label `name`. */
const counters = (
  nodes: readonly DeliveryNodeAnswer[],
  kind: keyof NonNullable<DeliveryNodeAnswer['counters']>,
  name: string,
) =>
  nodes.flatMap(({ node_id, counters }) =>
    Object.entries(counters?.[kind] ?? {}).map(
      ([word, value]): MetricSample => ({ labels: { node_id, [name]: word }, value }),
    ),
  )

/** The histogram of each node and step that has one. */
function histograms(nodes: readonly DeliveryNodeAnswer[]): MetricSample[] {
  return nodes.flatMap(({ node_id, latency }) =>
    LATENCY_STEPS.flatMap((step): MetricSample[] => {
      const { counts = [], sum_ms = 0 } = latency?.[step] ?? {}
      return histogramSamples({ node_id, step }, latency?.bounds_ms ?? [], counts, sum_ms)
    }),
  )
}

/** The state of a node that reports nothing about itself is unknown. */
const stateOf = ({ stale }: DeliveryNodeAnswer) => (stale === null ? 'unknown' : stale ? 'stale' : 'live')

const NODES = defineMetrics(
  {
    of: 'delivery',
    calls: 'delivery.listNodes',
    async read(delivery, scrape) {
      const list: DeliveryInspector['listNodes'] = (page, ctx) => delivery.listNodes(page, ctx)
      const nodes = await readAllEntries(
        'delivery',
        { entry: DeliveryNodeAnswer, id: 'node_id', list },
        scrape,
        NODES_MAX,
      )
      // Labels appear in graphs, so invalid ids are skipped.
      const named = nodes.value.filter(({ node_id }) => checkId(node_id) === undefined)
      const nameless = nodes.value.length - named.length
      if (nameless > 0) scrape.view.onError('delivery', new BadRecord(`${nameless} nodes skipped: invalid node_id`))
      return { value: named, complete: nodes.complete && nameless === 0 }
    },
  },
  [
    {
      name: 'relayscope_delivery_nodes',
      help: 'Nodes, by whether their last report is too old; unknown if nodes do not report.',
      labels: ['state'],
      read: (nodes) =>
        ['live', 'stale', 'unknown'].map((state) => {
          return { labels: { state }, value: nodes.filter((node) => stateOf(node) === state).length }
        }),
    },
    {
      name: 'relayscope_delivery_node_stale',
      help: "Whether the node's last report is too old.",
      labels: ['node_id'],
      read: (nodes) => perNode(nodes, ({ stale }) => stale),
    },
    {
      name: 'relayscope_delivery_node_silence_seconds',
      unit: 'seconds',
      help: "Time since the node's last report.",
      labels: ['node_id'],
      read: (nodes) => perNode(nodes, ({ staleness_ms }) => seconds(staleness_ms)),
    },
    {
      name: 'relayscope_delivery_node_reconciliation_loop_alive',
      help: "Whether the node's reconciliation loop is running.",
      labels: ['node_id'],
      read: (nodes) => perNode(nodes, ({ reconciliation_loop_alive }) => reconciliation_loop_alive),
    },
    {
      name: 'relayscope_delivery_node_mailbox_listener_alive',
      help: 'Whether messages of the store reach the node.',
      labels: ['node_id'],
      read: (nodes) => perNode(nodes, ({ mailbox_listener_alive }) => mailbox_listener_alive),
    },
    {
      name: 'relayscope_delivery_node_active_drainers',
      help: 'Clients that a command is being delivered to now.',
      labels: ['node_id'],
      read: (nodes) => perNode(nodes, ({ active_drainers }) => active_drainers),
    },
    {
      name: 'relayscope_delivery_node_connection_waiters',
      help: 'Attached connections.',
      labels: ['node_id'],
      read: (nodes) => perNode(nodes, ({ connection_waiters }) => connection_waiters),
    },
    {
      name: 'relayscope_delivery_node_recoveries',
      type: 'counter',
      help: 'Further attempts since the node started, by reason.',
      labels: ['node_id', 'reason'],
      read: (nodes) => counters(nodes, 'recovery', 'reason'),
    },
    {
      name: 'relayscope_delivery_node_outcomes',
      type: 'counter',
      help: 'Ended commands and rejected admissions since the node started.',
      labels: ['node_id', 'outcome'],
      read: (nodes) => counters(nodes, 'outcome', 'outcome'),
    },
    {
      name: 'relayscope_delivery_node_acknowledgements',
      type: 'counter',
      help: 'Acknowledgements and results received since the node started, by kind.',
      labels: ['node_id', 'acknowledgement'],
      read: (nodes) => counters(nodes, 'acknowledgement', 'acknowledgement'),
    },
    {
      name: 'relayscope_delivery_node_step_seconds',
      type: 'histogram',
      unit: 'seconds',
      help: 'Durations of the steps of commands that ended since the node started: handover, acknowledgement, outcome, total.',
      labels: ['node_id', 'step', 'le'],
      read: histograms,
    },
    {
      name: 'relayscope_delivery_node_events',
      type: 'counter',
      help: 'Other events counted since the node started.',
      labels: ['node_id', 'event'],
      read: (nodes) => counters(nodes, 'other', 'event'),
    },
  ],
)

type Reservations = Pick<DeliveryTenantAnswer, 'scope_id' | 'reserved_commands' | 'capacity'>

/** A scope that has no reservations has no record either. */
const without = (scope_id: string): Reservations => ({ scope_id, reserved_commands: 0, capacity: null })

async function reservationsOf(delivery: DeliveryInspector, scrape: Scrape) {
  const { scopes, view } = scrape
  if (delivery.getTenant) {
    const found = await Promise.all(scopes.map(async (scope) => delivery.getTenant?.(scope, view.ctx)))
    const value = found.map((tenant, i): Reservations => {
      const scope_id = scopes[i] as string
      requireRequested(tenant, { scope_id })
      return tenant ? DeliveryTenantAnswer.parse(tenant) : without(scope_id)
    })
    return { value, complete: true }
  }
  const list: DeliveryInspector['listTenants'] = (page, ctx) => delivery.listTenants(page, ctx)
  const { value: tenants, complete } = await readAllEntries(
    'delivery',
    { entry: DeliveryTenantAnswer, id: 'scope_id', list },
    scrape,
  )
  const value = scopes.flatMap((scope): Reservations[] => {
    const tenant = tenants.find(({ scope_id }) => scope_id === scope)
    // Absence from a partial list proves nothing.
    return tenant ? [tenant] : complete ? [without(scope)] : []
  })
  return { value, complete }
}

const TENANTS = defineMetrics(
  {
    of: 'delivery',
    calls: 'delivery.getTenant or delivery.listTenants',
    read: async (delivery, scrape) => (scrape.scopes.length === 0 ? undefined : reservationsOf(delivery, scrape)),
  },
  [
    {
      name: 'relayscope_delivery_scope_reserved_commands',
      help: 'Commands that hold a reservation, of the scopes that labels.scopes names.',
      labels: ['scope_id'],
      read: (tenants) =>
        tenants.flatMap(({ scope_id, reserved_commands }) =>
          reserved_commands === null ? [] : [{ labels: { scope_id }, value: reserved_commands }],
        ),
    },
    {
      name: 'relayscope_delivery_scope_capacity',
      help: 'Capacity that the latest admission of the scope was checked against.',
      labels: ['scope_id'],
      read: (tenants) =>
        tenants.flatMap(({ scope_id, capacity }) =>
          typeof capacity === 'number' ? [{ labels: { scope_id }, value: capacity }] : [],
        ),
    },
  ],
)

export const DELIVERY_GROUPS: readonly Group[] = [SUMMARY, NODES, TENANTS]
