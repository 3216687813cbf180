/** The routes of the rpc family. */
import * as z from 'zod'
import { Id, Timestamp, toTimestamp } from '../contract/ids.js'
import { pageOf } from '../contract/page.js'
import { PendingCall, PendingCallFilter, RpcSummary } from '../contract/rpc.js'
import { diagnosticsRoute, routesAbout } from './route.js'

/** Whether an instance held its client at `checked_at`. An unknown instance is not current; it is no 404. */
export const InstanceStatus = z.object({
  instance_id: z.string(),
  current: z.boolean(),
  current_instance_id: z.string().nullable(),
  checked_at: Timestamp,
})

export const RPC_ROUTES = routesAbout('rpc', 'Calls that wait for their reply, and instance fencing.', [
  diagnosticsRoute({
    path: '/rpc/summary',
    summary: 'How many calls wait, and what became of the others',
    needs: ['rpc_summary'],
    response: RpcSummary,
    read: ({ rpc }, _input, { ask }) => rpc.summary?.(ask),
  }),
  diagnosticsRoute({
    path: '/rpc/pending',
    summary: 'Calls that wait for their reply',
    needs: ['rpc'],
    narrows: true,
    page: 'paged',
    query: PendingCallFilter,
    response: pageOf(PendingCall),
    read: ({ rpc }, { filter, page }, { ask }) => rpc.listPending(filter, page, ask),
  }),
  diagnosticsRoute({
    path: '/rpc/pending/{correlation_id}',
    record: true,
    summary: 'One call that waits for its reply',
    needs: ['rpc'],
    narrows: true,
    response: PendingCall,
    read: ({ rpc }, { params }, { ask }) => rpc.getPending(params.correlation_id, ask),
  }),
  diagnosticsRoute({
    path: '/rpc/instances/{instance_id}',
    summary: 'Whether an instance holds its client now',
    needs: ['rpc_instance_check'],
    narrows: true,
    query: z.object({ user_id: Id, client_id: Id }),
    response: InstanceStatus,
    read: async ({ rpc }, { params: { instance_id }, filter }, view) => {
      const check = await rpc.checkInstance?.({ ...filter, instance_id }, view.ask)
      return check && { ...check, instance_id, checked_at: toTimestamp(view.now()) }
    },
  }),
])
