/** Reads the pending calls of one process. */
import type { Clock } from '../../internal/async/timer.js'
import { toTimestamp } from '../../internal/contract/ids.js'
import { parseSequence, scanLimit } from '../../internal/contract/page.js'
import type { PendingCall, RpcInspector, RpcOptions } from '../../internal/contract/rpc.js'
import { observeKnown } from '../table/users.js'
import { type CallEntry, type Calls, shownCall } from './calls.js'
import type { ObservedTotals } from './observed.js'

export function createRpcInspector(
  calls: Calls,
  observed: ObservedTotals,
  clock: Clock,
  connections: RpcOptions['connections'],
): RpcInspector {
  const { table } = calls
  const { steady } = clock
  const view =
    (time: number) =>
    (entry: CallEntry): PendingCall => ({
      ...shownCall(entry.record),
      started_at: toTimestamp(entry.record.startedAt),
      deadline_at:
        entry.record.timeoutMs === null ? null : toTimestamp(entry.record.startedAt + entry.record.timeoutMs),
      age_ms: time - entry.touchedAt,
      overdue: entry.state.endsAt <= time,
      ...(entry.record.observed && { answered_since: entry.record.answered_since }),
    })

  const inspector: RpcInspector = {
    // A call becomes overdue without a write.
    version() {
      calls.sweepObserved()
      return `${table.version()}.${calls.overdue(steady())}.${calls.ended.version()}.${observed.reports()}`
    },
    listEnded: (filter, page, ctx) => calls.ended.list(filter, page, scanLimit(ctx)),
    getEnded: (correlationId) => calls.ended.get(correlationId),
    listPending(filter, page, ctx) {
      const time = steady()
      parseSequence(page.cursor, page.order)
      calls.sweepObserved()
      // The usual case: a timer ends a call at its deadline.
      if (filter.overdue && calls.overdue(time) === 0)
        return { items: [], next_cursor: null, has_more: false, examined: 0 }
      return table.list(filter, page, view(time), scanLimit(ctx))
    },
    getPending(correlationId) {
      calls.sweepObserved()
      const entry = table.get(correlationId)
      return entry ? view(steady())(entry) : null
    },
    summary() {
      calls.sweepObserved()
      const time = steady()
      const oldest = table.first()
      return {
        pending: table.size,
        oldest_started_at: oldest ? toTimestamp(oldest.record.startedAt) : null,
        oldest_age_ms: oldest ? time - oldest.touchedAt : null,
        overdue: calls.overdue(time),
        counters: { ...calls.counters },
        observed: observed.read(),
        counting_since: calls.since(),
        observed_at: toTimestamp(clock.now()),
      }
    },
    listUserIds: (page, ctx) => table.users.userIds(page, ({ record }) => record, true, scanLimit(ctx)),
    observeUsers(userIds, ctx) {
      return observeKnown(userIds, ctx, table.users.knowsUser, (user_id) => {
        const pending_rpc = table.sizeOf('user_id', user_id)
        return { user_id, pending_rpc, observed_client_ids: table.users.clientIds(user_id) }
      })
    },
  }
  if (connections)
    inspector.checkInstance = async (instance) => {
      const current_instance_id = await connections.currentInstance(instance)
      return { current: current_instance_id === instance.instance_id, current_instance_id }
    }
  return inspector
}
