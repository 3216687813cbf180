/** The routes of the rpc family. */
import * as z from 'zod'
import { Id, Timestamp, toTimestamp } from '../contract/ids.js'
import type { RouterLimits } from '../contract/limits.js'
import { pageOf } from '../contract/page.js'
import { PendingCall, PendingCallFilter } from '../contract/rpc.js'
import { NoQuery, pageQuery } from './page-query.js'
import { type DiagnosticsRow, diagnosticsRow } from './row.js'

/** Whether an instance held its client at `checked_at`. An unknown instance is not current; it is no 404. */
export const InstanceStatus = z.object({
  instance_id: z.string(),
  current: z.boolean(),
  current_instance_id: z.string().nullable(),
  checked_at: Timestamp,
})

export function rpcRows(limits: RouterLimits): DiagnosticsRow[] {
  return [
    diagnosticsRow({
      path: '/rpc/pending',
      summary: 'Calls that wait for their reply',
      needs: ['rpc'],
      query: pageQuery(limits).extend(PendingCallFilter.shape),
      response: pageOf(PendingCall),
      ask: ({ rpc }, { filter, page }, { ask }) => rpc.listPending(filter, page, ask),
    }),
    diagnosticsRow({
      path: '/rpc/pending/{correlation_id}',
      record: true,
      summary: 'One call that waits for its reply',
      needs: ['rpc'],
      query: NoQuery,
      response: PendingCall,
      ask: ({ rpc }, { params }, { ask }) => rpc.getPending(params.correlation_id, ask),
    }),
    diagnosticsRow({
      path: '/rpc/instances/{instance_id}',
      summary: 'Whether an instance holds its client now',
      needs: ['rpc_instance_check'],
      query: z.object({ user_id: Id, client_id: Id }),
      response: InstanceStatus,
      ask: async ({ rpc }, { params: { instance_id }, filter }, view) => {
        const check = await rpc.checkInstance?.({ ...filter, instance_id }, view.ask)
        return check && { ...check, instance_id, checked_at: toTimestamp(view.now()) }
      },
    }),
  ]
}
