/** Reads the list of a deployment's nodes: the last heartbeat of each, and its age. */
import * as z from 'zod'
import { DeliveryNode } from '../../internal/contract/delivery.js'
import { STALE_MS } from '../../internal/contract/delivery-rules.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { Millis, type TableReader } from '../table/rows.js'

/** How long a node without heartbeats stays in the list. */
const NODE_KEPT_MS = 3_600_000
/** How long a node that was closed stays in the list: longer than connections that it did not end. */
const CLOSED_NODE_KEPT_MS = 120_000

/** Returns how long a node stays in the list after its last heartbeat, in ms. */
export const keptMs = ({ is_closed = false }: Pick<NodeRecord, 'is_closed'>) =>
  is_closed ? CLOSED_NODE_KEPT_MS : NODE_KEPT_MS

/** Fields of a node that its heartbeat has, without its id and the time, which the store adds. */
const OWN_FIELDS = {
  active_drainers: true,
  connection_waiters: true,
  counters: true,
  latency: true,
  metadata: true,
} as const
export const NodeRecord = DeliveryNode.pick(OWN_FIELDS).extend({
  /** Whether it is subscribed to the messages of every shard. */
  is_listening: z.boolean(),
  /** When its loop last passed over every shard; `null` before the first pass and after `close()`. */
  passed_at: Millis.nullable(),
  /** Whether this is its last heartbeat, because it was closed. */
  is_closed: z.boolean().optional(),
})
export type NodeRecord = z.infer<typeof NodeRecord>

const StoredNode = NodeRecord.extend({ node_id: z.string(), updated_at: Millis })

const UNKNOWN = {
  mailbox_listener_alive: null,
  reconciliation_loop_alive: null,
  active_drainers: null,
  connection_waiters: null,
}

export const NODES: TableReader<DeliveryNode, z.infer<typeof StoredNode>> = {
  name: 'nodes',
  idOf: ({ node_id }) => node_id,
  schema: StoredNode,
  indexes: [],
  read({ node_id, updated_at, is_listening, passed_at, is_closed, ...record }, now) {
    const staleness_ms = Math.max(0, now - updated_at)
    if (staleness_ms >= keptMs({ is_closed })) return undefined
    const stale = staleness_ms > STALE_MS
    return {
      node_id,
      mailbox_listener_alive: is_listening,
      reconciliation_loop_alive: passed_at !== null && now - passed_at <= STALE_MS,
      ...record,
      // The state of a node without recent heartbeats is unknown.
      ...(stale ? UNKNOWN : {}),
      updated_at: toTimestamp(updated_at),
      stale,
      staleness_ms,
    }
  },
}
