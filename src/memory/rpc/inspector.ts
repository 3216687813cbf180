/** Reads the pending calls of one process. */
import type { Clock } from '../../async/clock.js'
import { toTimestamp } from '../../contract/ids.js'
import { annotated, examinable } from '../../contract/page.js'
import type { PendingCall, RpcInspector, RpcOptions } from '../../contract/rpc.js'
import type { CallEntry, Calls } from './calls.js'

export function createRpcInspector(calls: Calls, clock: Clock, connections: RpcOptions['connections']): RpcInspector {
  const { table } = calls
  const { steady } = clock
  const view =
    (time: number) =>
    (entry: CallEntry): PendingCall => ({
      ...entry.record,
      age_ms: time - entry.touchedAt,
    })

  const inspector: RpcInspector = {
    listPending: (filter, page, ask) => table.list(filter, page, view(steady()), examinable(ask)),
    getPending(correlationId) {
      const entry = table.get(correlationId)
      return entry ? view(steady())(entry) : null
    },
    summary() {
      const time = steady()
      const overdue = calls.overdue(time)
      const oldest = table.first()
      return {
        pending: table.size - overdue,
        oldest_started_at: oldest?.record.started_at ?? null,
        oldest_age_ms: oldest ? time - oldest.touchedAt : null,
        overdue,
        counters: { ...calls.counters },
        counting_since: calls.since(),
        observed_at: toTimestamp(clock.now()),
      }
    },
    listUserIds: (page, ask) => table.users.userIds(page, ({ record }) => record, true, examinable(ask)),
    observeUsers(userIds) {
      const parts = userIds.filter(table.users.knowsUser).map((user_id) => {
        const { ids, cut } = table.users.clientIds(user_id)
        const pending_rpc = table.sizeOf('user_id', user_id)
        return { user_id, pending_rpc, observed_client_ids: ids, ...(cut ? { truncated: true } : {}) }
      })
      return annotated(parts, { examined: 0 })
    },
  }
  if (connections)
    inspector.checkInstance = async (instance) => {
      const current_instance_id = await connections.currentInstance(instance)
      return { current: current_instance_id === instance.instance_id, current_instance_id }
    }
  return inspector
}
